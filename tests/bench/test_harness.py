"""The harness: what it runs, keeps, skips, compares and writes, on a table that takes no time."""

import io
import json
import re
import signal
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import BaseEstimator

import crowdbench
from crowdbench import registry, runner
from crowdbench.page import overall_table, page
from crowdbench.plain import without_search
from crowdbench.results import Results, settings
from crowdbench.summary import compare_pairs, mark, summarize
from crowdbench.table import Column, Published, Row, Table, published
from crowdwise import progress
from crowdwise.cli import main
from crowdwise.errors import CrowdwiseError, FormatError, ParameterError


class Guess(BaseEstimator):
    """An estimator whose score is its level, plus what its seed says."""

    def __init__(self, level=0.5, spread=0.0, random_state=None):
        self.level = level
        self.spread = spread
        self.random_state = random_state


class Sure(BaseEstimator):
    """One without random numbers."""

    def __init__(self, level=0.7):
        self.level = level


class Broken(Sure):
    """One that refuses the data."""


def measure(model, data, seed):
    if isinstance(model, Broken):
        raise CrowdwiseError("one class is not enough.\n  fix: more")
    noise = getattr(model, "spread", 0.0) * (seed - 1.5)
    return {"accuracy": model.level + noise + data, "F1": float("nan")}


def absent(seed):
    raise FileNotFoundError("no such set")


TOY = Table(
    name="toy",
    title="A toy",
    source="Nobody (2020).",
    rows={
        "guess": Row(lambda column: Guess(0.5, 0.01), published(["easy"], [0.49])),
        "sure": Row(lambda column: Sure(), {"easy": {"accuracy": Published(0.9, 0.01)}}),
        "broken": Row(lambda column: Broken(), columns=("hard",)),
    },
    columns={
        "easy": Column(lambda seed: 0.0, about="no noise"),
        "hard": Column(lambda seed: -0.1 * seed, redrawn=True),
        "gone": Column(absent),
    },
    measure=measure,
    metrics=("accuracy", "F1"),
    pairs=(("sure", "guess"),),
    seeds=4,
    quick_rows=("sure",),
    quick_columns=("easy",),
)


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    """The toy stands among the real tables, and nothing is remembered between tests."""
    real = registry.table
    for module in (registry, runner, crowdbench):
        monkeypatch.setattr(module, "table", lambda name: TOY if name == "toy" else real(name))
    runner._data.cache_clear()
    runner._fixed.cache_clear()


def run(folder, **options):
    return crowdbench.run_table("toy", folder, **{"jobs": 1, **options})


def lines(results):
    return results.summary().set_index(["column", "row", "metric"])


def test_every_row_meets_every_column_once_per_seed(tmp_path):
    results = run(tmp_path)
    assert sorted(results.runs) == sorted(
        [("guess", "easy", s) for s in range(4)]
        + [("sure", "easy", 0)]  # neither it nor the data has anything random
        + [(row, "hard", s) for row in ("guess", "sure", "broken") for s in range(4)]
        + [("guess", "gone", s) for s in range(4)]
        + [("sure", "gone", 0)]
    )


def test_long_runs_show_how_far_they_are(tmp_path):
    drawn = io.StringIO()
    with progress.shown(drawn, delay=0, every=0):
        run(tmp_path, columns=["easy"])
    assert re.search(r"toy: 100%.* 5/5 \[\d\d:\d\d<\d\d:\d\d, +[\d.]+run/s\]", drawn.getvalue())


def test_mean_and_error_are_those_of_plain_loops(tmp_path):
    found = lines(run(tmp_path)).loc[("hard", "guess", "accuracy")]
    values = [0.5 + 0.01 * (s - 1.5) - 0.1 * s for s in range(4)]
    mean = sum(values) / 4
    spread = (sum((v - mean) ** 2 for v in values) / 3) ** 0.5
    assert found["mean"] == pytest.approx(mean)
    assert found["error"] == pytest.approx(spread / 2)
    assert found["runs"] == 4


def test_a_figure_that_is_no_number_is_kept_as_none(tmp_path):
    run(tmp_path)
    stored = json.loads((tmp_path / "toy.json").read_text())
    assert {run["figures"]["F1"] for run in stored["runs"] if "figures" in run} == {None}


