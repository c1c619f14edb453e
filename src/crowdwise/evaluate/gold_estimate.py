"""Estimates of one number over all tasks from a few gold labels and the crowd's labels."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import logit
from scipy.stats import norm, t
from sklearn.base import clone
from sklearn.utils import check_random_state

from crowdwise import progress
from crowdwise.aggregate import JudgePanel
from crowdwise.annotations import Annotations, drop_weightless
from crowdwise.annotations.names import locate
from crowdwise.annotations.order import as_numbers
from crowdwise.base import Aggregator
from crowdwise.errors import AnnotationError, ParameterError, explain, plural
from crowdwise.evaluate.intervals import Estimate
from crowdwise.io import as_annotations
from crowdwise.io.gold import find_truths
from crowdwise.typing import AnnotationsLike, Array, Floats, GoldLike, Ints, RandomState

KINDS = ("share", "mean", "difference")
LEAST_GOLD = 10
NOTHING = Estimate(float("nan"))


@dataclass(frozen=True)
class GoldEstimate(Estimate):
    """A number with its interval, and the same from gold labels alone.

    Attributes
    ----------
    n_gold : int
        Gold labels used.
    alone : Estimate
        The same number from the gold labels alone.
    power : float
        How much the proxy was used: 0 not at all, 1 fully (lambda of PPI++).
    """

    n_gold: int = 0
    alone: Estimate = NOTHING
    power: float = 0.0
    _rest: float = float("nan")  # variance that more gold would reduce, per gold label
    _base: float = 0.0  # variance that it would not

    def gold_needed(self, width: float) -> float:
        """Return how many gold labels in total an interval of this width needs."""
        half, variance = (self.high - self.low) / 2, self._rest / self.n_gold + self._base
        if variance <= 0:  # the bound for events never seen falls with the number of labels
            return float(np.ceil(max(self.n_gold * 2 * half / width, 1.0)))
        quantile = half / np.sqrt(variance)
        left = (width / 2 / quantile) ** 2 - self._base
        return float(np.ceil(self._rest / left)) if left > 0 else float("inf")


def estimate(
    annotations: AnnotationsLike,
    gold: GoldLike,
    of: str = "share",
    *,
    label: Hashable = None,
    groups: Mapping[Hashable, Hashable] | pd.Series | None = None,
    weights: Mapping[Hashable, float] | pd.Series | None = None,
    model: Aggregator | None = None,
    finite: bool = False,
    confidence: float = 0.95,
    n_folds: int = 5,
    tails: str = "t",
    random_state: RandomState = 0,
) -> GoldEstimate:
    """Estimate a share, a mean or a difference of truths over all tasks.

    Gold labels are unbiased but few; the crowd's labels are many but biased. The estimate is the
    mean of the gold labels, corrected by the difference between the proxy's mean over the gold
    tasks and over all others (prediction-powered inference). The proxy is an aggregator's
    posterior that never learned from the gold label it is compared with (cross-fitting), and it
    is weighted by how well it predicts gold (PPI++), so a useless one does no harm.

    Parameters
    ----------
    annotations : Annotations, frame, array, dict or path
    gold : mapping, Series, frame or array
        Truths of some tasks that were drawn at random, or with the chances that ``weights`` undo.
    of : {"share", "mean", "difference"}, default="share"
        The share of ``label``; the mean of truths that are numbers; or by how much that share
        (or mean, if truths are not labels) is larger in the second of two ``groups``.
    label : label, optional
        The class whose share is estimated; the last one by default.
    groups : mapping or Series from task to one of two groups, optional
        The groups to compare, ordered by name.
    weights : mapping or Series from task to number, optional
        The inverse of the chance with which each gold task was drawn, up to a factor.
    model : Aggregator, optional
        Provides the proxy; ``JudgePanel()`` by default.
    finite : bool, default=False
        Whether the number is about exactly these tasks, which makes the interval narrower; by
        default it is about the population they were drawn from.
    confidence : float, default=0.95
        Coverage of the interval.
    n_folds : int, default=5
        Number of folds of the gold labels for cross-fitting.
    tails : {"t", "normal"}, default="t"
        Quantiles of Student's t, or normal ones, as in ppi-python.
    random_state : int or RandomState, default=0
        Random seed for the folds.

    References
    ----------
    Angelopoulos, Duchi and Zrnic (2023). PPI++: efficient prediction-powered inference.
    doi:10.48550/arXiv.2311.01453. Zrnic and Candes (2024). Cross-prediction-powered inference.
    PNAS 121(15). doi:10.1073/pnas.2322083121

    Examples
    --------
    >>> import numpy as np
    >>> from crowdwise.simulate import simulate_crowd
    >>> crowd = simulate_crowd(500, 8, n_classes=2, per_task=5, random_state=0)
    >>> gold = dict(zip(crowd.annotations.tasks[:100], crowd.truth[:100]))
    >>> found = estimate(crowd.annotations, gold)
    >>> share = (crowd.truth == crowd.annotations.classes[-1]).mean()
    >>> bool(found.low < share < found.high)
    True
    """
    if of not in KINDS:
        raise ParameterError(
            explain(f"of={of!r} is unknown.", expected=", ".join(KINDS), fix="choose one of these")
        )
    votes = drop_weightless(as_annotations(annotations))
    place, truths = find_truths(gold, votes)
    value, scale = take_values(votes, truths, of, label)
    refuse_little_gold(len(place))
    rng = check_random_state(random_state)
    fold = rng.permutation(len(place)) % min(n_folds, len(place))
    known = Known(votes, place, truths, value, fold)
    own, rest = known.cross_fit(JudgePanel() if model is None else model, scale)
    weight = np.ones(len(place)) if weights is None else take(weights, votes.tasks[place])
    sides = [np.ones(votes.n_tasks, dtype=bool)]
    if of == "difference":
        sides = split_groups(groups, votes.tasks)
    everyone = np.arange(votes.n_tasks)
    found = []
    for side in sides:
        mine = side[place]
        others = side if finite else side & ~np.isin(everyone, place)
        parts = Part(value[mine], own[mine], weight[mine], rest[others])
        found.append(parts.combine(int(side.sum()) if finite else None, int(tails == "t")))
    scope = 0.0 if scale is None else float(np.ptp(scale))
    return conclude(found, confidence, tails, len(place), votes.n_tasks, scope)


def refuse_little_gold(n_gold: int) -> None:
    """Refuse gold labels that are too few for an interval."""
    if n_gold < LEAST_GOLD:
        raise AnnotationError(
            explain(
                f"There {'is' if n_gold == 1 else 'are'} {plural(n_gold, 'gold label')}.",
                expected=f"{LEAST_GOLD} or more, of tasks drawn at random",
                fix="label more tasks, drawn at random, and give them as gold",
            )
        )


@dataclass(frozen=True)
class Known:
    """Gold values, and the tasks they belong to."""

    votes: Annotations
    place: Ints  # (gold,): number of the task
    truths: Array
    value: Floats  # (gold,)
    fold: Ints  # (gold,)

    def cross_fit(self, model: Aggregator, scale: Floats | None) -> tuple[Floats, Floats]:
        """Return the proxy of each gold task, by a model that did not know it, and of all."""
        own, rest = np.empty(len(self.place)), np.zeros(self.votes.n_tasks)
        are_labels = scale is not None
        each = np.linspace(0.0, 1.0, self.votes.n_classes) if scale is None else scale
        n_folds = int(self.fold.max()) + 1
        fitted = None if are_labels else clone(model).fit(self.votes)
        for k in progress.track(range(n_folds), "proxies", unit="fold"):
            learn = self.fold != k
            if are_labels:
                tasks = self.votes.tasks[self.place[learn]]
                known = dict(zip(tasks.tolist(), self.truths[learn].tolist(), strict=True))
                fitted = clone(model).fit(self.votes, known)
            assert fitted is not None
            proxy = fitted.predict_proba(self.votes).to_numpy() @ each
            if not are_labels:  # the posterior is about other classes: bring it to their scale
                proxy = logit(proxy.clip(1e-6, 1 - 1e-6))
                slope, start = np.polyfit(proxy[self.place[learn]], self.value[learn], 1)
                proxy = start + slope * proxy
            own[~learn] = proxy[self.place[~learn]]
            rest += proxy / n_folds
        return own, rest


@dataclass(frozen=True)
class Corrected:
    """A mean of gold values, corrected by the proxy."""

    value: float
    rest: float  # remaining variance of a gold value
    base: float  # variance of the proxy's mean
    n_gold: int
    power: float
    alone: tuple[float, float]  # the plain mean, and its variance

    @property
    def variance(self) -> float:
        return self.rest / self.n_gold + self.base


@dataclass(frozen=True)
class Part:
    """Gold values with their proxies, and the proxies of other tasks."""

    value: Floats
    own: Floats
    weight: Floats
    rest: Floats

    def combine(self, pool: int | None, ddof: int = 0) -> Corrected:
        """Combine by PPI++; ``pool`` is the number of tasks if they are the whole population."""
        n, n_rest = len(self.value), len(self.rest)
        if n < 2 or n_rest < 2:
            raise AnnotationError(
                explain(
                    f"{plural(n, 'gold label')} and {plural(n_rest, 'other task')} in one group.",
                    expected="two or more of both, in each group",
                    fix="label more tasks, drawn at random, and give them as gold",
                )
            )
        weight = self.weight / self.weight.mean()
        finite = 1.0 if pool is None else 1.0 - n / pool
        power = self.find_power(0.0 if pool is not None else n / n_rest)
        left = weight * (self.value - power * self.own)
        value = float(power * self.rest.mean() + left.mean())
        base = 0.0 if pool is not None else float((power * self.rest).var() / n_rest)
        plain = weight * self.value
        alone = float(plain.mean()), float(plain.var(ddof=ddof) / n * finite)
        return Corrected(value, float(left.var(ddof=ddof) * finite), base, n, power, alone)

    def find_power(self, ratio: float) -> float:
        """Find the weight of the proxy that gives the least variance."""
        weight = self.weight / self.weight.mean()
        value, own = weight * self.value, weight * self.own
        together = float(((value - value.mean()) * (own - own.mean())).mean())
        spread = float(np.concatenate([self.own, self.rest]).var(ddof=1))
        return float(np.clip(together / max((1.0 + ratio) * spread, 1e-300), 0.0, 1.0))


def conclude(
    parts: list[Corrected],
    confidence: float,
    tails: str,
    n_gold: int,
    n_tasks: int,
    scope: float = 0.0,
) -> GoldEstimate:
    """Return the only part, or the difference of two, with its interval.

    Gold labels that are all equal, or all as the proxy says, have no variance; what none of
    them shows may still be as frequent as the exact binomial bound allows, over ``scope``.
    """
    sign = [1.0] if len(parts) == 1 else [-1.0, 1.0]
    least = min(part.n_gold for part in parts)
    upper = (1.0 + confidence) / 2
    quantile = float(norm.ppf(upper) if tails == "normal" else t.ppf(upper, least - 1))
    value = sum(s * part.value for s, part in zip(sign, parts, strict=True))
    plain = sum(s * part.alone[0] for s, part in zip(sign, parts, strict=True))
    unseen = scope * (1.0 - ((1.0 - confidence) / 2) ** (1.0 / least))
    half = quantile * np.sqrt(sum(part.variance for part in parts))
    wide = quantile * np.sqrt(sum(part.alone[1] for part in parts))
    half, wide = (own if own > 1e-9 * scope else unseen for own in (half, wide))
    rest = sum(part.rest * n_gold / part.n_gold for part in parts)
    return GoldEstimate(
        float(value),
        float(value - half),
        float(value + half),
        n_tasks,
        n_gold=n_gold,
        alone=Estimate(float(plain), float(plain - wide), float(plain + wide), n_gold),
        power=float(np.mean([part.power for part in parts])),
        _rest=float(rest),
        _base=float(sum(part.base for part in parts)),
    )


def take_values(
    votes: Annotations, truths: Array, of: str, label: Hashable
) -> tuple[Floats, Floats | None]:
    """Return the value of each gold task and of each class; None if truths are not labels."""
    code, numbers = locate(votes.classes, truths), as_numbers(votes.classes)
    are_labels = bool((code >= 0).all())
    if are_labels and of != "mean":
        chosen = len(votes.classes) - 1 if label is None else locate(votes.classes, [label])[0]
        if chosen >= 0:
            share = (np.arange(votes.n_classes) == chosen).astype(np.float64)
            return share[code], share
    if are_labels and of == "mean" and numbers is not None:
        return numbers[code], numbers
    values = as_numbers(truths)
    if of == "share" or values is None or are_labels:
        raise AnnotationError(
            explain(
                f"The {of} of these truths is not defined.",
                first=repr(truths[0]) if label is None or not are_labels else f"label={label!r}",
                expected="numbers for a mean; for a share some of "
                + ", ".join(map(repr, votes.classes.tolist())),
                fix="write truths as the labels are written, or all of them as numbers"
                if not are_labels
                else 'give numbers as truths, or ask for a share with of="share"',
            )
        )
    return values, None


def take(values: Mapping[Hashable, float] | pd.Series, tasks: Array) -> Floats:
    """Return the value of each task; none may be missing."""
    series = pd.Series(values) if isinstance(values, pd.Series) else pd.Series(dict(values))
    found = series.reindex(pd.Index(tasks, tupleize_cols=False)).to_numpy(dtype=np.float64)
    if not (np.isfinite(found).all() and (found > 0).all()):
        raise AnnotationError(
            explain(
                "A gold task has no positive weight.",
                first=f"task {tasks[int((~(found > 0)).argmax())]!r}",
                expected="a weight for each gold task",
                fix="leave out gold tasks that could not have been drawn",
            )
        )
    return found


def split_groups(
    groups: Mapping[Hashable, Hashable] | pd.Series | None, tasks: Array
) -> list[Array]:
    """Split the tasks into the first and the second group."""
    if groups is None:
        raise ParameterError(
            explain(
                "A difference needs groups.",
                expected="groups={task: group, …}",
                fix="say which group each task belongs to",
            )
        )
    named = groups if isinstance(groups, pd.Series) else pd.Series(dict(groups))
    own = named.reindex(pd.Index(tasks, tupleize_cols=False))
    names = sorted(own.dropna().unique().tolist(), key=str)
    if len(names) != 2:
        raise ParameterError(
            explain(
                f"groups has {plural(len(names), 'group')} of tasks.",
                expected="two",
                fix="compare two groups at a time",
            )
        )
    return [(own == name).to_numpy(dtype=bool) for name in names]
