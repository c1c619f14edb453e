"""BayesBag: a Bayesian bootstrap over workers around another method."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from copy import copy
from typing import ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from crowdwise import progress
from crowdwise.aggregate.dawid_skene import DawidSkene
from crowdwise.aggregate.ibcc import IBCC
from crowdwise.aggregate.one_coin import OneCoin
from crowdwise.aggregate.shared_errors import Dependence, measure_dependence
from crowdwise.annotations import Annotations
from crowdwise.base import DEVICES, Aggregator, ConfusionModel, PairModel, Traits, at_least, between
from crowdwise.base.params import check_params
from crowdwise.errors import FormatError, ParameterError, explain
from crowdwise.inference import (
    Confidence,
    Engine,
    Fingerprints,
    HiddenGold,
    MemoryEngine,
    Posterior,
    fingerprint,
    normalize,
)
from crowdwise.inference.bag_sum import BagSum
from crowdwise.inference.engines.blocks import count_threads, in_order
from crowdwise.inference.engines.kernels import Block, count_block
from crowdwise.inference.engines.pair_belief import PairBelief
from crowdwise.inference.worker_weights import ROUND, draw_weights_of
from crowdwise.memory import LARGE
from crowdwise.typing import Array, Floats, RandomState

NAMES = {"tasks_", "workers_", "classes_"}
FEWEST, FEW, USUAL, MANY = 10, 20, 50, 200  # bags
LITTLE, MUCH = 400_000, 10_000_000  # annotations times bags that cost little, and much
EVEN = 0.05  # part of the class prior that all classes share, so that none is lost
WHOLE = 0.05  # weight of the fit without random weights, which settles near ties
HALF = 0.5  # likewise if workers seem to err independently; errors that all share do not show
OTHERS = 20  # maximum number of bags of the second base, which has a small weight


class BayesBag(PairModel):
    """Infer truths with calibrated confidence, as the average over many reweighted crowds.

    A method that assumes independent workers is overconfident, since workers err together and
    no model of them is exactly right. Here it is fitted many times, each time with random
    weights of the *workers*, and its posteriors are averaged: what depends on single workers
    averages out, and the remaining probabilities are nearly calibrated.

    Parameters
    ----------
    base : Aggregator, optional
        The method that is fitted to each bag, any in which labels can have weights. By
        default Dawid-Skene with matrices pulled toward the crowd's,
        ``DawidSkene(smoothing=(4, 1), pooling=3, max_iter=40, tol=1e-4)``, with the class
        prior of IBCC on the whole crowd, since a bag has too few workers to tell a rare class
        from wrong labels. Where the matrices of ten bags would take more than 1 GB, as with a
        thousand classes, ``OneCoin(max_iter=40, tol=1e-4)``, which has none.
    n_bags : int, optional
        Maximum number of bags; by default 50, up to 200 for a crowd of less than 8,000
        annotations and down to 20 for more than 200,000, or 10 where their matrices are
        large. Fitting stops earlier if the answer does not change any more.
    shares : float, default=0.05
        Weight of each task's own share of labels in its answer.
    dependence : float, optional
        How much workers err together, the correlation of their errors on the same task: ``n``
        labels of a task count as ``n / (1 + (n - 1) * dependence)`` independent ones in its
        confidence. By default it is measured, from the labels alone.
    device : str, optional
        "cuda" or "cuda:1" to fit the bags on a GPU (needs PyTorch), "cpu" for the same code
        without one; by default in compiled code on this machine's cores.
    random_state : int, RandomState or None, default=0
        Random seed of the weights. A worker's weights depend on it and on what the worker
        labeled, not on names or the order of rows.

    Attributes
    ----------
    bags_ : list of Aggregator
        The fitted bases, without their posteriors; the first one is fitted to the whole
        crowd: IBCC by default.
    weights_ : ndarray of shape (n_bags, n_workers)
        Weight of each worker in each of these, 1 in the first.
    n_second_ : int
        How many of these, at the end, have the second base: one-coin models, fitted if
        there are 20 known truths or more (and no other ``base`` is given).
    dependence_, independent_ : float
        The value used for ``dependence``, and the probability that workers err independently.
    shares_, power_, second_ : float
        The value used for ``shares``, a power of the mean posteriors, and the weight of the
        second base. With 20 known truths or more, these make the truths most probable, given
        the bags that have not seen them; otherwise they are ``shares``, 1 and 0.
    prior_ : ndarray of shape (n_classes,)
        P(truth), the mean of ``posterior_``.
    confusion_ : ndarray of shape (n_workers, n_classes, n_classes)
        P(label | truth) of each worker under ``posterior_``, with one label of the crowd's
        confusion more; the axes are worker, truth, label.
    skills_ : Series
        Probability that each worker is right.

    Notes
    -----
    The maths::

        u[b, w] ~ Exponential(1)
        posterior[b] = that of the base where worker w counts u[b, w] times
        mean = (1 - whole) * mean over b of posterior[b] + whole * the posterior where all count
            once; whole goes from 0.05 to 0.5 with P(workers err independently)
        sure[i, k] proportional to mean[i, k] ** (power / (1 + (n_labels[i] - 1) * dependence))
        P(truth of i = k) = (1 - shares) * sure[i, k] + shares * share[i, k]

    Works when the base does, and is calibrated: over real crowds its log loss is less
    than half of Dawid-Skene's, with better accuracy. The default of ``crowdwise aggregate``.

    The dependence is the mean correlation of two workers' errors on the same task, minus that
    of crowds drawn from a model of independent workers, divided by the visible part of a
    correlation in crowds drawn with one; if it is uncertain, it is shrunk toward that of typical
    real crowds. A share of 0.7 of it counts, since differences between bags account for the rest.

    Fails when most workers err together on the same tasks: it is less overconfident then, but
    the labels cannot show it. With 20 known truths or more (``gold``) it learns how confident to
    be, and the weights of one-coin models and plain shares. Where one worker is far better than
    all others, bags that give this worker little weight follow the others: DawidSkene and IBCC
    are then right on up to four tasks in a hundred more.

    References
    ----------
    Rubin (1981). The Bayesian bootstrap. Annals of Statistics 9(1). doi:10.1214/aos/1176345338

    Bühlmann (2014). Discussion of Big Bayes stories and BayesBag. Statistical Science 29(1).
    doi:10.1214/13-STS460

    Examples
    --------
    >>> labels = [[0, 0, 1], [1, 1, 0], [0, 0, 1], [1, 1, 0]]  # tasks x workers
    >>> BayesBag().fit_predict(labels).tolist()
    [0, 1, 0, 1]
    """

    _axes = {**PairModel._axes, "weights_": ("bags", "workers_")}
    traits = Traits(stochastic=True, learns_from_gold=True)
    default_base: ClassVar[Aggregator] = DawidSkene(
        smoothing=(4.0, 1.0), pooling=3.0, max_iter=40, tol=1e-4
    )
    default_whole: ClassVar[Aggregator] = IBCC(max_iter=40, tol=1e-4)
    default_second: ClassVar[Aggregator] = OneCoin(max_iter=40, tol=1e-4)
    _parameter_constraints = {
        "base": [Aggregator, None],
        "n_bags": [at_least(1), None],
        "shares": [between(0.0, 1.0)],
        "dependence": [between(0.0, 1.0), None],
        "device": DEVICES,
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        base: Aggregator | None = None,
        *,
        n_bags: int | None = None,
        shares: float = 0.05,
        dependence: float | None = None,
        device: str | None = None,
        random_state: RandomState = 0,
    ) -> None:
        self.base = base
        self.n_bags = n_bags
        self.shares = shares
        self.dependence = dependence
        self.device = device
        self.random_state = random_state

    def _refuse(self, data: Annotations) -> None:
        base = self._base()
        check_params(base)
        base._refuse(data)
        if not base.traits.weighted or base.traits.abstention_counts:
            raise ParameterError(
                explain(
                    f"{type(base).__name__} cannot be bagged: its workers cannot have weights.",
                    expected="a method in which a label of weight two equals a repeated row",
                    fix="choose another base, such as IBCC(), or none",
                )
            )
        if self.device is not None and "device" not in base.get_params(deep=False):
            raise ParameterError(
                explain(
                    f"{type(base).__name__} cannot be fitted on another device.",
                    fix="choose another base, such as IBCC(), or leave device out",
                )
            )

    def _note_order(self, classes: Array) -> None:
        """Log the order of the classes, if it matters to the base."""
        self._base()._note_order(classes)

    def _base(self) -> Aggregator:
        return self.default_base if self.base is None else self.base

    def _fit(self, engine: Engine) -> Posterior:
        n_bags, light = self._plan(engine)
        of = fingerprint(engine)
        weights = draw_weights_of(of.workers, n_bags, self.random_state)
        weights = np.vstack([np.ones(engine.n_workers), weights])
        hidden = HiddenGold.of(engine, of)
        self.dependence_, self.independent_, _ = self._dependence(engine, of)
        n_ahead, n_threads = count_ahead(engine)

        def fit(number: int, model: Aggregator) -> tuple[Aggregator, Posterior]:
            unseen = hidden.task[hidden.is_hidden(number)]
            own = engine.reweighted(weights[number], unseen, n_threads)
            return self._fit_bag(own, clone(model), number)

        whole, bags, second = BagSum(hidden), BagSum(hidden), BagSum(hidden)
        with warnings.catch_warnings(), progress.bar("bags, at most", n_bags, "bag") as bar:
            warnings.simplefilter("ignore", ConvergenceWarning)
            whole_base = self.default_second if light else self.default_whole
            first, posterior = fit(0, self.base or whole_base)
            base = self.default_second if light else self._with_classes_of(first)
            whole.add(0, posterior)
            self.bags_ = [first]
            for bag, posterior in in_order(lambda n: fit(n + 1, base), range(n_bags), n_ahead):
                bags.add(len(self.bags_), posterior)
                self.bags_.append(bag)
                bar.advance()
                if bags.n_fits < n_bags and n_bags > 2 * ROUND and bags.is_steady(engine):
                    break
            used = weights[: len(self.bags_)]
            if self.base is None and not light and len(hidden.task):
                n_second, model = min(OTHERS, bags.n_fits), self.default_second
                again = in_order(lambda n: fit(n + 1, model), range(n_second), n_ahead)
                for bag, posterior in again:
                    second.add(second.n_fits + 1, posterior)
                    self.bags_.append(bag)
        self.n_second_ = second.n_fits
        self.weights_ = np.vstack([used, used[1 : self.n_second_ + 1]])
        self._take_confidence(engine, hidden, bags, second)
        return self._finish(engine, self._answer(whole, bags, second))

    def _plan(self, engine: Engine) -> tuple[int, bool]:
        """Return the number of bags, and whether matrices of enough of them take too much."""
        usual = suitable_bags(int(engine.labels_per_worker().sum()))
        fitting = LARGE // (8 * max(len(engine.pairs) * engine.n_classes, 1))
        if self.base is not None or fitting < FEWEST:
            return self.n_bags or usual, self.base is None
        return self.n_bags or min(usual, fitting), False

    def _memory(self, engine: Engine) -> int:
        bags = 8 * (self.n_bags or 0) * len(engine.pairs) * engine.n_classes
        return super()._memory(engine) + bags * (not self._plan(engine)[1])

    def _dependence(self, engine: Engine, of: Fingerprints) -> Dependence:
        if self.dependence is None:
            return measure_dependence(engine, of)
        return Dependence(
            self.dependence, float(self.dependence == 0.0), float(self.dependence > 0.0)
        )

    def _with_classes_of(self, whole: Aggregator) -> Aggregator:
        """Return the base, by default with the class prior of the whole crowd."""
        if self.base is not None or not isinstance(whole, ConfusionModel | PairModel):
            return self._base()
        prior = (1.0 - EVEN) * whole.prior_ + EVEN / len(whole.prior_)
        return clone(self._base()).set_params(class_prior=prior)

    def _fit_bag(
        self, engine: Engine, bag: Aggregator, number: int
    ) -> tuple[Aggregator, Posterior]:
        if "random_state" in bag.get_params(deep=False):
            bag.set_params(random_state=number)
        for name in NAMES & vars(self).keys():
            setattr(bag, name, getattr(self, name))
        posterior = bag._fit(engine)
        names = {*NAMES, "seen_"} - ({"tasks_"} if bag._task_rows() else set())
        for name in names & vars(bag).keys():
            delattr(bag, name)
        return bag, posterior

    def _take_confidence(
        self, engine: Engine, hidden: HiddenGold, bags: BagSum, second: BagSum
    ) -> None:
        """Determine the confidence, by the truths that are hidden at times."""
        how = Confidence(self.dependence_, self.shares)
        if len(hidden.task):
            unseen = bags.find_unseen(engine)
            some = ~np.isnan(unseen[:, 0])
            beside = second.find_unseen(engine)[some] if second.n_fits else None
            votes = hidden.votes[some]
            share, n_labels = normalize(votes), votes.sum(axis=1)
            how = how.fit(unseen[some], share, n_labels, hidden.label[some], beside)
        self.shares_, self.power_, self.second_ = how.shares, how.power, how.second

    def _answer(self, whole: BagSum, bags: BagSum, second: BagSum) -> Callable[[Block], Floats]:
        """Combine the bags' posteriors of a block's tasks."""
        how = Confidence(self.dependence_, self.shares_, self.power_, self.second_)
        part = WHOLE + (HALF - WHOLE) * self.independent_

        def answer(block: Block) -> Floats:
            votes = block.votes(None)
            mean = part * whole.rows(block) + (1.0 - part) * (bags.rows(block) / bags.n_fits)
            other = second.rows(block) / second.n_fits if second.n_fits else None
            return how.answer(mean, normalize(votes), votes.sum(axis=1), other)

        return answer

    def _finish(self, engine: Engine, answer: Callable[[Block], Floats]) -> Posterior:
        """Compute the posterior, and its implications about classes and workers."""
        posterior = fill(engine, answer)
        made = posterior if isinstance(posterior, np.ndarray) else None

        def work(block: Block, truths: Floats, counts: Floats) -> None:
            for some in block.chunks():
                known = slice(some.first, some.first + some.n_tasks)
                rows = answer(some) if made is None else made[known]
                truths += rows.sum(axis=0)
                count_block(some, rows, counts)

        n_classes, pairs = engine.n_classes, engine.pairs
        _, sums = engine.sum_blocks(work, [(n_classes,), (len(pairs), n_classes)])
        self.prior_ = normalize(sums[0])
        crowd = normalize(pairs.add_up_labels(sums[1]).T + 1.0 / n_classes)
        self.belief_ = PairBelief(pairs, sums[1], crowd)
        return posterior

    def _posterior(self, engine: Engine) -> Posterior:
        n_ahead, n_threads = count_ahead(engine)

        def infer(number: int) -> Posterior:
            own = engine.reweighted(self.weights_[number], n_threads=n_threads)
            return self.bags_[number]._posterior(own)

        whole, bags, second = BagSum(), BagSum(), BagSum()
        for number, found in enumerate(in_order(infer, range(len(self.bags_)), n_ahead)):
            later = second if number >= len(self.bags_) - self.n_second_ else bags
            (later if number else whole).add(number, found)
        return fill(engine, self._answer(whole, bags, second))

    def _adapt(self, data: Annotations, *, unknown_workers: bool) -> Self:
        model = copy(self)
        for bag in self.bags_ if "idle_" in vars(self) else ():
            bag.idle_ = self.idle_
        model.bags_ = [bag._adapt(data, unknown_workers=unknown_workers) for bag in self.bags_]
        if unknown_workers:
            model.weights_ = np.pad(self.weights_, ((0, 0), (0, 1)), constant_values=1.0)
        return model

    def _refuse_forged(self) -> None:
        if len(self.weights_) != len(self.bags_) or (self.weights_ < 0).any():
            raise FormatError("weights_ has weights below 0, or those of other bags.")

    def _inner(self) -> Sequence[Aggregator]:
        inner = [copy(bag) for bag in self.bags_]
        for bag in inner:
            bag.workers_, bag.classes_ = self.workers_, self.classes_
            bag.tasks_ = getattr(bag, "tasks_", self.tasks_)
        return inner


def fill(engine: Engine, answer: Callable[[Block], Floats]) -> Posterior:
    """Return the posterior of an engine's tasks, given a function for those of a block."""

    def work(block: Block, out: Floats) -> None:
        for some in block.chunks():
            low = some.first - block.first
            out[low : low + some.n_tasks] = answer(some)

    return engine.fill_blocks(work)


def count_ahead(engine: Engine) -> tuple[int, int | None]:
    """Return how many bags to fit at a time, and the threads for each of them.

    Ranks add their sums in one order, and of annotations on disk only some are in memory: there
    the bags follow one another.
    """
    return (count_threads(), 1) if isinstance(engine, MemoryEngine) else (1, engine.n_threads)


def suitable_bags(n_annotations: int) -> int:
    """Return the number of bags: more if they are cheap, since few workers need more."""
    usual = np.clip(MUCH // max(n_annotations, 1), FEW, USUAL)
    return int(np.clip(LITTLE // max(n_annotations, 1), usual, MANY))
