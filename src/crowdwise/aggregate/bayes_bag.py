"""BayesBag: a Bayesian bootstrap over workers around another method."""

from __future__ import annotations

import os
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from copy import copy
from typing import ClassVar, Self, TypeVar

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
from crowdwise.base.aggregator import find_devices
from crowdwise.base.params import check_params
from crowdwise.errors import FormatError, ParameterError, explain
from crowdwise.inference import (
    Confidence,
    Engine,
    Fingerprints,
    HiddenGold,
    WeightedEngine,
    draw_weights,
    fingerprint,
    normalize,
    pooled_confusion,
)
from crowdwise.inference.posteriors import as_array
from crowdwise.inference.worker_weights import ROUND
from crowdwise.typing import Floats, Ints, RandomState

Result = TypeVar("Result")

FEW, USUAL, MANY = 20, 50, 200  # bags
LITTLE, MUCH = 400_000, 10_000_000  # annotations times bags that cost little, and much
EVEN = 0.05  # part of the class prior that all classes share, lest one is lost
WHOLE = 0.05  # share of the crowd as it is, without random weights: it settles near ties
HALF = 0.5  # the same where workers seem to err independently; errors that all share do not show
OTHERS = 20  # bags of the second base, at most: it only has a part in the answer
STEADY = 0.001  # the mean movement of a task's probabilities that is none


