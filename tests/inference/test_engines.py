"""Methods run on any engine: here on one whose tasks are in two places."""

import warnings
from copy import copy
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

from crowdwise import Annotations, aggregate
from crowdwise.base import aggregator
from crowdwise.inference import MemoryEngine, count_labels, pooled_confusion
from crowdwise.inference.engines import ALONE
from crowdwise.inference.engines.kernels import NO_TASKS

METHODS = [getattr(aggregate, name) for name in aggregate.__all__]
BLOCKWISE = [method for method in METHODS if method.traits.blockwise]
WHOLE = [method for method in METHODS if not method.traits.blockwise]


class TwoPlaces:
    """The first tasks on one engine, the others on another; nobody has all annotations."""

    group = ALONE

    def __init__(self, annotations, gold=None, n_threads=None, cut=0.3):
        at = int(cut * annotations.n_tasks)
        parts = slice(0, at), slice(at, None)
        some = [annotations[part] for part in parts]
        self.pairs, self.n_threads = annotations.pairs, n_threads
        for part in some:
            vars(part)["pairs"] = self.pairs  # tables are the same everywhere
        golds = [None if gold is None else gold[part] for part in parts]
        self.engines = [MemoryEngine(*both) for both in zip(some, golds, strict=True)]
        self.workers, self.n_tasks = annotations.workers, annotations.n_tasks
        self.n_workers, self.n_classes = annotations.n_workers, annotations.n_classes

    def labels_per_worker(self):
        return sum(engine.labels_per_worker() for engine in self.engines)

    def tally_votes(self, spread=None):
        places = zip(self.engines, self._numbered(spread), strict=True)
        first, second = (engine.tally_votes(own) for engine, own in places)
        return first + second

    def _numbered(self, spread):
        """The same where tasks are numbered over both places."""
        at = self.engines[0].n_tasks
        return spread, spread and (lambda shares, first: spread(shares, first + at))

    def sweep(self, log_prior, log_confusion, *, hard=False):
        first, second = (
            engine.sweep(log_prior, log_confusion, hard=hard) for engine in self.engines
        )
        return first + second

    def tally_pairs(self, spread=None):
        places = zip(self.engines, self._numbered(spread), strict=True)
        first, second = (engine.tally_pairs(own) for engine, own in places)
        return first + second

    def sweep_pairs(self, log_prior, table, *, hard=False):
        first, second = (engine.sweep_pairs(log_prior, table, hard=hard) for engine in self.engines)
        return first + second

    def pair_posterior(self, log_prior, table):
        return self._stack(engine.pair_posterior(log_prior, table) for engine in self.engines)

    def tally_coins(self):
        first, second = (engine.tally_coins() for engine in self.engines)
        return first + second

    def sweep_coins(self, *tables, hard=False):
        first, second = (engine.sweep_coins(*tables, hard=hard) for engine in self.engines)
        return first + second

    def coin_posterior(self, *tables):
        return self._stack(engine.coin_posterior(*tables) for engine in self.engines)

    def posterior(self, log_prior, log_confusion):
        return self._stack(engine.posterior(log_prior, log_confusion) for engine in self.engines)

    def shares(self, weights=None, *, soft=True):
        return self._stack(engine.shares(weights, soft=soft) for engine in self.engines)

    def signed_shares(self, weights):
        return self._stack(engine.signed_shares(weights) for engine in self.engines)

    @property
    def own_tasks(self):
        return 0, self.n_tasks

    def sum_blocks(self, work, shapes):
        at = self.engines[0].n_tasks
        one, first = self.engines[0].sum_blocks(work, shapes)
        two, second = self.engines[1].sum_blocks(
            lambda block, *sums: work(replace(block, first=block.first + at), *sums), shapes
        )
        return one + two, [left + right for left, right in zip(first, second, strict=True)]

    def fill_blocks(self, work):
        at = self.engines[0].n_tasks
        second = self.engines[1].fill_blocks(
            lambda block, out: work(replace(block, first=block.first + at), out)
        )
        return self._stack([self.engines[0].fill_blocks(work), second])

    def gather_blocks(self, work):
        at = self.engines[0].n_tasks
        first = self.engines[0].gather_blocks(work)
        second = self.engines[1].gather_blocks(
            lambda block: work(replace(block, first=block.first + at))
        )
        return [np.concatenate(both) for both in zip(first, second, strict=True)]

    def reweighted(self, weights, hidden=NO_TASKS, n_threads=None):
        other, at = copy(self), self.engines[0].n_tasks
        parts = hidden[hidden < at], hidden[hidden >= at] - at
        other.engines = [
            engine.reweighted(weights, some, n_threads)
            for engine, some in zip(self.engines, parts, strict=True)
        ]
        return other

    def collect(self):
        raise MemoryError("nobody has all annotations")

    def _stack(self, parts):
        return np.concatenate(list(parts))


@pytest.fixture(scope="module")
def votes(voters):
    return voters.annotations[:120]