def test_a_second_run_takes_what_is_there(tmp_path):
    run(tmp_path)
    told = []
    run(tmp_path, tell=told.append, seeds=5, columns=["easy"])
    assert told == [
        "toy: 5 of 6 runs are already there",
        "toy 1/1: guess on easy, seed 4: accuracy 0.5250 (0.0 s)",
    ]
    told.clear()
    run(tmp_path, tell=told.append, again=True, columns=["easy"])
    assert len(told) == 5


def test_runs_with_other_settings_are_left_out(tmp_path, monkeypatch):
    run(tmp_path, columns=["easy"])
    changed = replace(TOY, rows={**TOY.rows, "sure": Row(lambda column: Sure(0.8))})
    for module in (registry, runner):
        monkeypatch.setattr(module, "table", lambda name: changed)
    told = []
    results = run(tmp_path, columns=["easy"], tell=told.append)
    assert told[0] == "toy: 4 of 5 runs are already there"
    assert lines(results).loc[("easy", "sure", "accuracy"), "mean"] == 0.8


def test_what_cannot_run_is_reported_and_tried_again(tmp_path):
    results = run(tmp_path, columns=["hard", "gone"])
    assert results.skipped() == {
        "broken on hard": "one class is not enough.",
        "guess on gone": "no such set",
        "sure on gone": "no such set",
    }
    assert "broken on hard (one class is not enough.)" in (tmp_path / "toy.md").read_text()
    assert not results.has("broken", "hard", 0)


def test_an_interrupted_run_keeps_what_was_done(tmp_path):
    def stop(text):
        if "3/" in text:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, columns=["easy"], tell=stop)
    assert len(json.loads((tmp_path / "toy.json").read_text())["runs"]) == 3


@pytest.mark.parametrize(("late", "n_runs"), [(0, 5), (2, 2)])
def test_promise_14_an_interrupted_bench_keeps_finished_runs(tmp_path, monkeypatch, late, n_runs):
    run(tmp_path, columns=["easy"])
    usual, done = runner.perform, []

    def perform(job):
        if len(done) == late:
            signal.raise_signal(signal.SIGINT)
        done.append(job)
        return usual(job)

    monkeypatch.setattr(runner, "perform", perform)
    words = ["bench", "toy", "--columns", "easy", "--jobs", "1", "-o", str(tmp_path)]
    assert main([*words, "--again", "--quiet"]) == 130
    assert len(json.loads((tmp_path / "toy.json").read_text())["runs"]) == n_runs


def test_promise_20_a_bench_without_a_figure_fails(tmp_path, capsys):
    words = ["bench", "toy", "--jobs", "1", "-o", str(tmp_path), "--quiet"]
    assert main([*words, "--columns", "gone"]) == 1
    assert "no cell of toy has a figure" in capsys.readouterr().err
    assert main([*words, "--columns", "gone,easy"]) == 0
    assert main([*words, "--rows", "broken", "--columns", "easy"]) == 1  # no cell at all


def test_a_damaged_file_is_refused_and_stays(tmp_path):
    (tmp_path / "toy.json").write_text('{"runs": 3')
    with pytest.raises(FormatError, match="does not hold the runs"):
        run(tmp_path)
    assert (tmp_path / "toy.json").read_text() == '{"runs": 3'


def test_quick_runs_are_few(tmp_path):
    assert list(run(tmp_path, quick=True).runs) == [("sure", "easy", 0)]


class Foreign(Sure):
    """A third party's."""

    def fit(self, *_):
        return self


class Careless(Foreign):
    """A third party's, with a mistake."""

    @property
    def spread(self):
        raise ZeroDivisionError("by nought")


class Needy(Foreign):
    def __init__(self, wish):
        super().__init__(wish)


def test_a_third_party_gets_a_row(tmp_path):
    theirs = f"{__name__}:Foreign"
    results = run(tmp_path, others=[theirs], rows=["sure"], columns=["easy"])
    assert list(results.runs) == [("sure", "easy", 0), (theirs, "easy", 0)]
    results = run(tmp_path / "quick", others=[theirs], quick=True)
    assert list(results.runs) == [("sure", "easy", 0), (theirs, "easy", 0)]
    words = ["bench", "toy", "--with", theirs, "--rows", "Foreign", "--columns", "easy"]
    assert main([*words, "--jobs", "1", "-o", str(tmp_path / "alone"), "--quiet"]) == 0
    assert [
        r["row"] for r in json.loads((tmp_path / "alone" / "toy.json").read_text())["runs"]
    ] == [theirs]