class BayesBag(ConfusionModel):
    """Infer truths with confidence that means what it says: the answer of many reweighted crowds.

    A method that takes workers for independent is too sure of itself, since workers err
    together and no model of them is right. Here it is fitted many times, each time with
    random weights of the *workers*, and its posteriors are averaged: what depends on single
    workers averages out, and what remains is nearly as probable as it says.

    Parameters
    ----------
    base : Aggregator, optional
        The method that is fitted to each bag, any in which labels can have weights. By
        default Dawid-Skene with matrices pulled toward the crowd's,
        ``DawidSkene(smoothing=(4, 1), pooling=3, max_iter=40, tol=1e-4)``, with the class
        prior of IBCC on the whole crowd: a bag has too few workers to tell rare from wrong.
    n_bags : int, optional
        The most bags; by default 50, up to 200 for a crowd of less than 8,000 annotations and
        down to 20 for more than 200,000. Fewer are fitted where the answer stands still before.
    shares : float, default=0.05
        Weight of each task's own share of labels in its answer.
    dependence : float, optional
        How far workers err together, the correlation of their errors on the same task: ``n``
        labels of a task count as ``n / (1 + (n - 1) * dependence)`` independent ones in how
        sure its answer is. By default it is measured, from the labels alone.
    device : str, optional
        "cuda" or "cuda:1" to fit the bags on a GPU (needs PyTorch), "cpu" for the same code
        without one; by default in compiled code on this machine's cores.
    random_state : int, RandomState or None, default=0
        Seed of the weights. A worker's weights depend on it and on what the worker labeled,
        not on names or the order of rows.

    Attributes
    ----------
    bags_ : list of Aggregator
        The fitted bases, without their posteriors; the first one is fitted to the whole
        crowd: IBCC by default.
    weights_ : ndarray of shape (n_bags, n_workers)
        Weight of each worker in each of these, 1 in the first.
    n_second_ : int
        How many of them, the last ones, are of a second base: one-coin models, fitted where
        there are 20 known truths or more (and no other ``base`` is given).
    dependence_, independent_ : float
        What ``dependence`` has become, and the probability that workers err independently.
    shares_, power_, second_ : float
        What ``shares`` has become, a power of the mean posteriors, and the weight of the
        second base. From 20 known truths on they are those that make the truths most
        probable, given what bags that have not seen them say; else ``shares``, 1 and 0.
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

    Works when the base does, and says how sure it is: over real crowds its log loss is less
    than half of Dawid-Skene's, at a better accuracy. The default of ``crowdwise aggregate``.

    The dependence is the mean correlation of two workers' errors on the same task, less what
    crowds drawn from a model of independent workers show; where it is uncertain, it is pulled
    toward what real crowds have.

    Fails when most workers err together on the same tasks: it is less overconfident then, but
    nothing in the labels tells. From 20 known truths on (``gold``) it learns how sure to be,
    and how much one-coin models and plain shares have to say.

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

    _axes = {**ConfusionModel._axes, "weights_": ("bags", "workers_")}
    traits = Traits(stochastic=True, learns_from_gold=True, blockwise=False)
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

    def _base(self) -> Aggregator:
        return self.default_base if self.base is None else self.base

    def _fit(self, engine: Engine) -> Floats:
        votes, gold = engine.collect()
        n_bags = self.n_bags or suitable_bags(votes.n_annotations)
        of = fingerprint(votes, gold)
        weights = draw_weights(votes, n_bags, self.random_state, of.workers)
        weights = np.vstack([np.ones(votes.n_workers), weights])
        hidden, shares = HiddenGold.of(votes, gold), votes.shares()
        self.dependence_, self.independent_ = self._dependence(votes, gold, of)

        engine_of = self._weighted(votes)

        def fit(number: int, model: Aggregator) -> tuple[Aggregator, Floats]:
            engine = engine_of(hidden.seen_by(number), weights[number], shares)
            return self._fit_bag(engine, clone(model), number)

        with warnings.catch_warnings(), progress.bar("bags, at most", n_bags, "bag") as bar:
            warnings.simplefilter("ignore", ConvergenceWarning)
            whole, posterior = fit(0, self.base or self.default_whole)
            base, answer = self._with_classes_of(whole), self._mean(posterior)
            self.bags_ = [whole]
            for bag, posterior in in_order(lambda number: fit(number + 1, base), n_bags):
                hidden.add(len(self.bags_), posterior)
                self.bags_.append(bag)
                answer.add(posterior)
                bar.advance()
                if answer.is_steady():
                    break
            used = weights[: len(self.bags_)]
            second, self.n_second_ = HiddenGold.of(votes, gold), 0
            total = np.zeros_like(answer.value)
            if self.base is None and len(hidden.task):
                self.n_second_ = min(OTHERS, len(used) - 1)
            model = self.default_second
            for bag, posterior in in_order(lambda n: fit(n + 1, model), self.n_second_):
                second.add(len(self.bags_) - len(used) + 1, posterior)
                self.bags_.append(bag)
                total += posterior
        self.weights_ = np.vstack([used, used[1 : self.n_second_ + 1]])
        other = total / self.n_second_ if self.n_second_ else None
        return self._finish(votes, hidden, second, answer.value, other)

    def _weighted(self, votes: Annotations) -> Callable[..., WeightedEngine]:
        """Engines of the annotations, from their gold, weights of workers and first posterior."""
        if self.device is None:
            return lambda gold, weights, begin=None: WeightedEngine(
                votes, gold, 1, weights=weights, begin=begin
            )
        devices = find_devices()
        place = devices.bring(self.device, votes)
        return lambda gold, weights, begin=None: devices.DeviceWeightedEngine(
            votes, gold, 1, weights=weights, begin=begin, place=place.with_gold(gold)
        )

    def _dependence(self, votes: Annotations, gold: Ints | None, of: Fingerprints) -> Dependence:
        if self.dependence is None:
            return measure_dependence(votes, gold, of)
        return Dependence(self.dependence, float(self.dependence == 0.0))

    def _mean(self, whole: Floats) -> RunningMean:
        return RunningMean(whole, WHOLE + (HALF - WHOLE) * self.independent_)

    def _with_classes_of(self, whole: Aggregator) -> Aggregator:
        """The base, which by default has the class prior of the whole crowd."""
        if self.base is not None or not isinstance(whole, ConfusionModel | PairModel):
            return self._base()
        prior = (1.0 - EVEN) * whole.prior_ + EVEN / len(whole.prior_)
        return clone(self._base()).set_params(class_prior=prior)

    def _fit_bag(
        self, engine: WeightedEngine, bag: Aggregator, number: int
    ) -> tuple[Aggregator, Floats]:
        if "random_state" in bag.get_params(deep=False):
            bag.set_params(random_state=number)
        bag.tasks_, bag.workers_, bag.classes_ = self.tasks_, self.workers_, self.classes_
        posterior = as_array(bag._fit(engine))
        names = {"workers_", "classes_", "seen_"} | (set() if bag._task_rows() else {"tasks_"})
        for name in names & vars(bag).keys():
            delattr(bag, name)
        return bag, posterior

    def _finish(
        self,
        votes: Annotations,
        hidden: HiddenGold,
        second: HiddenGold,
        mean: Floats,
        other: Floats | None,
    ) -> Floats:
        """The answer from the mean posteriors, and what it says about workers."""
        how = Confidence(self.dependence_, self.shares)
        task, unseen = hidden.posteriors()
        if len(task) and hidden.gold is not None:
            some, beside = votes[task], second.posteriors()[1] if other is not None else None
            n_labels, truth = some.votes().sum(axis=1), hidden.gold[task]
            how = how.fit(unseen, some.shares(), n_labels, truth, beside)
        self.shares_, self.power_, self.second_ = how.shares, how.power, how.second
        posterior = self._answer(votes, mean, other)
        self.prior_ = normalize(posterior.sum(axis=0))
        self.confusion_ = pooled_confusion(votes, posterior)
        return posterior

    def _answer(self, votes: Annotations, mean: Floats, other: Floats | None) -> Floats:
        how = Confidence(self.dependence_, self.shares_, self.power_, self.second_)
        return how.answer(mean, votes.shares(), votes.votes().sum(axis=1), other)

    def _posterior(self, engine: Engine) -> Floats:
        votes, gold = engine.collect()
        engine_of = self._weighted(votes)

        def infer(number: int) -> Floats:
            weighted = engine_of(gold, self.weights_[number])
            return as_array(self.bags_[number]._posterior(weighted))

        posteriors = in_order(infer, len(self.bags_))
        answer = self._mean(next(posteriors))
        for _ in range(len(self.bags_) - 1 - self.n_second_):
            answer.add(next(posteriors))
        rest = list(posteriors)
        other = np.mean(rest, axis=0) if rest else None
        return self._answer(votes, answer.value, other)

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
            raise FormatError("weights_ holds weights below 0, or those of other bags.")

    def _inner(self) -> Sequence[Aggregator]:
        inner = [copy(bag) for bag in self.bags_]
        for bag in inner:
            bag.workers_, bag.classes_ = self.workers_, self.classes_
            bag.tasks_ = getattr(bag, "tasks_", self.tasks_)
        return inner


class RunningMean:
    """The mean of the bags' posteriors, and a little of the whole crowd's."""

    def __init__(self, whole: Floats, part: float) -> None:
        self.n_bags, self.moved, self.whole, self.part = 0, np.inf, whole, part
        self.total, self.before = np.zeros_like(whole), np.zeros_like(whole)

    def add(self, posterior: Floats) -> None:
        self.n_bags += 1
        self.total += posterior
        if self.n_bags % ROUND == 0:
            now = self.total / self.n_bags
            self.moved, self.before = float(np.abs(now - self.before).sum()) / 2, now

    def is_steady(self) -> bool:
        """Whether the last round of bags has moved nearly nothing."""
        return self.moved < STEADY * len(self.whole)

    @property
    def value(self) -> Floats:
        return self.part * self.whole + (1.0 - self.part) * (self.total / self.n_bags)


def suitable_bags(n_annotations: int) -> int:
    """How many bags: more where they cost little, since few workers need more of them."""
    usual = np.clip(MUCH // max(n_annotations, 1), FEW, USUAL)
    return int(np.clip(LITTLE // max(n_annotations, 1), usual, MANY))


def in_order(work: Callable[[int], Result], n: int) -> Iterator[Result]:
    """``work(0), …, work(n - 1)``, one per core at a time; no more than these are ahead."""
    n_threads = max(min(os.cpu_count() or 1, n), 1)
    pool, ahead = ThreadPoolExecutor(n_threads), deque[Future[Result]]()
    try:
        for number in range(n):
            ahead.append(pool.submit(work, number))
            if len(ahead) > n_threads:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
