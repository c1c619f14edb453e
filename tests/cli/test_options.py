"""Flags that say how to read a file."""

from argparse import ArgumentParser, Namespace

import pytest

from crowdwise.cli.options import (
    add_input_options,
    gold_to_learn_from,
    make_method,
    read_input,
)
from crowdwise.errors import ParameterError

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


def test_repeats_are_reported_and_resolved(read, capsys):
    assert read(*NAMED).n_repeats == 1
    assert "1 repeated annotation (same worker, same task)" in capsys.readouterr().err
    assert read(*NAMED, "--repeats", "first").n_repeats == 0
    err = capsys.readouterr().err
    assert "same worker, same task" not in err
    assert "repeated annotations left out: 1" in err


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


def test_notes_are_printed(read, capsys):
    read(*NAMED)
    told = capsys.readouterr().err.splitlines()
    assert told[0].startswith("Annotations: 3 annotations of 2 tasks")
    assert "task from column 'item'" in told


class TestParts:
    """``--set`` reaches the parameters of a method's parts."""

    @staticmethod
    def make(name, kind="learn", **settings):
        return make_method(name, settings, None, kind)

    def test_by_their_own_name(self):
        model = self.make("LIA", rounds=2, epochs=7, batch_size=16)
        assert (model.objective.rounds, model.objective.epochs) == (2, 7)
        assert model.training.batch_size == 16
        assert self.make("RLL", "embed", eta=5.0).loss.eta == 5.0
        assert self.make("CrowdClassifier", diagonal=3.0).noise.diagonal == 3.0

    def test_by_the_name_of_the_part(self):
        model = self.make("ICED", n_neighbors=3, epochs=9, warm_up__epochs=2, decoder__epochs=4)
        assert model.generator.n_neighbors == 3
        assert (model.training.epochs, model.warm_up.epochs, model.decoder.epochs) == (9, 2, 4)

    def test_an_unknown_one_is_refused_with_the_names_there_are(self):
        with pytest.raises(ParameterError, match=r"'temperature'\.\n.*loss.*eta.*form"):
            self.make("RLL", "embed", temperature=2)


@pytest.mark.parametrize(("truth", "word"), [("", "it"), ("1", "them")])
def test_gold_labels_that_are_not_used_are_counted(read, capsys, truth, word):
    table = read(*NAMED, "--task", "item", text=f"{TABLE}3,b,1,x,1,1,{truth}\n")
    args = Namespace(gold=None, gold_file=None, quiet=False)
    assert gold_to_learn_from(args, table) is None
    assert f"COLUMN learns from {word}\n" in capsys.readouterr().err


@pytest.mark.parametrize("classes", ["no,yes,", "no,,yes", "", " "])
def test_promise_20_every_class_has_a_name(files, fails, classes):
    message = fails("aggregate", files.votes, "--classes", classes, status=2)
    assert "has a class without a name" in message
