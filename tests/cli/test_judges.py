"""The command judges: one screen about a panel, JSON for programs, and clear errors."""

import json

import numpy as np
import pandas as pd
import pytest

from crowdwise.cli import main


@pytest.fixture
def panel(tmp_path):
    """Scores from 0 to 9 of six judges in three families, and files beside."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 200)
    family = np.array([0, 0, 0, 1, 1, 2])
    noise = rng.normal(size=(200, 3))[:, family] + rng.normal(size=(200, 6))
    score = np.clip(np.round(4.5 + 3 * (truth[:, None] - 0.5) + noise), 0, 9).astype(int)
    score[:, 1] = score[:, 0]  # a copy
    names = [f"judge-{k}" for k in range(6)]
    frame = pd.DataFrame(score, columns=names).rename_axis("id").reset_index()
    frame = frame.melt("id", var_name="judge", value_name="score").astype(object)
    frame.loc[frame["judge"].eq("judge-5") & frame["id"].lt(30), "score"] = None
    frame.to_csv(tmp_path / "scores.csv", index=False)
    about = {"judge": names, "family": list("aaabbc"), "price": [1, 1, 1, 2, 2, 3]}
    pd.DataFrame(about).to_csv(tmp_path / "judges.csv", index=False)
    gold = pd.DataFrame({"id": range(80), "label": truth[:80]})
    gold.to_csv(tmp_path / "gold.csv", index=False)
    return tmp_path


def run(panel, *flags, workers=True):
    words = ["judges", str(panel / "scores.csv"), "--range", "0,9"]
    words += ["--workers", str(panel / "judges.csv")] if workers else []
    return main([*words, *map(str, flags)])


def test_one_screen(panel, capsys):
    assert run(panel, "--gold", panel / "gold.csv", "--table") == 0
    shown = capsys.readouterr()
    assert len(shown.out.splitlines()) < 25
    for part in ("worth of 6 judges", "accuracy of the panel", "share of 1", "per correct label"):
        assert part in shown.out
    assert "Leave out" in shown.out
    assert "judge-5 15%" in " ".join(shown.out.split())  # declined 30 of 200
    assert "80 gold labels give" in shown.out
    assert "label 1 for scores from 5 to 9" in shown.err


def test_scores_may_stand_beside_labels(panel, capsys):
    frame = pd.read_csv(panel / "scores.csv").dropna()
    frame = frame.assign(verdict=np.where(frame["score"] > 4.5, "good", "bad"))
    frame.rename(columns={"score": "points"}).to_csv(panel / "verdicts.csv", index=False)
    words = ["judges", str(panel / "verdicts.csv"), "--label", "verdict", "--json"]
    assert main([*words, "--score", "points"]) == 0
    scored = json.loads(capsys.readouterr().out)
    assert main(words) == 0
    plain = json.loads(capsys.readouterr().out)
    assert scored["judges"][0]["skill"] != plain["judges"][0]["skill"]


def test_words_among_scores_are_named(panel, capsys):
    text = (panel / "scores.csv").read_text().replace("199,judge-0,", "199,judge-0,unsure #")
    (panel / "scores.csv").write_text(text)
    assert run(panel, "--table") == 0
    assert "labels that are not scores count as declined: 'unsure #" in capsys.readouterr().err


def test_without_gold_it_says_what_cannot_be_known(panel, capsys):
    assert run(panel, "--table") == 0
    shown = capsys.readouterr().out
    assert shown.count("cannot be known without gold") == 5
    assert "drawn at random" in shown
    assert main(["judges", str(panel / "scores.csv"), "--table"]) == 0
    assert "per correct label" not in capsys.readouterr().out


def test_json_holds_all_of_it(panel, capsys):
    assert run(panel, "--gold", panel / "gold.csv", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["effective_number"]["low"] < found["effective_number"]["value"] < 6
    assert len(found["judges"]) == 6
    assert found["judges"][0]["price"] == 1
    assert found["estimate"]["of"] == "share of 1"
    assert found["costs"][0]["n_judges"] == 6
    assert found["next"]
    assert run(panel, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["effective_number"]["low"] is None


def test_a_table_goes_to_a_file(panel):
    assert run(panel, "-o", panel / "out.csv") == 0
    table = pd.read_csv(panel / "out.csv").set_index("worker")
    assert table.loc[["judge-0", "judge-1"], "redundant"].sum() == 1
    assert table.loc["judge-5", "declined"] == pytest.approx(0.15)


def test_prices_in_a_file_of_their_own(panel, capsys):
    path = panel / "prices.csv"
    names = [f"judge-{k}" for k in range(6)]
    pd.DataFrame({"worker": names, "price": [0.5] * 6}).to_csv(path, index=False)
    assert run(panel, "--prices", path, "--json") == 0
    costs = json.loads(capsys.readouterr().out)["costs"]
    assert costs[0]["per_task"] == pytest.approx(0.5 * 6 - 0.5 * 0.15)


def test_the_class_that_is_counted(panel, capsys):
    assert run(panel, "--gold", panel / "gold.csv", "--of", "0", "--json") == 0
    zero = json.loads(capsys.readouterr().out)["estimate"]
    assert run(panel, "--gold", panel / "gold.csv", "--json") == 0
    one = json.loads(capsys.readouterr().out)["estimate"]
    assert zero["value"] + one["value"] == pytest.approx(1)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--range", "9,0"], "does not start with the lower number"),
        (["--range", "0"], "not of the form 0,9"),
        (["--range", "0,5"], "outside of 0 to 5"),
        (["--prices", "fee"], "no price of a label in 'fee'"),
        (["--of", "7"], "no class '7'"),
    ],
)
def test_mistakes(panel, capsys, flags, message):
    assert run(panel, *flags) in (1, 2)
    shown = capsys.readouterr()
    assert message in shown.err
    assert not shown.out


def test_workers_of_another_panel(panel, capsys):
    (panel / "judges.csv").write_text("judge,family\nx,y\n")
    assert run(panel) == 1
    assert "None of the workers is described" in capsys.readouterr().err
    (panel / "judges.csv").write_text("a,b\nx,y\n")
    assert run(panel) == 1
    shown = capsys.readouterr().err
    assert "no column for the worker" in shown
    assert "a, b" in shown
    (panel / "judges.json").write_text('{"a": 1}')
    assert run(panel, "--workers", panel / "judges.json") == 1
    assert "is not a table" in capsys.readouterr().err
