"""Labels from the command line, of a file that memory does not hold."""

import numpy as np
import pandas as pd
import pytest

from crowdwise import read
from crowdwise.aggregate import BayesBag, DawidSkene
from crowdwise.cli import main
from crowdwise.io import stream
from crowdwise.simulate import confused_crowd


def test_a_file_too_large_for_memory_stays_on_disk(tmp_path, monkeypatch, capsys):
    pytest.importorskip("pyarrow")
    votes = confused_crowd(np.tile(0.7 * np.eye(3) + 0.1, (6, 1, 1)), 50, 4, random_state=0)
    path, output = tmp_path / "votes.csv", tmp_path / "labels.parquet"
    votes.annotations.to_frame().to_csv(path, index=False)
    asked = ["aggregate", str(path), "--method", "DawidSkene", "-o", str(output)]
    assert main(asked) == 0
    expected = pd.read_parquet(output).set_index("task")
    monkeypatch.setattr(stream, "available_memory", lambda: 1000)
    assert main([*asked, "--proba"]) == 0
    assert "votes.csv is large: it stays on disk" in capsys.readouterr().err
    found = pd.read_parquet(output).set_index("task").loc[expected.index]
    assert found["label"].tolist() == expected["label"].tolist()
    assert np.allclose(found["confidence"], expected["confidence"])
    assert {"proba_0", "proba_1", "proba_2"} <= set(found.columns)
    assert main([*asked[:4], "-o", str(tmp_path / "labels.csv")]) == 2
    assert "a file named .parquet" in capsys.readouterr().err
    assert main(["aggregate", str(path), "--method", "MMSR", "-o", str(output)]) == 1
    assert "needs all annotations in memory" in capsys.readouterr().err
    assert main(["aggregate", str(path), "-o", str(output)]) == 0  # the default answer
    assert "tasks labeled by BayesBag" in capsys.readouterr().err
    default = pd.read_parquet(output).set_index("task")["confidence"]
    in_memory = BayesBag().fit(read(path)).probas_.max(axis=1)
    assert np.allclose(default, in_memory[default.index], atol=1e-9)
    assert main([*asked, "--missing", "2"]) == 2
    assert "--missing cannot be used" in capsys.readouterr().err
    parts = tmp_path / "parts"
    parts.mkdir()
    table = votes.annotations.to_frame().set_axis(["Item", "annotator", "answer"], axis=1)
    table[:90].to_parquet(parts / "part-0.parquet")
    table[90:].to_parquet(parts / "part-1.parquet")
    (parts / "_SUCCESS").touch()
    assert main(["aggregate", str(parts), *asked[2:]]) == 0
    assert "parts is large: it stays on disk" in capsys.readouterr().err
    found = pd.read_parquet(output).set_index("task").loc[expected.index]
    assert found["label"].tolist() == expected["label"].tolist()
    table.rename(columns={"answer": "what"}).to_csv(tmp_path / "odd.csv", index=False)
    assert main(["aggregate", str(tmp_path / "odd.csv"), *asked[2:]]) == 1
    assert "--label" in capsys.readouterr().err
    heavy = votes.annotations.to_frame().assign(trust=3.0)
    heavy.loc[heavy["label"] == 0, "trust"] = 0.0
    heavy.to_csv(path, index=False)
    assert main([*asked, "--weight", "trust"]) == 0
    found = pd.read_parquet(output).set_index("task")["label"]
    in_memory = DawidSkene().fit(read(path, weight="trust")).labels_
    assert (found == in_memory[found.index]).all()
    assert set(in_memory.index) - set(found.index) == set(heavy["task"]) - set(
        heavy["task"][heavy["trust"] > 0]
    )
    expected = expected.loc[found.index]
    assert (found != expected["label"]).any()


def test_labels_are_inferred_on_a_device(tmp_path, capsys):
    pytest.importorskip("torch")
    votes = confused_crowd(np.tile(0.7 * np.eye(3) + 0.1, (6, 1, 1)), 50, 4, random_state=0)
    path = tmp_path / "votes.csv"
    votes.annotations.to_frame().to_csv(path, index=False)
    asked = ["aggregate", str(path), "--quiet", "--method"]
    assert main([*asked, "DawidSkene"]) == 0
    expected = capsys.readouterr().out
    assert main([*asked, "DawidSkene", "--device", "cpu"]) == 0
    assert capsys.readouterr().out == expected
    assert main([*asked, "DawidSkene", "--device", "tpu"]) != 0
    assert "cuda:1" in capsys.readouterr().err
    assert main([*asked, "KOS", "--device", "cpu"]) == 2
    assert "KOS does not run on a GPU" in capsys.readouterr().err


def test_of_one_class_no_accuracy_is_expected(tmp_path, capsys):
    path, page = tmp_path / "votes.csv", tmp_path / "page.html"
    path.write_text(
        "task,worker,label\n" + "".join(f"{k},{w},yes\n" for k in range(12) for w in "abc")
    )
    assert main(["aggregate", str(path)]) == 0
    said = capsys.readouterr().err
    assert "nothing can be said of accuracy" in said
    assert "expected accuracy" not in said
    assert main(["report", str(path), "-o", str(page)]) == 0
    said = capsys.readouterr().err
    assert "only one class" in said
    assert "expects" not in said
    assert "contradict" not in said
