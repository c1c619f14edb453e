"""The sample of tasks whose errors are looked at, from one engine or another."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from crowdwise.inference import MemoryEngine, canonical, fingerprint
from crowdwise.inference.canonical import count_shared, sample_shared
from crowdwise.inference.engines import FileEngine, blocks, run_ranks
from crowdwise.laws.checks import store_without_names
from crowdwise.simulate import confused_crowd, one_coin_confusion


@pytest.fixture(scope="module")
def votes():
    """Some workers label a task twice, a few of them otherwise the second time."""
    some = confused_crowd(one_coin_confusion([0.9, 0.7, 0.6] * 4, 3), 200, 3, random_state=0)
    task, worker, label = some.annotations.task, some.annotations.worker, some.annotations.label
    again = np.arange(0, len(task), 5)
    other = np.where(again % 2, label[again], (label[again] + 1) % 3)
    columns = (task, task[again]), (worker, worker[again]), (label, other)
    return type(some.annotations).from_codes(*map(np.concatenate, columns))


def clear_labels(votes):
    """(task, worker): label, of those who gave one alone; as a loop."""
    found = {}
    for task, worker, label in zip(votes.task, votes.worker, votes.label, strict=True):
        found.setdefault((int(task), int(worker)), set()).add(int(label))
    return {pair: labels.pop() for pair, labels in found.items() if len(labels) == 1}


def sample(engine, n_labels, least=3):
    of, shared = fingerprint(engine), count_shared(engine)
    return *sample_shared(engine, of, shared, n_labels, least), shared, of


def rows(crowd):
    return set(zip(crowd.task.tolist(), crowd.worker.tolist(), crowd.label.tolist(), strict=True))


def test_one_clear_label_of_each_worker_and_task_counts(votes):
    gold = np.where(np.arange(200) % 3 == 0, 2, -1)
    crowd, known, (n_tasks, n_labels), of = sample(MemoryEngine(votes, gold), 10**6)
    expected = clear_labels(votes)
    sizes = np.bincount([task for task, _ in expected], minlength=200)
    assert (n_tasks, n_labels) == ((sizes > 1).sum(), sizes[sizes > 1].sum())
    assert crowd.n_tasks == n_tasks
    assert crowd.n_annotations == n_labels
    assert sorted(crowd.redundancy) == sorted(sizes[sizes > 1])
    label_at = canonical.rank(of.classes)
    assert_array_equal(np.unique(known), sorted([-1, label_at[2]]))
    given = np.bincount(label_at[[expected[pair] for pair in expected if sizes[pair[0]] > 1]])
    assert_array_equal(np.bincount(crowd.label), given)


def test_a_part_has_the_first_tasks_of_the_whole_wherever_they_are(votes, tmp_path, monkeypatch):
    whole = sample(MemoryEngine(votes), 10**6)[0]
    few = sample(MemoryEngine(votes), 40)[0]
    assert rows(few) == rows(whole[: few.n_tasks])
    assert 30 < few.n_annotations < 45
    for name, value in {"CELLS_PER_BLOCK": 8, "CELLS_PER_SUM": 0, "MOST_BLOCKS": 16}.items():
        monkeypatch.setattr(blocks, name, value)
    stored = store_without_names(votes, tmp_path)
    for margin in (4.0, 1.01):  # the second must look twice
        monkeypatch.setattr(canonical, "MARGIN", margin)
        found = run_ranks(2, lambda group: sample(FileEngine(stored, 1, group), 40))
        for crowd in [sample(MemoryEngine(votes), 40)[0], *(own[0] for own in found)]:
            assert crowd.equals(few)


def test_labels_that_are_distributions_count_for_their_class(votes):
    soft = np.full((votes.n_annotations, 3), 0.2, np.float32)
    soft[np.arange(votes.n_annotations), votes.label] = 0.6
    plain, (spread, _, shared, _) = (
        sample(MemoryEngine(votes), 10**6),
        sample(MemoryEngine(replace(votes, soft=soft)), 10**6),
    )
    assert shared == plain[2]
    assert sorted(spread.redundancy) == sorted(plain[0].redundancy)
