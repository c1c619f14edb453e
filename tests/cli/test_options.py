"""Flags that say how to read a file."""

from argparse import ArgumentParser

import pytest

from crowdwise.cli.options import add_input_options, read_input

TABLE = "item,who,said,alt,w,when,truth\n1,a,1,x,0.5,3,1\n1,a,0,y,1,2,1\n2,b,-1,x,1,1,\n"


@pytest.fixture
def read(tmp_path):
    """Read the table with flags."""

    def with_flags(*flags, text=TABLE):
        path = tmp_path / "votes.csv"
        path.write_text(text)
        parser = ArgumentParser()
        parser.set_defaults(quiet=False)
        add_input_options(parser)
        return read_input(parser.parse_args([str(path), *flags]))

    return with_flags


def triples(annotations):
    frame = annotations.to_frame()
    return list(zip(frame["task"], frame["worker"], frame["label"], strict=True))


def truths(annotations):
    pairs = zip(annotations.tasks.tolist(), annotations.gold, strict=True)
    return {task: annotations.classes[code] for task, code in pairs if code >= 0}


NAMED = ("--worker", "who", "--label", "said")


def test_columns_are_named(read):
    annotations = read(*NAMED, "--task", "alt", "--weight", "w", "--time", "when")
    assert triples(annotations) == [("x", "a", 1), ("x", "b", -1), ("y", "a", 0)]
    assert annotations.weight.tolist() == [0.5, 1, 1]
    assert annotations.time.tolist() == [3, 1, 2]


def test_repeats_are_told_and_resolved(read, capsys):
    assert read(*NAMED).n_repeats == 1
    assert "1 repeated annotation (same worker, same task)" in capsys.readouterr().err
    assert read(*NAMED, "--repeats", "first").n_repeats == 0
    assert "repeat" not in capsys.readouterr().err


def test_missing_and_classes(read):
    annotations = read(*NAMED, "--missing", "-1", "--classes", "0,1,2", "--repeats", "last")
    assert triples(annotations) == [(1, "a", 0)]
    assert annotations.classes.tolist() == [0, 1, 2]


def test_gold_from_a_column_or_a_file(read, tmp_path, capsys):
    assert truths(read(*NAMED, "--gold", "truth")) == {1: 1}
    (tmp_path / "truth.csv").write_text("task,label\n2,1\n")
    assert truths(read(*NAMED, "--gold-file", str(tmp_path / "truth.csv"))) == {2: 1}
    assert "gold of 1 task " in capsys.readouterr().err


def test_the_format_and_rejected_rows(read):
    text = "HITId,WorkerId,AssignmentStatus,Answer.a,Answer.b\n1,2,Rejected,x,y\n1,3,Approved,x,y\n"
    annotations = read("--format", "mturk", "--question", "b", "--rejected", text=text)
    assert annotations.n_annotations == 2


def test_notes_are_told(read, capsys):
    read(*NAMED)
    told = capsys.readouterr().err.splitlines()
    assert told[0].startswith("Annotations: 3 annotations of 2 tasks")
    assert "task from column 'item'" in told
