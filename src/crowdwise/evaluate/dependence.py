"""Dependence between judges, and how many independent ones a panel is worth."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform
from sklearn.base import clone
from sklearn.utils import check_random_state

from crowdwise.aggregate import JudgePanel
from crowdwise.annotations import Annotations, drop_weightless
from crowdwise.base import Aggregator
from crowdwise.errors import AnnotationError, explain, listing, plural
from crowdwise.evaluate.intervals import NAN, Estimate
from crowdwise.evaluate.judge_errors import Errors
from crowdwise.inference.factors import solve
from crowdwise.inference.ratings import Correlations
from crowdwise.io import as_annotations
from crowdwise.io.gold import as_gold
from crowdwise.typing import AnnotationsLike, Floats, GoldLike, Ints, RandomState

MOST_JUDGES = 200
LEAST_TASKS = 20
LEAST_JUDGES = 3  # without truth
RIDGE = 0.02  # of a judge's variance, so that identical judges cause no division by zero
LITTLE = 0.01  # share of the panel's information that may be lost with redundant judges
KNOWN = "Errors are measured against the given truths."
GUESSED = (
    "Without truths, the panel's posterior takes their place. It shows the errors that some "
    "judges share against the others, but counts a mistake shared by most judges as right. "
    "The effective number was 3 to 7 % too high on a real panel of eight families, "
    "and 6 to 36 % too low in simulated panels of eight judges, most where one block held half of "
    "them. There is no interval; gold labels give one."
)
NO_ERRORS = "No two judges err on these tasks, so their dependence is unknown."
UNKNOWN = "Without truths, at least three judges that are not copies of one another are needed."


@dataclass(frozen=True)
class Dependence:
    """The dependence between the judges of a panel.

    Attributes
    ----------
    effective_number : Estimate
        How many independently erring judges average out as much error as this panel does with
        equal weights (Kish). NaN if it cannot be determined.
    pairs : DataFrame
        For each pair of judges, the correlation of their errors within the true classes, with
        its interval, and the number of tasks that both judged.
    judges : DataFrame
        By judge: its family, its cluster (judges who err together more than is usual in the
        panel), skill (the distance between the classes in its scores, or its margin over
        chance, in standard deviations of its errors), worth (the share of the panel's
        information that would be lost without it), and whether it is redundant.
    families : DataFrame
        By family, or by cluster if no families are known: its judges, the mean correlation of
        errors within it, and what one more judge like them would add to the effective number;
        below 0 if it would dilute the others. The last row is a new family.
    note : str
        What the figures are based on, and what they can miss.
    """

    effective_number: Estimate
    pairs: pd.DataFrame
    judges: pd.DataFrame
    families: pd.DataFrame
    note: str


def dependence(
    annotations: AnnotationsLike,
    truth: GoldLike | None = None,
    *,
    model: Aggregator | None = None,
    n_resamples: int = 1000,
    confidence: float = 0.95,
    random_state: RandomState = 0,
) -> Dependence:
    """Measure how much judges err together.

    An error is the distance of a judge's score from its mean over the tasks of the same true
    class; for labels, whether it is right, minus how often it is right on that class. Asking
    both of two judges with correlated errors does not average these errors out.

    Parameters
    ----------
    annotations : Annotations, frame, array, dict or path
    truth : mapping, Series, frame or array, optional
        Truths of 20 or more tasks, drawn at random. Without them, the posterior of ``model``
        takes their place: there is no interval, and ``note`` states the bias.
    model : Aggregator, optional
        ``JudgePanel()`` by default.
    n_resamples : int, default=1000
        Bootstrap resamples of tasks for the interval of the effective number.
    confidence : float, default=0.95
        Coverage of the intervals.
    random_state : int or RandomState, default=0
        Random seed.

    References
    ----------
    Kish (1965). Survey sampling. Wiley. (The effective number is ``J / (1 + (J - 1) r)`` for J
    judges with mean correlation r.)

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(0, 2, 500)
    >>> wrong = rng.random((500, 3)) < 0.25
    >>> labels = np.where(wrong[:, [0, 0, 1, 2]], 1 - truth[:, None], truth[:, None])
    >>> found = dependence(labels, truth)  # the first two judges are one
    >>> print(f"{float(found.effective_number):.1f} of {len(found.judges)}")
    2.7 of 4
    """
    votes = keep_raters(as_annotations(annotations))
    check_size(votes)
    if truth is not None:
        proba = place_truths(votes, truth)
    else:
        fitted = (JudgePanel() if model is None else clone(model)).fit(votes)
        proba = fitted.predict_proba(votes).to_numpy()
    rng = check_random_state(random_state)
    errors = Errors.of(votes, proba, rng)
    found = errors.correlate()
    family = name_families(votes)
    sure = truth is not None or len(np.unique(found.clones())) >= LEAST_JUDGES
    number = errors.count_effective(n_resamples if truth is not None else 0, confidence, rng)
    note = KNOWN if truth is not None else GUESSED if sure else UNKNOWN
    if not sure:
        number = Estimate(NAN)
    elif np.isnan(number.value):
        note = f"{note} {NO_ERRORS}"
    number = Estimate(number.value, number.low, number.high, errors.n_tasks, note)
    pairs = errors.list_pairs(votes.workers, confidence if truth is not None else None)
    judges = describe_judges(votes, errors, found, family)
    kinds = family
    if votes.about_workers is None or "family" not in votes.about_workers:
        kinds = "cluster " + (judges["cluster"] + 1).astype(str)
    return Dependence(number, pairs, judges, describe_families(found, kinds), note)


def place_truths(votes: Annotations, truth: GoldLike) -> Floats:
    """Return a row for each task, with 1 for its truth; all 0 if the truth is unknown."""
    rows = np.eye(votes.n_classes + 1)[as_gold(truth, votes)][:, :-1]  # -1: no class
    known = int(rows.sum())
    if known < LEAST_TASKS:
        raise AnnotationError(
            explain(
                f"There {'is' if known == 1 else 'are'} {plural(known, 'task')} with a truth.",
                expected=f"{LEAST_TASKS} or more",
                fix="give the truths of more tasks, drawn at random, or leave truth out",
            )
        )
    return rows


def keep_raters(votes: Annotations) -> Annotations:
    """Drop labels of weight 0, and judges without any other label."""
    votes = drop_weightless(votes)
    busy = np.bincount(votes.worker, minlength=votes.n_workers) > 0
    if busy.all():
        return votes
    idle = votes.workers[~busy].tolist()
    warnings.warn(
        explain(
            f"{plural(len(idle), 'judge')} without a label left out: {listing(idle)}.",
            fix="check their outputs",
        ),
        stacklevel=3,
    )
    number = np.where(busy, np.cumsum(busy) - 1, -1).astype(np.int32)
    about, declined = votes.about_workers, votes.declined
    if declined is not None:
        declined = declined[busy[declined[:, 1]]]
        declined = np.column_stack([declined[:, 0], number[declined[:, 1]]])
    return replace(
        votes,
        workers=votes.workers[busy],
        worker=number[votes.worker],
        about_workers=None if about is None else about[busy],
        declined=declined,
    )


def check_size(votes: Annotations) -> None:
    if not 2 <= votes.n_workers <= MOST_JUDGES or votes.n_classes < 2:
        what = (
            f"{plural(votes.n_workers, 'judge')} and {plural(votes.n_classes, 'class', 'classes')}."
        )
        expected = f"2 to {MOST_JUDGES} judges who rate most tasks, and two classes or more"
        fix = "collect labels of the same tasks by more workers"
        if votes.n_classes < 2:
            fix = "there is nothing to compare until a judge gives another label"
        elif votes.n_workers > MOST_JUDGES:
            fix = "choose some of the judges, such as those with the most labels"
        raise AnnotationError(explain(what, expected=expected, fix=fix))


def name_families(votes: Annotations) -> pd.Series:
    """Return the family of each judge; a judge without one is its own family."""
    names = pd.Series(votes.workers, index=votes.workers, dtype=object)
    if votes.about_workers is None or "family" not in votes.about_workers:
        return names
    family = votes.about_workers["family"].astype(object).set_axis(names.index)
    return family.where(family.notna(), names)


def describe_judges(
    votes: Annotations, errors: Errors, found: Correlations, family: pd.Series
) -> pd.DataFrame:
    """Describe each judge, and whether the panel could do without it."""
    total = errors.product.sum(axis=0) / np.maximum(errors.common.sum(axis=0), 1e-300)
    # Who never errs in n tasks may yet err in one of n + 2: no skill is beyond measure.
    least = np.maximum(errors.skill**2 / (found.n_tasks + 2), 1e-12)
    proper = found.shrink()
    skill = errors.skill / np.sqrt(np.maximum(np.diag(total), least))
    noise = proper + RIDGE * np.eye(len(proper))
    worth = [1 - tell(skill, noise, np.delete(np.arange(len(skill)), j)) for j in range(len(skill))]
    return pd.DataFrame(
        {
            "family": family.to_numpy(),
            "cluster": find_clusters(found),
            "skill": skill,
            "worth": worth,
            "redundant": find_redundant(skill, noise, found.clones()),
        },
        index=pd.Index(votes.workers, name="worker", tupleize_cols=False),
    )


def find_clusters(found: Correlations) -> Ints:
    """Number the clusters of judges who err together more than is usual in this panel."""
    beside = squareform(found.value, checks=False)
    bar = max(float(np.median(beside)), 0.0) + 3.0 / np.sqrt(found.n_tasks)
    tree = linkage(1.0 - beside, "average")
    return fcluster(tree, max(1.0 - bar, 0.0), "distance").astype(np.int64) - 1


def tell(skill: Floats, noise: Floats, kept: Ints) -> float:
    """Return the class separation that some judges reach when weighted best, relative to all."""
    whole = float(skill @ solve(noise, skill))
    own = float(skill[kept] @ solve(noise[np.ix_(kept, kept)], skill[kept])) if len(kept) else 0.0
    return own / whole if whole > 0 else 1.0


def find_redundant(skill: Floats, noise: Floats, copy: Ints) -> list[bool]:
    """Find judges to drop, copies and least missed first, while the rest says almost as much."""
    kept = np.unique(copy, return_index=True)[1]
    whole = tell(skill, noise, kept)
    while len(kept) > 1:
        left = [tell(skill, noise, np.delete(kept, at)) / whole for at in range(len(kept))]
        if max(left) < 1 - LITTLE:
            break
        kept = np.delete(kept, int(np.argmax(left)))
    return [j not in kept for j in range(len(skill))]


def describe_families(found: Correlations, family: pd.Series) -> pd.DataFrame:
    """Measure the dependence within each family, and the gain of one more judge of it."""
    names, number = np.unique(family.to_numpy().astype(str), return_inverse=True)
    r, n = found.value, len(family)
    same = number[:, None] == number[None, :]
    off = ~np.eye(n, dtype=bool)
    apart = float(r[~same].mean()) if (~same).any() else float(r[off].mean())
    within = float(r[same & off].mean()) if (same & off).any() else apart
    now = n**2 / float(r.sum())
    rows = []
    for g in [*range(len(names)), -1]:
        mine = number == g
        inside = r[np.ix_(mine, mine)]
        size = int(mine.sum())
        own = float((inside.sum() - size) / (size * (size - 1))) if size > 1 else NAN
        with_it = size * (within if np.isnan(own) else own) + (n - size) * apart
        adds = (n + 1) ** 2 / (float(r.sum()) + 1 + 2 * with_it) - now
        rows.append((names[g] if g >= 0 else "a new family", size, own, adds))
    columns = ["family", "n_judges", "correlation", "adds"]
    return pd.DataFrame(rows, columns=columns).set_index("family")