def test_a_third_partys_mistake_is_its_own(tmp_path):
    theirs = f"{__name__}:Careless"
    results = run(tmp_path, others=[theirs], rows=["sure"], columns=["easy"])
    assert results.skipped() == {f"{theirs} on easy": "ZeroDivisionError: by nought"}
    assert results.runs["sure", "easy", 0]["figures"]["accuracy"] == 0.7


def test_a_third_party_must_bring_an_estimator():
    name = "sklearn.linear_model:LogisticRegression"
    made = crowdbench.with_third_party(TOY, [name])
    assert type(made.rows[name].make("easy")).__name__ == "LogisticRegression"
    with pytest.raises(ParameterError, match="cannot be imported"):
        crowdbench.with_third_party(TOY, ["no_such_package:Thing"])
    with pytest.raises(ParameterError, match=r"created: .*wish"):
        crowdbench.with_third_party(TOY, [f"{__name__}:Needy"])
    with pytest.raises(ParameterError, match="a BaseEstimator, which has no fit method"):
        crowdbench.with_third_party(TOY, ["sklearn.base:BaseEstimator"])


def test_unknown_names_are_refused(tmp_path):
    with pytest.raises(ParameterError, match="no row 'other'"):
        run(tmp_path, rows=["other"])
    with pytest.raises(ParameterError, match="no table 'nothing'"):
        crowdbench.run_table("nothing", tmp_path)


@pytest.mark.parametrize(
    ("mean", "error", "deviation", "known", "expected"),
    [
        (0.50, 0.01, 0.03, Published(0.47, 0.005), "better"),
        (0.50, 0.01, 0.03, Published(0.53, 0.005), "worse"),
        (0.50, 0.005, 0.015, Published(0.49, 0.005), "level"),
        (0.50, 0.001, 0.003, Published(0.495), "level"),  # one run, as variable as ours
        (0.50, 0.01, 0.03, Published(0.45), "cannot tell"),  # within an interval of 12 points
        (0.50, 0.05, 0.15, Published(0.7855), "cannot tell"),
        (0.50, 0.05, 0.15, Published(0.9, 0.01), "worse"),
        (0.50, 0.00, 0.00, Published(0.50004), "level"),  # rounding
        (0.50, 0.00, 0.00, Published(0.5010), "worse"),
    ],
)
def test_marks(mean, error, deviation, known, expected):
    ours = {"mean": mean, "error": error, "deviation": deviation, "runs": 10 if error else 1}
    assert mark(ours, known) == expected


def test_few_runs_have_a_wide_interval():
    ours = {"mean": 0.5, "error": 0.01, "deviation": 0.02}
    assert mark({**ours, "runs": 30}, Published(0.54, 0.001)) == "worse"
    assert mark({**ours, "runs": 2}, Published(0.54, 0.001)) == "cannot tell"


def test_a_single_run_of_what_varies_says_nothing(tmp_path):
    found = lines(run(tmp_path, seeds=1, columns=["easy"]))
    assert found.loc[("easy", "guess", "accuracy"), "mark"] == "cannot tell"
    assert found.loc[("easy", "sure", "accuracy"), "mark"] == "worse"  # every run is the same
    text = (tmp_path / "toy.md").read_text()
    assert "| guess | 0.4850 (1 run) |" in text
    assert "| sure | 0.7000 |" in text


def test_pairs_are_tested_seed_by_seed():
    rng = np.random.default_rng(0)
    first, second = rng.random(6), rng.random(6)
    runs = {
        (row, "hard", seed): {"figures": {"accuracy": value}, "seconds": 1.0, "peak_mb": 1.0}
        for row, values in (("sure", first), ("guess", second))
        for seed, value in enumerate(values)
    }
    found = compare_pairs(TOY, runs)
    assert len(found) == 1
    assert found[0]["mean"] == pytest.approx((first - second).mean())
    assert found[0]["p"] == pytest.approx(stats.ttest_rel(first, second).pvalue)


def test_a_row_that_ran_once_stands_for_every_seed():
    runs = {("sure", "easy", 0): {"figures": {"accuracy": 0.7}, "seconds": 1.0, "peak_mb": 1.0}}
    for seed, value in enumerate((0.5, 0.6, 0.55)):
        runs["guess", "easy", seed] = {"figures": {"accuracy": value}}
    found = compare_pairs(TOY, runs)[0]
    assert (found["runs"], found["mean"]) == (3, pytest.approx(0.15))


