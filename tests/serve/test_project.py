"""A project from a file: every task, truth and label of it, some at a time."""

from itertools import chain

import pytest

from crowdwise.serve import project
from crowdwise.serve.actions import AddLabels, AddTasks


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