def fitted(method, votes, gold):
    model = method(random_state=0) if "random_state" in method().get_params() else method()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(votes, gold)


@pytest.mark.parametrize("gold", [None, {3: 1, 100: 2}], ids=["labels", "gold"])
@pytest.mark.parametrize("method", BLOCKWISE, ids=lambda method: method.__name__)
def test_a_blockwise_method_needs_only_sums(method, gold, votes, monkeypatch):
    expected = fitted(method, votes, gold)
    monkeypatch.setattr(aggregator, "MemoryEngine", TwoPlaces)
    found = fitted(method, votes, gold)
    assert_allclose(found.posterior_, expected.posterior_, rtol=1e-6, atol=1e-8)
    assert_allclose(found.predict_proba(votes), expected.predict_proba(votes), atol=1e-6)


@pytest.mark.parametrize("method", WHOLE, ids=lambda method: method.__name__)
def test_a_method_that_needs_all_annotations_says_so(method, monkeypatch):
    monkeypatch.setattr(aggregator, "MemoryEngine", TwoPlaces)
    with pytest.raises(MemoryError, match="all annotations"):
        fitted(method, [[0, 0, 1], [1, 1, 0], [0, 0, 1], [1, 0, 1]], None)


def test_gold_holds_in_everything_an_engine_returns(votes):
    gold = np.where(np.arange(120) % 2 == 0, 1, -1)
    engine = MemoryEngine(votes, gold)
    log_prior, log_confusion = np.zeros(3), np.log(np.full((7, 3, 3), 1 / 3))
    assert_allclose(engine.posterior(log_prior, log_confusion)[::2], [[0, 1, 0]] * 60)
    assert_allclose(engine.sweep(log_prior, log_confusion).truths, [20, 80, 20])
    odd = votes.shares()[1::2].sum(axis=0)
    assert_allclose(engine.tally_votes().truths, odd + np.array([0, 60, 0]))
    assert_allclose(engine.expect(np.zeros((120, 3)), log_confusion).posterior[::2, 1], 1)


def test_classes_may_have_subtypes(votes):
    engine = MemoryEngine(votes, np.where(np.arange(120) == 5, 2, -1))
    rng = np.random.default_rng(0)
    log_prior, log_confusion = rng.normal(size=6), np.log(rng.dirichlet(np.ones(3), (7, 6)))
    found = engine.posterior(log_prior, log_confusion)
    assert_allclose(found[5], [0, 0, 1])
    task = range(votes.indptr[0], votes.indptr[1])
    joint = log_prior + sum(log_confusion[votes.worker[row], :, votes.label[row]] for row in task)
    share = np.exp(joint) / np.exp(joint).sum()
    assert_allclose(found[0], share.reshape(3, 2).sum(axis=1))


def test_votes_may_be_spread_before_they_are_counted(votes):
    engine = MemoryEngine(votes)
    first = engine.tally_votes(lambda shares, _: np.eye(3)[shares.argmax(axis=1)])
    assert first.truths.sum() == 120
    assert_allclose(first.truths, np.bincount(votes.votes().argmax(axis=1), minlength=3))
    assert_allclose(first.counts.sum(axis=(1, 2)), engine.labels_per_worker())


def test_some_workers_may_be_counted_together(votes):
    posterior = np.random.default_rng(1).dirichlet(np.ones(3), votes.n_tasks)
    each = count_labels(votes, posterior)
    found = count_labels(votes, posterior, np.array([1, 0, 1, -1, -1, -1, 1]))
    assert_allclose(found, [each[1], each[[0, 2, 6]].sum(axis=0)])


def test_shares_are_weighted_by_worker_and_by_annotation():
    soft = [[0.7, 0.3], [0.4, 0.6]]
    columns = ([0, 0], [0, 1], [0, 1])
    votes = Annotations.from_codes(*columns, soft=soft, weight=[1.0, 3.0])
    engine = MemoryEngine(votes)
    weights = np.array([2.0, 1.0])  # so that annotations count 2 and 3
    assert_allclose(engine.shares(weights), [[2.6 / 5, 2.4 / 5]], rtol=1e-6)
    assert_allclose(engine.shares(weights, soft=False), [[2 / 5, 3 / 5]])


def test_workers_without_labels_are_counted_too():
    votes = Annotations.from_codes([0, 1], [0, 0], [0, 1], workers=["ann", "bob"])
    assert MemoryEngine(votes).labels_per_worker().tolist() == [2, 0]


def test_pooling_draws_workers_to_the_crowd(votes):
    posterior = votes.shares()
    crowd = count_labels(votes, posterior, np.zeros(7, int))[0] + 1 / 3
    crowd /= crowd.sum(axis=1, keepdims=True)
    found = pooled_confusion(votes, posterior, pooling=1e9)
    assert_allclose(found, np.broadcast_to(crowd, (7, 3, 3)), rtol=1e-5)
