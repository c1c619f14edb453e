"""Assessment of a panel of judges: worth, accuracy, cost, and what to do next."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from sklearn.utils import check_random_state

from crowdwise.aggregate import JudgePanel
from crowdwise.annotations import Annotations
from crowdwise.annotations.names import locate
from crowdwise.annotations.order import as_numbers
from crowdwise.errors import ParameterError, explain, listing
from crowdwise.evaluate.dependence import LEAST_TASKS, Dependence, dependence, keep_raters
from crowdwise.evaluate.gold_estimate import (
    LEAST_GOLD,
    GoldEstimate,
    estimate,
    refuse_little_gold,
)
from crowdwise.evaluate.intervals import NAN, Estimate, wilson
from crowdwise.io import as_annotations
from crowdwise.io.gold import find_truths
from crowdwise.typing import AnnotationsLike, Array, Floats, GoldLike, Ints, RandomState

N_FOLDS = 5
MANY = 500  # gold labels that tell more about single judges than all tasks without gold
EXPECTED = "the panel's own expectation; only gold labels can tell"
CROSS_FITTED = "on gold labels that the panel had not learned from"


@dataclass(frozen=True)
class PanelAssessment:
    """An assessment of a panel of judges.

    Attributes
    ----------
    dependence : Dependence
        Dependence between the judges, based on gold labels if there are 20 or more. With fewer
        than 500 gold labels, clusters and redundant judges are found on all tasks, with the
        panel's posterior as the truth.
    accuracy : Estimate
        Share of the panel's labels that are right; without gold labels, its own expectation
        without an interval.
    estimate : Estimate
        The share of ``label``, or the mean of truths that are numbers, over all tasks.
    of : str
        What is estimated, in words.
    ``dependence.judges`` with accuracy on the gold labels, the share of tasks that the judge
    rated, the share without an answer, and the judge's price if known.
    costs : DataFrame or None
        With prices, for all judges and for those that are not redundant: the price of a task and,
        with gold labels, the accuracy and the price of a correct label.
    """

    dependence: Dependence
    accuracy: Estimate
    estimate: Estimate
    of: str
    judges: pd.DataFrame
    costs: pd.DataFrame | None = None


def assess_panel(
    annotations: AnnotationsLike,
    gold: GoldLike | None = None,
    *,
    label: Hashable = None,
    prices: Mapping[Hashable, float] | pd.Series | None = None,
    confidence: float = 0.95,
    random_state: RandomState = 0,
) -> PanelAssessment:
    """Assess a panel of judges, with or without gold labels.

    Parameters
    ----------
    annotations : Annotations, frame, array, dict or path
        Labels, or scores (:meth:`Annotations.with_scores`), of every judge.
    gold : mapping, Series, frame or array, optional
        Truths of ten tasks or more, drawn at random: labels, or numbers on the scale of the
        scores.
    label : label, optional
        The class whose share is estimated; the last one by default.
    prices : mapping or Series from worker to number, optional
        The price of a label by each judge.
    confidence : float, default=0.95
        Coverage of the intervals.
    random_state : int or RandomState, default=0
        Random seed.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(0, 2, (400, 1))
    >>> labels = np.where(rng.random((400, 5)) < 0.25, 1 - truth, truth)
    >>> found = assess_panel(labels, dict(enumerate(truth[:60, 0].tolist())))
    >>> print(f"{found.of}: {found.estimate.low:.2f} to {found.estimate.high:.2f}")
    share of 1: 0.48 to 0.65
    """
    votes = keep_raters(as_annotations(annotations))
    known = Gold.of(votes, gold)
    rng = check_random_state(random_state)
    seed = int(rng.randint(1 << 30))
    enough = known.labels if known is not None and known.n_labels >= LEAST_TASKS else None
    found = dependence(votes, random_state=seed)
    if enough is not None:  # for the effective number and pairs; judges use all tasks
        known_errors = dependence(votes, enough, confidence=confidence, random_state=seed)
        every = {"judges": found.judges, "families": found.families}
        found = known_errors if len(enough) >= MANY else replace(known_errors, **every)
    settings = (votes, known, confidence, seed)
    judges = describe(votes, found.judges, known, prices)
    costs = None
    if prices is not None:
        costs = price_panels(settings, judges)
    what, number = estimate_number(*settings, label)
    return PanelAssessment(found, measure_accuracy(*settings), number, what, judges, costs)


@dataclass(frozen=True)
class Gold:
    """Truths of some tasks, and the classes they correspond to."""

    place: Ints
    values: Array
    code: Ints  # (gold,): class, -1 if it matches no class
    tasks: Array
    classes: Array

    @classmethod
    def of(cls, votes: Annotations, gold: GoldLike | None) -> Gold | None:
        if gold is None:
            return None
        place, values = find_truths(gold, votes)
        refuse_little_gold(len(place))
        return cls(place, values, find_codes(votes, values), votes.tasks[place], votes.classes)

    @property
    def n_labels(self) -> int:
        return int((self.code >= 0).sum())

    @property
    def labels(self) -> dict[Hashable, Hashable]:
        return self.take(np.ones(len(self.place), dtype=bool))

    def take(self, kept: Array) -> dict[Hashable, Hashable]:
        """Return the classes of some gold tasks, by task."""
        kept = kept & (self.code >= 0)
        names = self.classes[self.code[kept]].tolist()
        return dict(zip(self.tasks[kept].tolist(), names, strict=True))


def find_codes(votes: Annotations, values: Array) -> Ints:
    """Return each truth's class; numbers on the scale of the scores are cut like these."""
    code = locate(votes.classes, values)
    numbers = as_numbers(values)
    if (code >= 0).all() or votes.score is None or numbers is None or votes.n_classes != 2:
        return code
    above = votes.score[votes.label == 1]
    side: Ints = (numbers >= above.min(initial=np.inf)).astype(np.int64)
    inside = (numbers >= votes.score.min()) & (numbers <= votes.score.max())
    return np.where(inside, side, -1)


