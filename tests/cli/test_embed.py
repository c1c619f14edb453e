"""crowdwise embed: a representation of every row of features."""

import numpy as np
import pandas as pd
import pytest

import crowdwise
from crowdwise.cli import main
from crowdwise.io.features import read_features

QUICK = ("--set", "epochs=1", "--set", "sizes=(8, 4)", "--seed", "0", "--quiet")


def run(*words):
    assert main([str(word) for word in words]) == 0


def test_writes_a_table_that_can_be_read_again(files, capsys):
    target, model = files.folder / "embedding.csv", files.folder / "embedder"
    words = ["embed", files.votes, "--features", files.features, "-o", target, "--model", model]
    run(*words, *QUICK[:-1])
    out, err = capsys.readouterr()
    assert out == ""
    assert "80 tasks in 4 dimensions by RLL" in err
    table = pd.read_csv(target)
    assert table["task"].tolist() == pd.read_csv(files.features)["task"].tolist()
    saved = crowdwise.load(model)
    expected = saved.transform(pd.read_csv(files.features)[["a", "b", "c"]].to_numpy())
    assert table.drop(columns="task").to_numpy() == pytest.approx(expected)
    run("fit", files.votes, "--features", target, "-o", files.folder / "m", *QUICK[-3:])


def test_npz_has_names_and_tasks_without_annotations(files):
    votes = pd.read_csv(files.votes)
    some = files.folder / "some.csv"
    votes[votes["task"] != "t7"].to_csv(some, index=False)
    target = files.folder / "embedding.npz"
    run("embed", some, "--features", files.features, "-o", target, *QUICK)
    table = read_features(target)
    assert sorted(table.ids) == sorted(files.names)
    assert table.values.shape == (80, 4)


@pytest.mark.parametrize("name", ["NeuCrowd", "TripletCenter"])
def test_embedders_of_every_family(files, name):
    target = files.folder / "embedding.parquet"
    words = ["embed", files.votes, "--features", files.features, "-o", target]
    run(*words, "--method", name, *QUICK)
    assert len(pd.read_parquet(target)) == 80


def test_a_place_for_the_result_is_required(files, fails):
    error = fails("embed", files.votes, "--features", files.features, status=2)
    assert "the following arguments are required: -o/--output" in error


def test_bad_input(files, fails):
    target = files.folder / "embedding.csv"
    words = ["embed", files.votes, "--features", files.features, "-o", target]
    assert "expected: RLL" in fails(*words, "--method", "RLLL", status=2)
    assert "no parameter 'wat'" in fails(*words, "--set", "wat=1", status=2)
    assert "--set epochs=many cannot be used" in fails(*words, "--set", "epochs=many", status=2)
    assert "no folder" in fails(*words, "--model", files.folder / "no" / "model")
    assert "missing or infinite" in fails(
        *words[:3], files.write("bad.csv", files.table.assign(a=np.nan)), *words[4:]
    )
    odd = [*words[:-1], files.folder / "embedding.xyz"]
    assert ".xyz" in fails(*odd, status=2)
    one = files.folder / "one.csv"
    pd.read_csv(files.votes).assign(label="yes").to_csv(one, index=False)
    assert "class" in fails("embed", one, *words[2:])
    assert not target.exists()
    model = files.folder / "embedder"
    run(*words, "--model", model, *QUICK)
    assert "does not predict from features" in fails("predict", model, files.features)
