"""A project from a file: every task, truth and label of it, some at a time."""

from itertools import chain

import pytest

from crowdwise.errors import CrowdwiseError
from crowdwise.serve import Service, project
from crowdwise.serve.actions import AddLabels, AddTasks
from crowdwise.serve.start import prepare


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    monkeypatch.setattr(project, "BATCH", 2)


def read(path, text):
    path.write_text(text)
    actions = list(project.read_project(path).to_actions())
    added = [one for one in actions if isinstance(one, AddTasks)]
    labels = [one.rows for one in actions if isinstance(one, AddLabels)]
    parts = [one.tasks for one in added], [one.gold for one in added], labels
    assert all(len(part) <= 2 for part in chain(*parts))
    return [list(chain(*part)) for part in parts]


def test_tasks_with_texts_and_truths(tmp_path):
    rows = "task,text,gold\na,one,yes\nb,two,\nc,three,no\nd,four,no\n"
    tasks, gold, labels = read(tmp_path / "tasks.csv", rows)
    texts = ["one", "two", "three", "four"]
    assert tasks == [(name, {"text": text}) for name, text in zip("abcd", texts, strict=True)]
    assert gold == [("a", "yes"), ("c", "no"), ("d", "no")]
    assert labels == []


def test_labels_of_tasks(tmp_path):
    rows = [("a", "ann", "yes"), ("a", "bob", "no"), ("b", "ann", "no"), ("c", "bob", "yes")]
    text = "\n".join(map(",".join, [("task", "worker", "label"), *rows]))
    tasks, gold, labels = read(tmp_path / "votes.csv", text)
    assert [name for name, _ in tasks] == ["a", "b", "c"]
    assert gold == []
    assert sorted(labels) == rows


def begin(path, text):
    path.write_text(text)
    return project.read_project(path)


def test_promise_service_truths_of_a_project_are_read_as_elsewhere(tmp_path):
    path = tmp_path / "tasks.csv"
    found = begin(path, "task,gold,topic\na,1.0,x\nb,NA,y\nc,2,z\nd,,z\n")
    assert found.gold == [("a", "1"), ("c", "2")]
    assert found.classes == ("1", "2")
    assert found.notes == ("columns left out: 'topic'", "truths taken as missing: 'NA'")
    (note,) = begin(path, "task,gold\na,yes\nb, yes\nc,no\n").notes
    assert note.startswith("2 classes differ only by surrounding spaces")


def test_promise_service_what_is_left_out_of_labels_is_said(tmp_path):
    path = tmp_path / "votes.csv"
    found = begin(path, "task,worker,label,text\n1.0,w,yes,one\n2.0,w,NA,two\n3.0,w,no,\n")
    assert found.tasks == {"1": {"text": "one"}, "2": {"text": "two"}, "3": {}}
    assert found.labels == [("1", "w", "yes"), ("3", "w", "no")]
    assert "rows without a label left out: 1" in found.notes
    assert found.notes[-1] == "tasks without text and image: 1"
    for column, values in (("weight", "12"), ("proba_yes,proba_no", ["1,0", "0,1"])):
        with pytest.raises(CrowdwiseError, match=r"count once each(.|\n)*fix: "):
            begin(path, f"task,worker,label,{column}\na,v,yes,{values[0]}\na,w,no,{values[1]}\n")


@pytest.mark.parametrize(
    ("text", "classes", "message"),
    [
        ("task,text\na,x\n,y\n", ("yes", "no"), "cannot be used for a task"),
        ('task,worker,label\na,"w\tx",yes\nb,w,no\n', (), "cannot be used for a worker"),
        ('task,worker,label\na,w,"y\ns"\nb,w,no\n', (), "cannot be used for a class"),
        ("task,worker,label\na,w,Yes\nb,w,no\n", ("yes", "no"), "not named by --classes"),
        ("task,worker,label\na,w,yes\n", (), "has 1 class"),
    ],
)
def test_promise_service_of_a_file_that_is_refused_nothing_is_stored(
    address, tmp_path, text, classes, message
):
    found = begin(tmp_path / "project.csv", text)
    with Service(address) as service:
        with pytest.raises(CrowdwiseError, match=rf"{message}(.|\n)*fix: "):
            prepare(service, found, {"classes": classes})
        assert service.board.seq == 0


def test_promise_service_what_a_second_file_does_not_change_is_said(address, tmp_path):
    path = tmp_path / "project.csv"
    with Service(address) as service:
        prepare(service, begin(path, "task,text,gold\na,one,yes\nb,two,no\n"), {})
        assert prepare(service, begin(path, path.read_text()), {}).endswith("2 classes")
        said = prepare(service, begin(path, "task,text,gold\na,other,maybe\nc,three,no\n"), {})
        assert "new: 'maybe'" in said
        assert "1 task stored before with other content, which is kept" in said
        assert service.board.content[0] == {"text": "one"}
