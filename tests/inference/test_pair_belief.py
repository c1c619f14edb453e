"""Counts of the pairs that occur, against whole matrices."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import digamma
from threadpoolctl import threadpool_limits

from crowdwise.annotations import Pairs
from crowdwise.errors import FormatError
from crowdwise.inference import divergence, expected_log, normalize
from crowdwise.inference.engines import pair_belief as module
from crowdwise.inference.engines.pair_belief import PairBelief

N_WORKERS, N_CLASSES = 6, 4


@pytest.fixture(params=[False, True], ids=["fresh", "earlier"])
def belief(request):
    """Lopsided counts; the last worker has none, the third nearly all pairs."""
    rng = np.random.default_rng(0)
    worker = np.array([0, 0, 1, 2, 2, 2, 2, 3, 4], dtype=np.int32)
    label = np.array([0, 3, 2, 0, 1, 2, 3, 1, 1], dtype=np.int32)
    pairs = Pairs(worker, label, N_WORKERS, N_CLASSES)
    earlier = rng.gamma(0.5, size=(N_WORKERS, N_CLASSES, N_CLASSES)) if request.param else None
    counts, pseudo = rng.gamma(2.0, size=(9, N_CLASSES)), rng.gamma(1.0, size=(4, 4)) + 0.01
    return PairBelief(pairs, counts, pseudo, earlier)


@pytest.fixture
def prior(belief):
    """Pseudo-counts of every worker, (worker, truth, label)."""
    return belief.pseudo + (np.zeros((6, 4, 4)) if belief.earlier is None else belief.earlier)


@pytest.fixture
def heard(belief):
    """The workers who have counts: without earlier ones, all but the last."""
    return slice(None, N_WORKERS - 1 if belief.earlier is None else None)


@pytest.fixture
def whole(belief, prior):
    """All counts, one cell at a time."""
    counts = prior.copy()
    for row, (worker, label) in enumerate(
        zip(belief.pairs.worker, belief.pairs.label, strict=True)
    ):
        counts[worker, :, label] += belief.counts[row]
    return counts


@pytest.fixture(params=[1 << 18, 8], ids=["at once", "in parts"])
def parts(request, monkeypatch):
    monkeypatch.setattr(module, "CELLS_AT_ONCE", request.param)


@pytest.mark.usefixtures("parts")
def test_logs_of_shares_and_their_prior(belief, prior, whole, heard):
    table, log_prior = belief.log_mean()
    log = np.log(normalize(whole))
    assert_allclose(table, belief.pairs.take(log))
    assert log_prior == pytest.approx((prior * log)[heard].sum())


@pytest.mark.usefixtures("parts")
def test_expected_logs_and_how_far_they_are_from_the_prior(belief, prior, whole):
    table, distance = belief.expected_log(2)
    assert_allclose(table, belief.pairs.take(expected_log(whole)))
    assert distance == pytest.approx(divergence(whole, np.broadcast_to(prior, whole.shape)))


def test_whole_matrices_and_their_means(belief, whole, heard):
    assert_allclose(belief.all_counts(), whole)
    assert_allclose(belief.total, whole.sum(axis=2))
    assert_allclose(belief.diagonal(), np.einsum("wkk->wk", normalize(whole)))
    assert_allclose(belief.mean_counts(), whole[heard].mean(axis=0))
    assert_allclose(belief.mean_shares(), normalize(whole)[heard].mean(axis=0))
    assert_allclose(belief.crowd(), belief.pairs.spread(belief.counts).sum(axis=0))


@pytest.mark.parametrize("method", ["log_mean", "expected_log"])
def test_threads_of_blas_change_no_bit(method):
    rng, found = np.random.default_rng(0), set()
    beliefs = [
        PairBelief.of_all(rng.gamma(0.1, 9, (3000, 4, 4)), rng.random((4, 4))) for _ in range(4)
    ]
    for n_threads in (1, 2):
        with threadpool_limits(n_threads):
            found.add(tuple(getattr(belief, method)(1)[1] for belief in beliefs))
    assert len(found) == 1


@pytest.mark.parametrize("expected", [False, True])
def test_tables_of_other_pairs_and_of_a_worker_nobody_knows(belief, whole, expected):
    stranger = np.random.default_rng(1).gamma(1.0, size=(4, 4))
    known = belief.with_unknown(stranger)
    every = Pairs.all_of(N_WORKERS + 1, N_CLASSES)
    counts = np.concatenate([whole, stranger[None]])
    log = expected_log(counts) if expected else np.log(normalize(counts))
    assert_allclose(known.of(every, expected=expected), every.take(log))
    own = known.of(belief.pairs, expected=expected)
    assert_allclose(own, belief.pairs.take(log[:-1]))
    assert digamma(1.0) < 0  # the two kinds of table differ


@pytest.mark.parametrize(
    "change",
    [
        lambda b: {"counts": b.counts[1:]},
        lambda b: {"counts": -b.counts},
        lambda b: {"pseudo": b.pseudo[:, 1:]},
        lambda b: {"pairs": replace(b.pairs, n_workers=5)},
        lambda b: {"pairs": replace(b.pairs, worker=b.pairs.worker + 2)},
        lambda b: {"pairs": replace(b.pairs, worker=b.pairs.worker[::-1])},
        lambda b: {"pairs": replace(b.pairs, label=b.pairs.label[1:])},
        lambda b: {"pairs": replace(b.pairs, label=b.pairs.label * 9)},
    ],
)
def test_what_a_damaged_file_may_hold_is_refused(belief, change):
    belief.refuse_misfits(N_WORKERS, N_CLASSES)
    with pytest.raises(FormatError, match=r"[Pp]airs"):
        replace(belief, **change(belief)).refuse_misfits(N_WORKERS, N_CLASSES)
