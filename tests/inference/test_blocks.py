"""Blocks: the same sums on any number of threads, and kernels that agree with loops."""

import os

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from crowdwise import Annotations
from crowdwise.inference import MemoryEngine
from crowdwise.inference.engines import CompactEngine, blocks
from crowdwise.inference.engines.blocks import add_up, count_threads, cut_tasks, in_order


def test_no_more_results_than_threads_are_ahead():
    begun = []

    def work(number):
        begun.append(number)
        return number

    for number in in_order(work, range(20), 2):
        assert max(begun) <= number + 3
    assert sorted(begun) == list(range(20))


def crowd(n_classes=3, *, weighted=False, gold=False, n_tasks=400, n_workers=9, seed=0):
    """Lopsided labels; the last two tasks have none, and no worker knows all labels."""
    rng = np.random.default_rng(seed)
    task = np.repeat(np.arange(n_tasks), rng.integers(1, 6, n_tasks))
    worker = rng.integers(0, n_workers, len(task))
    label = (
        worker + rng.integers(0, 2, len(task)) * rng.integers(0, n_classes, len(task)) // 2
    ) % n_classes
    weight = rng.uniform(0.2, 2.0, len(task)) if weighted else None
    sizes = {"tasks": np.arange(n_tasks + 2), "classes": np.arange(n_classes)}
    votes = Annotations.from_codes(task, worker, label, weight=weight, **sizes)
    known = np.where(rng.random(n_tasks + 2) < 0.2, rng.integers(0, n_classes, n_tasks + 2), -1)
    return votes, known if gold else None


def coins(votes, seed=1):
    rng = np.random.default_rng(seed)
    prior = np.log(rng.dirichlet(np.ones(votes.n_classes)))
    return (
        prior,
        np.log(rng.uniform(0.3, 0.9, votes.n_workers)),
        np.log(rng.uniform(0.05, 0.2, votes.n_workers)),
    )


def coin_table(votes, right, wrong):
    same = np.eye(votes.n_classes, dtype=bool)
    return np.where(same, right[:, None, None], wrong[:, None, None])


@pytest.fixture(params=[False, True], ids=["labels", "gold"])
def gold(request):
    return request.param


@pytest.fixture(params=[False, True], ids=["plain", "weighted"])
def weighted(request):
    return request.param


def test_sums_are_added_in_one_order():
    parts = [np.float64(0.1) * 3.0**power for power in range(11)]
    found = add_up((np.array([part]),) for part in parts)[0][0]
    p = parts
    eight = ((p[0] + p[1]) + (p[2] + p[3])) + ((p[4] + p[5]) + (p[6] + p[7]))
    assert found == eight + ((p[8] + p[9]) + p[10])


def test_results_come_in_the_order_of_the_items():
    assert list(in_order(lambda x: x * x, list(range(50)), 4)) == [x * x for x in range(50)]