def describe(
    votes: Annotations,
    judges: pd.DataFrame,
    known: Gold | None,
    prices: Mapping[Hashable, float] | pd.Series | None,
) -> pd.DataFrame:
    """Describe each judge, with its accuracy, missing answers and price."""
    pairs = np.unique(votes.task * np.int64(votes.n_workers) + votes.worker)
    rated = np.bincount(pairs % votes.n_workers, minlength=votes.n_workers)
    said_no = np.zeros(votes.n_workers)
    if votes.declined is not None:
        said_no += np.bincount(votes.declined[:, 1], minlength=votes.n_workers)
    beside = {"rated": rated / votes.n_tasks, "declined": said_no / votes.n_tasks}
    if known is not None:
        truth = np.full(votes.n_tasks, -1)
        truth[known.place] = known.code
        met = truth[votes.task] >= 0
        right = np.bincount(
            votes.worker[met],
            votes.label[met] == truth[votes.task][met],
            minlength=votes.n_workers,
        )
        n = np.bincount(votes.worker[met], minlength=votes.n_workers)
        low, high = wilson(right, n)
        share = np.divide(right, n, out=np.full(len(n), NAN), where=n > 0)
        beside |= {"accuracy": share, "accuracy_low": low, "accuracy_high": high}
    if prices is not None:
        beside["price"] = take_prices(votes, prices)
    return judges.assign(**beside)


def take_prices(votes: Annotations, prices: Mapping[Hashable, float] | pd.Series) -> Floats:
    """Return the price of a label by each judge; none may be missing."""
    given = prices if isinstance(prices, pd.Series) else pd.Series(dict(prices), dtype=object)
    own = pd.to_numeric(given.reindex(pd.Index(votes.workers, tupleize_cols=False)), "coerce")
    bad = ~((own >= 0) & (own < np.inf)).to_numpy(dtype=bool)
    if bad.any():
        raise ParameterError(
            explain(
                f"{int(bad.sum())} of {votes.n_workers} judges have no price.",
                first=repr(votes.workers[int(bad.argmax())]),
                expected="a price of 0 or more for each judge, in one currency",
                fix="add the missing prices, or leave prices out",
            )
        )
    return own.to_numpy(dtype=np.float64)