def test_the_page_shows_ours_theirs_and_how_they_compare(tmp_path):
    run(tmp_path)
    text = (tmp_path / "toy.md").read_text()
    assert "| guess | 0.5000 ± 0.0065 | 0.49 | +0.0100 | cannot tell |" in text
    assert "| sure | 0.7000 | 0.9 ± 0.010 | -0.2000 | ▼ |" in text
    assert "**easy**: no noise" in text
    assert "Made by `crowdwise bench toy`" in text
    assert "Nobody (2020)." in text


def test_a_page_without_runs_says_so_in_few_words(tmp_path):
    empty = Results(TOY, tmp_path)
    text = page(TOY, empty.summary(), [], {}, empty.about())
    assert text.startswith("# A toy")


def test_means_and_ranks_over_the_columns():
    made = {("a", "x"): 0.9, ("a", "y"): 0.5, ("b", "x"): 0.7, ("b", "y"): 0.6, ("c", "x"): 1.0}
    summary = pd.DataFrame(
        [
            {"row": r, "column": c, "metric": "accuracy", "mean": value, "seconds": 1.0}
            for (r, c), value in made.items()
        ]
    ).assign(not_blind=[None, None, "a peek", None, None], runs=5, error=0.01)
    text = overall_table(summary, "accuracy")
    assert "| a | 0.7000 | 1.5 | 2.0 |" in text
    assert "| b † | 0.6500 |" in text
    assert "| best row of each column | 0.7500 |" in text
    assert "| gap to the best single row | 0.0500 |" in text
    assert "With fewer columns or runs: c." in text
    assert "No method" in overall_table(summary[summary["row"] != "a"].iloc[1:], "accuracy")


@pytest.mark.parametrize(("runs", "error", "compared"), [(5, 0.1, True), (3, 0.1, False)])
def test_means_are_compared_over_the_same_runs(runs, error, compared):
    place = {"column": "x", "metric": "accuracy", "seconds": 1.0, "not_blind": None}
    lines = [
        {**place, "row": "a", "mean": 0.9, "runs": 5, "error": 0.1},
        {**place, "row": "b", "mean": 0.7, "runs": runs, "error": error},
        {**place, "row": "same every time", "mean": 0.6, "runs": 1, "error": 0.0},
        {**place, "row": "once", "mean": 0.8, "runs": 1, "error": float("nan")},
    ]
    text = overall_table(pd.DataFrame(lines), "accuracy")
    assert ("| b |" in text) == compared
    assert "| same every time |" in text
    assert f"With fewer columns or runs: {'' if compared else 'b, '}once." in text


def test_the_summary_of_nothing_has_its_columns():
    assert "published" in summarize(TOY, {}).columns


def test_settings_name_what_is_not_usual():
    assert settings(Guess(0.5, 0.01)) == "Guess(spread=0.01)"
    assert settings(Guess(Sure(0.2))) == "Guess(level=Sure(level=0.2))"


def test_seeds_reach_every_part_that_takes_one():
    from crowdwise.aggregate import MajorityVote
    from crowdwise.learn import NetClassifier, TwoStage

    model = runner.set_seed(TwoStage(MajorityVote(), NetClassifier()), 7)
    assert model.classifier.random_state == 7


def test_side_by_side_gives_the_same():
    made = crowdbench.table("independence")  # a real one: other processes know it by name
    jobs = [
        runner.Job(made.name, "check_independence", column, 0) for column in [*made.columns][:2]
    ]
    alone = dict(runner.outcomes(jobs, 1))
    together = dict(runner.outcomes(jobs, 2))
    assert [alone[job]["figures"] for job in jobs] == [together[job]["figures"] for job in jobs]


def test_names_in_a_list_may_have_commas():
    from crowdwise.cli.bench import split_names

    known = ["DS", "DS, uniform", "MV"]
    assert split_names("DS, uniform, MV", known) == ["DS, uniform", "MV"]
    assert split_names("MV,DS", known) == ["MV", "DS"]
    assert split_names("MV, other", known) == ["MV", "other"]
    assert split_names(None, known) is None


@pytest.mark.parametrize("name", crowdbench.names())
def test_every_table_can_be_made_and_is_consistent(name):
    made = crowdbench.table(name)
    assert made.name == name
    assert made.title
    assert made.source
    for row, column in made.cells():
        assert settings(made.rows[row].make(column))
    for first, second in made.pairs:
        assert {first, second} <= set(made.rows)
    made.cells(made.quick_rows, made.quick_columns)


