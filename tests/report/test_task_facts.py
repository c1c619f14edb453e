"""Labels of tasks, against plain loops."""

import numpy as np
import pytest

from crowdwise.annotations import Annotations
from crowdwise.report.facts import tasks as module
from crowdwise.report.facts.tasks import measure_contest, task_facts, votes_by_task


def test_every_column_matches_a_plain_loop(crowd, posterior):
    data, truth = crowd
    found = task_facts(data, posterior, truth)
    rows = {}
    for i, task in enumerate(data.tasks.tolist()):
        labels = data.label[data.indptr[i] : data.indptr[i + 1]].tolist()
        rows[task] = (int(posterior[i].argmax()), float(posterior[i].max()), labels)
    assert sorted(found.name) == sorted(rows)
    for k, name in enumerate(found.name):
        label, sure, labels = rows[name]
        assert found.label[k] == label
        assert found.confidence[k] == pytest.approx(sure)
        assert found.n_labels[k] == len(labels)
        assert found.support[k] == pytest.approx(labels.count(label) / max(len(labels), 1))
        assert found.votes[[k]].toarray()[0].tolist() == [labels.count(c) for c in range(3)]
        assert data.classes[found.truth[k]] == truth[name]
    assert found.n_uncertain == sum(sure < 0.9 for _, sure, _ in rows.values())
    overruled = sum(
        labels.count(label) < max(map(labels.count, range(3))) for label, _, labels in rows.values()
    )
    assert found.n_overruled == overruled > 0
    assert found.mean_confidence == pytest.approx(np.mean([sure for _, sure, _ in rows.values()]))
    assert found.histogram.sum() == len(rows)


def test_the_least_sure_come_first(crowd, posterior):
    found = task_facts(crowd[0], posterior, None)
    assert (np.diff(found.confidence) >= 0).all()
    assert found.truth is None


def test_contest_is_the_chance_that_two_labels_differ_less_for_few():
    data = Annotations.from_codes(
        [0, 0, 1, 1, 1, 2, 3, 3, 3, 3], list(range(10)), [0, 1, 0, 0, 1, 0, 0, 0, 1, 1]
    )
    expected = []
    for labels in ([0, 1], [0, 0, 1], [0], [0, 0, 1, 1]):
        n = len(labels)
        differ = sum(a != b for a in labels for b in labels) / n**2
        expected.append(differ * n / (n + 1))
    assert measure_contest(votes_by_task(data)) == pytest.approx(expected)


def test_contested_tasks_are_the_most_evenly_split(crowd, posterior):
    found = task_facts(crowd[0], posterior, None)
    worst = found.split[found.contested]
    assert len(worst) == 20
    assert (np.diff(worst) <= 0).all()
    assert worst[-1] >= np.sort(found.split)[-20]


def test_a_task_without_labels_has_a_row():
    data = Annotations.from_codes([0, 0], [0, 1], [1, 1], tasks=["a", "nobody"])
    posterior = np.array([[0.0, 1.0], [0.3, 0.7]])
    found = task_facts(data, posterior, None)
    assert found.name == ["nobody", "a"]
    assert found.n_labels.tolist() == [0, 2]
    assert found.support.tolist() == [0, 1]
    assert found.n_overruled == 0
    assert not len(found.contested)


def test_too_many_tasks_are_cut_which_is_reported(crowd, posterior, monkeypatch):
    monkeypatch.setattr(module, "MOST_TASKS", 30)
    found = task_facts(crowd[0], posterior, None)
    assert len(found.name) == 30
    assert found.note.startswith("The 30 least confident of 160 tasks")
    assert found.n_tasks == 160
    assert found.confidence.max() <= np.sort(posterior.max(axis=1))[29]
    assert found.histogram.sum() == 160
