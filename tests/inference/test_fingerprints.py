from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from crowdwise import Annotations
from crowdwise.inference import MemoryEngine, fingerprint, fingerprint_workers, rank_equals
from crowdwise.inference.engines import FileEngine, blocks, run_ranks
from crowdwise.laws.checks import store_without_names
from crowdwise.simulate import confused_crowd, one_coin_confusion


@pytest.fixture(scope="module")
def votes():
    crowd = confused_crowd(one_coin_confusion([0.9, 0.7, 0.6, 0.5] * 10, 3), 200, 4, random_state=0)
    return crowd.annotations


def of_tasks(votes, truth):
    engine = MemoryEngine(votes, truth)
    (block,) = (engine._load(edges) for edges in engine._cut(0))
    return fingerprint(engine).tasks(block)


def test_workers_who_labeled_differently_differ(votes):
    assert len(np.unique(fingerprint_workers(votes))) == votes.n_workers


def test_names_and_order_do_not_enter(votes):
    rng = np.random.default_rng(0)
    task, worker, label = (rng.permutation(n) for n in (*votes.shape, votes.n_classes))
    rows = rng.permutation(votes.n_annotations)
    moved = Annotations.from_codes(
        task[votes.task][rows], worker[votes.worker][rows], label[votes.label][rows]
    )
    assert_array_equal(fingerprint_workers(moved)[worker], fingerprint_workers(votes))


def test_one_other_label_changes_a_fingerprint(votes):
    label = votes.label.copy()
    label[5] = (label[5] + 1) % 3
    other = fingerprint_workers(replace(votes, label=label))
    assert other[votes.worker[5]] != fingerprint_workers(votes)[votes.worker[5]]


def test_weights_enter_and_labels_of_no_weight_do_not(votes):
    weight = np.ones(votes.n_annotations)
    weight[3], plain = 2.0, fingerprint_workers(votes)
    assert (
        fingerprint_workers(replace(votes, weight=weight))[votes.worker[3]]
        != plain[votes.worker[3]]
    )
    weight[3] = 0.0
    kept = np.arange(votes.n_annotations) != 3
    assert_array_equal(
        fingerprint_workers(replace(votes, weight=weight)), fingerprint_workers(votes.filter(kept))
    )


def test_equals_are_ranked():
    values = np.array([7, 3, 7, 7, 3, 1], dtype=np.uint64)
    assert_array_equal(rank_equals(values), [0, 0, 1, 2, 1, 0])


def test_tasks_differ_by_labels_and_by_who_was_right(votes):
    truth = np.where(np.arange(votes.n_tasks) % 2, votes.label[votes.indptr[:-1]], -1)
    before = of_tasks(votes, truth)
    assert len(np.unique(before)) == votes.n_tasks
    other = truth.copy()
    other[1] = (other[1] + 1) % 3
    assert_array_equal(np.flatnonzero(of_tasks(votes, other) != before), [1])


def test_names_and_order_do_not_enter_the_fingerprints_of_tasks(votes):
    rng = np.random.default_rng(1)
    task, worker, label = (rng.permutation(n) for n in (*votes.shape, votes.n_classes))
    rows = rng.permutation(votes.n_annotations)
    moved = Annotations.from_codes(
        task[votes.task][rows], worker[votes.worker][rows], label[votes.label][rows]
    )
    truth = np.arange(votes.n_tasks) % 4 - 1
    there = np.empty_like(truth)
    there[task] = np.where(truth >= 0, label[truth], -1)
    assert_array_equal(of_tasks(moved, there)[task], of_tasks(votes, truth))


def test_blocks_and_ranks_find_the_same_numbers(votes, tmp_path, monkeypatch):
    for name, value in {"CELLS_PER_BLOCK": 8, "CELLS_PER_SUM": 0, "MOST_BLOCKS": 16}.items():
        monkeypatch.setattr(blocks, name, value)
    expected = fingerprint(MemoryEngine(votes))
    stored = store_without_names(votes, tmp_path)

    def work(group):
        return fingerprint(FileEngine(stored, 1, group))

    for found in [*run_ranks(3, work), fingerprint(FileEngine(stored))]:
        assert_array_equal(found.workers, expected.workers)
        assert_array_equal(found.classes, expected.classes)