def test_the_command_lists_and_runs(tmp_path, capsys):
    assert main(["bench", "--list"]) == 0
    assert "lia-table2" in capsys.readouterr().out
    words = ["bench", "toy", "--columns", "easy", "--jobs", "1", "-o", str(tmp_path)]
    assert main([*words, "--seeds", "2"]) == 0
    out = capsys.readouterr()
    assert "guess on easy, seed 1" in out.err
    assert '--columns "easy" --seeds "2"' in out.out
    assert main(["bench", "nothing"]) == 2
    assert "there is no table 'nothing'" in capsys.readouterr().err


def test_redundancy_chooses_columns():
    from argparse import Namespace

    from crowdwise.cli.bench import columns

    made = crowdbench.table("lia-table2")
    chosen = columns(made, Namespace(columns=None, redundancy="2, 39"))
    assert chosen == ["BB R=2", "BB R=39", "WS R=2", "RTE R=2"]


def test_the_summary_is_a_frame_of_records(tmp_path):
    run(tmp_path, columns=["easy"])
    stored = json.loads((tmp_path / "toy.json").read_text())
    assert pd.DataFrame(stored["summary"])["row"].tolist()[0] == "guess"
    assert stored["settings"]["sure on easy"] == "Sure()"


def test_without_a_checkout_the_command_says_where_it_looked(tmp_path, monkeypatch, capsys):
    installed = tmp_path / "site-packages" / "crowdwise" / "cli"
    monkeypatch.setattr("crowdwise.cli.bench.__file__", str(installed / "bench.py"))
    monkeypatch.chdir(tmp_path)
    assert main(["bench", "--list"]) == 1
    error = capsys.readouterr().err
    assert "the published tables are not installed with the package" in error
    assert f"searched: {tmp_path} and {installed}" in error
    assert "clone the repository of crowdwise and run the command there" in error


@pytest.mark.parametrize("inside", ["", "docs/methods"])
def test_tables_are_found_from_any_folder_of_a_checkout(tmp_path, monkeypatch, inside):
    from crowdwise.cli.bench import harness

    monkeypatch.setattr("crowdwise.cli.bench.__file__", str(tmp_path / "elsewhere" / "bench.py"))
    monkeypatch.setattr("crowdwise.cli.bench.HARNESS", "a_harness_of_a_checkout")
    monkeypatch.syspath_prepend(tmp_path)  # so that changes of the path are undone
    package = tmp_path / "checkout" / "benchmarks" / "a_harness_of_a_checkout"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    here = tmp_path / "checkout" / inside
    here.mkdir(parents=True, exist_ok=True)
    monkeypatch.chdir(here)
    found = harness()
    del sys.modules[found.__name__]
    assert Path(found.__file__).parent == package


def test_tables_are_found_beside_an_editable_install(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["bench", "--list"]) == 0
    assert "lia-table2" in capsys.readouterr().out


@pytest.mark.parametrize("name", crowdbench.names())
def test_saved_runs_belong_to_the_tables_of_today(name):
    """A run is found again by its row, its column and its settings.

    After a rename that changes no figure, rename in benchmarks/results as well; else run again.
    """
    folder = Path(__file__).parents[2] / "benchmarks" / "results"
    stored = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    results = Results(crowdbench.table(name), folder)
    known = {place: results.settings.get(place) for place in stored["settings"]}
    assert known == stored["settings"]
    assert len(results.runs) == len(stored["runs"])


class Searching(Guess):
    """One that chooses its penalty, unless it is given one."""

    def __init__(self, penalty="auto", level="auto"):
        self.penalty = penalty
        self.level = level


def test_in_a_papers_table_nothing_is_chosen_behind_its_back():
    rows = without_search({"a": Row(lambda column: Searching()), "b": Row(lambda _: Sure())})
    made = rows["a"].make("easy")
    assert (made.penalty, made.level) == (0.0, "auto")
    assert settings(made) == settings(Searching()) == "Searching()"
    assert settings(Searching(penalty=2.0)) == "Searching(penalty=2.0)"
    assert rows["b"].make("easy").level == 0.7
    fixed = without_search({"a": Row(lambda column: Searching(penalty=3.0))})["a"]
    assert fixed.make("easy").penalty == 3.0