def measure_accuracy(
    votes: Annotations, known: Gold | None, confidence: float, seed: int
) -> Estimate:
    """Measure how often the panel is right on gold tasks that it did not learn from."""
    if known is None or known.n_labels < LEAST_GOLD:
        sure = JudgePanel().fit(votes).posterior_.max(axis=1)
        return Estimate(float(sure.mean()), n_tasks=votes.n_tasks, note=EXPECTED)
    fold = np.random.RandomState(seed).permutation(len(known.place)) % N_FOLDS
    right = 0
    for k in range(N_FOLDS):
        model = JudgePanel().fit(votes, known.take(fold != k))
        mine = (fold == k) & (known.code >= 0)
        said = model.posterior_[known.place[mine]].argmax(axis=1)
        right += int((said == known.code[mine]).sum())
    low, high = wilson(right, known.n_labels, confidence)
    share = right / known.n_labels
    return Estimate(share, float(low), float(high), known.n_labels, CROSS_FITTED)


def estimate_number(
    votes: Annotations, known: Gold | None, confidence: float, seed: int, label: Hashable
) -> tuple[str, Estimate]:
    """Estimate the share of a class, or the mean of truths that are numbers; name it, too."""
    chosen = votes.classes[-1] if label is None else label
    what = f"share of {chosen}"
    if known is None:
        at = locate(votes.classes, [chosen])[0]
        if at < 0:
            raise ParameterError(
                explain(
                    f"There is no class {chosen!r}.",
                    expected=f"one of {listing(votes.classes.tolist())}",
                    fix="check the spelling of the class",
                )
            )
        proba = JudgePanel().fit(votes).posterior_[:, at]
        return what, Estimate(float(proba.mean()), n_tasks=votes.n_tasks, note=EXPECTED)
    truths = dict(zip(known.tasks.tolist(), known.values.tolist(), strict=True))
    of = "share" if (locate(votes.classes, known.values) >= 0).all() else "mean"
    found: GoldEstimate = estimate(
        votes, truths, of, label=label, confidence=confidence, random_state=seed
    )
    if of == "mean":
        return "mean of the truths", found
    low, high = max(found.low, 0.0), min(found.high, 1.0)
    return what, replace(found, low=low, high=high)


def price_panels(
    settings: tuple[Annotations, Gold | None, float, int], judges: pd.DataFrame
) -> pd.DataFrame:
    """Compute the cost of a task and of a right label, with and without redundant judges."""
    votes, known, confidence, seed = settings
    kept = judges.index[~judges["redundant"]]
    panels = {"all judges": judges.index, "without redundant judges": kept}
    rows = []
    for names in panels.values():
        part = votes if len(names) == votes.n_workers else only(votes, names)
        right = NAN if known is None else float(measure_accuracy(part, known, confidence, seed))
        price = float(judges.loc[names, "price"].to_numpy() @ count_labels(votes, names))
        rows.append((len(names), price, right, price / right))
    columns = ["n_judges", "per_task", "accuracy", "per_correct_label"]
    return pd.DataFrame(rows, index=pd.Index(panels, name="panel"), columns=columns)


def only(votes: Annotations, names: pd.Index) -> Annotations:
    """Return the annotations of some judges only."""
    place = locate(votes.workers, names)
    chosen = votes.filter(np.isin(votes.worker, place))
    number = np.full(votes.n_workers, -1, dtype=np.int32)
    number[place] = np.arange(len(place))
    about = None if votes.about_workers is None else votes.about_workers.iloc[place]
    worker = number[chosen.worker]
    return replace(
        chosen, workers=votes.workers[place], worker=worker, about_workers=about, declined=None
    )


def count_labels(votes: Annotations, names: pd.Index) -> Floats:
    """Count labels per task of each of these judges, including all samples."""
    count = np.bincount(votes.worker, minlength=votes.n_workers) / votes.n_tasks
    return count[locate(votes.workers, names)]