def test_an_error_in_a_thread_is_raised():
    with pytest.raises(ZeroDivisionError):
        list(in_order(lambda x: 1 // x, [2, 1, 0, 3], 2))


def test_blocks_are_not_larger_than_memory_allows(monkeypatch):
    monkeypatch.setattr(blocks, "MOST_CELLS", 1000)
    cut = cut_tasks(5000, 10_000, lambda cells: (cells // 2).astype(int), 10**9)
    assert len(cut) == 16  # however large the tables are
    assert (np.diff(cut) <= 500).all()


def test_threads_are_counted_as_scikit_learn_does(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(24)), raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert [count_threads(n) for n in (None, 3, -1, -2, -40)] == [24, 3, 24, 23, 1]
    for limit, found in {
        "4": [4, 4, 3],
        "2,8": [2, 2, 1],
        "99": [24, 24, 23],
        "": [24, 24, 23],
    }.items():
        monkeypatch.setenv("OMP_NUM_THREADS", limit)
        assert [count_threads(n) for n in (None, -1, -2)] == found
    assert count_threads(30) == 30


@pytest.mark.usefixtures("either_loop")
def test_the_same_bits_on_any_number_of_threads(monkeypatch, gold, weighted):
    monkeypatch.setattr(blocks, "CELLS_PER_BLOCK", 60)
    votes, known = crowd(gold=gold, weighted=weighted)
    prior, right, wrong = coins(votes)
    table = np.log(np.random.default_rng(3).dirichlet(np.ones(3), (9, 3)))

    def found(n_threads):
        engine = MemoryEngine(votes, known, n_threads)
        assert len(engine._cut(0)) == 16
        sums = (
            engine.sweep(prior, table),
            engine.tally_votes(),
            engine.sweep_coins(prior, right, wrong),
        )
        return [engine.posterior(prior, table)] + [
            value for part in sums for value in vars(part).values()
        ]

    first = found(1)
    for n_threads in (2, 4, 16):
        for expected, other in zip(first, found(n_threads), strict=True):
            assert_array_equal(other, expected)


@pytest.mark.usefixtures("either_loop")
@pytest.mark.parametrize("n_classes", [2, 3, 7, 30])
def test_votes_are_counted_like_the_shares_they_are(n_classes, gold, weighted):
    votes, known = crowd(n_classes, gold=gold, weighted=weighted)
    engine = MemoryEngine(votes, known)
    shares = votes.shares()
    if gold:
        shares[known >= 0] = np.eye(n_classes)[known[known >= 0]]
    found = engine.tally_votes()
    assert_allclose(found.truths, shares.sum(axis=0))
    assert_allclose(found.counts, engine.count(shares), atol=1e-12)
    right = np.einsum("wkk->w", found.counts)
    assert_allclose(engine.tally_coins().right, right)
    assert_allclose(engine.tally_coins().given, found.counts.sum(axis=(1, 2)))
    assert_allclose(engine.tally_coins().truths, found.truths)


@pytest.mark.usefixtures("either_loop")
@pytest.mark.parametrize("hard", [False, True], ids=["soft", "hard"])
@pytest.mark.parametrize("n_classes", [2, 3, 7, 30])
def test_coins_equal_the_table_that_they_stand_for(n_classes, hard, gold, weighted):
    votes, known = crowd(n_classes, gold=gold, weighted=weighted)
    engine, (prior, right, wrong) = MemoryEngine(votes, known), coins(votes)
    expected = engine.sweep(prior, coin_table(votes, right, wrong), hard=hard)
    found = engine.sweep_coins(prior, right, wrong, hard=hard)
    assert_allclose(found.evidence, expected.evidence)
    assert_allclose(found.truths, expected.truths)
    assert_allclose(found.right, np.einsum("wkk->w", expected.counts), atol=1e-12)
    assert_allclose(found.given, expected.counts.sum(axis=(1, 2)))
    posterior = engine.posterior(prior, coin_table(votes, right, wrong))
    assert_allclose(engine.coin_posterior(prior, right, wrong), posterior, atol=1e-12)
    by_label = [np.repeat(part[:, None], n_classes, axis=1) for part in (right, wrong)]
    split = engine.sweep_coins(prior, *by_label, hard=hard)
    assert_allclose(split.right, np.einsum("wkk->wk", expected.counts), atol=1e-12)
    assert_allclose(split.given, expected.counts.sum(axis=1), atol=1e-12)


@pytest.mark.usefixtures("either_loop")
def test_with_very_many_classes_only_those_given_are_looked_at(gold, weighted):
    votes, known = crowd(30, gold=gold, weighted=weighted)
    votes = votes[:400]  # those without labels do not count there
    known = None if known is None else known[:400]
    prior, right, wrong = coins(votes)
    few, whole = CompactEngine(votes, known), MemoryEngine(votes, known)
    for found, expected in (
        (few.sweep_coins(prior, right, wrong), whole.sweep_coins(prior, right, wrong)),
        (few.tally_coins(), whole.tally_coins()),
    ):
        for name, value in vars(expected).items():
            assert_allclose(getattr(found, name), value, atol=1e-12, err_msg=name)


@pytest.mark.usefixtures("either_loop")
def test_tables_have_rows_for_the_pairs_that_occur(gold, weighted):
    votes, known = crowd(30, gold=gold, weighted=weighted)
    pairs, engine = votes.pairs, MemoryEngine(votes, known)
    seen = {(int(w), int(c)) for w, c in zip(votes.worker, votes.label, strict=True)}
    assert sorted(seen) == list(zip(pairs.worker.tolist(), pairs.label.tolist(), strict=True))
    assert not pairs.whole
    prior, table = np.zeros(30), np.log(np.random.default_rng(3).dirichlet(np.ones(30), (9, 30)))
    found = engine.sweep_pairs(prior, pairs.take(table))
    offset = MemoryEngine(votes, known).expect(np.zeros((votes.n_tasks, 30)), table)
    assert_allclose(found.evidence, offset.evidence)
    assert_allclose(pairs.spread(found.counts), offset.counts, atol=1e-12)
    assert_allclose(pairs.add_up(found.counts), offset.counts.sum(axis=2), atol=1e-12)
    assert_allclose(engine.pair_posterior(prior, pairs.take(table)), offset.posterior, atol=1e-12)


def test_a_crowd_that_uses_nearly_all_labels_has_all_pairs():
    rng = np.random.default_rng(0)
    votes = Annotations.from_codes(*(rng.integers(0, n, 5000) for n in (900, 6, 4)))
    assert votes.pairs.whole
    assert votes.pair_cells is votes.cells


@pytest.mark.usefixtures("either_loop")
@pytest.mark.parametrize("n_workers", [40, 50_000])
def test_codes_are_places_of_pairs(n_workers):
    rng = np.random.default_rng(0)
    worker, label = rng.integers(0, n_workers, 300), rng.integers(0, 200, 300)
    votes = Annotations.from_codes(
        np.arange(300) // 3, worker, label, workers=np.arange(n_workers), classes=np.arange(200)
    )
    pairs, code = votes.pairs, votes.pair_cells.code
    assert_array_equal(pairs.worker[code], votes.worker)
    assert_array_equal(pairs.label[code], votes.label)
