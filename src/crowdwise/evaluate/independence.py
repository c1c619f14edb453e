"""A test of what most methods take for granted: that workers err independently."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from scipy.special import stdtr
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from crowdwise.aggregate import DawidSkene
from crowdwise.annotations import Annotations
from crowdwise.evaluate.draws import sample_tasks
from crowdwise.evaluate.intervals import NAN
from crowdwise.evaluate.label_counts import once_per_worker
from crowdwise.io import as_gold
from crowdwise.typing import AnnotationsLike, Floats, GoldLike, Ints, RandomState

ENOUGH = 30_000  # annotations, and cells of a table task x class times 100, that are looked at
MOST_CELLS = 20_000_000  # of all confusion matrices together
FEWEST, MOST, WORK = 10, 40, 300_000  # simulated crowds, and annotations times crowds
LEAST_TASKS = 10
SIGNIFICANT, HALF = 0.01, 0.5
UNSEEN = (
    "Errors that nearly all workers share look like truths, and no test without gold sees them."
)


@dataclass(frozen=True)
class Independence:
    """What :func:`check_independence` finds.

    Attributes
    ----------
    p_value : float
        How often a crowd of independent workers looks at least as dependent; NaN if not tested.
    correlation : float
        Mean correlation of the errors of two workers on the same task, less what a crowd of
        independent workers shows when truths are inferred.
    labels_per_task : float
        Labels of a task that has two or more, on average.
    worth : float
        How many labels of independent workers these are worth (Kish).
    n_tasks : int
        Tasks that were used.
    note : str
        What the test cannot see, or why there is none.
    """

    p_value: float
    correlation: float
    labels_per_task: float
    worth: float
    n_tasks: int
    note: str

    @property
    def is_dependent(self) -> bool:
        """Whether workers demonstrably err together (at the 1 % level)."""
        return self.p_value < SIGNIFICANT

    @property
    def is_severe(self) -> bool:
        """Whether, besides, labels are worth less than half as many independent ones."""
        return self.is_dependent and self.worth < HALF * self.labels_per_task

    def describe(self) -> str:
        """The result in words."""
        chance = "p < 0.001" if self.p_value < 0.001 else f"p = {self.p_value:.3f}"
        worth = f"the {self.labels_per_task:.1f} labels of a task are worth {self.worth:.1f} "
        worth += "of independent workers"
        if self.is_severe:
            text = f"Workers err together ({chance}): {worth}. Without known truths, no method's "
            return f"{text}confidence can be trusted here."
        if self.is_dependent:
            text = f"Workers err together to some degree ({chance}): {worth}. Methods that take "
            return f"{text}them for independent are too confident."
        if np.isnan(self.p_value):
            return self.note
        return f"Nothing shows that workers err together ({chance}). {UNSEEN}"


def check_independence(
    annotations: AnnotationsLike, gold: GoldLike = None, *, random_state: RandomState = 0
) -> Independence:
    """Test whether workers err independently, given the truths.

    Dawid and Skene's model, in which they do, is fitted, and the statistic is the mean
    correlation of two workers' errors on the same task. Crowds are then drawn from the fitted
    model, with the same tasks and workers, and the model is fitted to each: a parametric
    bootstrap, with Student's t for the tail, since it takes few crowds. Of more than 30,000
    annotations a sample of tasks is tested.

    It sees copying, and tasks on which many err, be they hard or misleading, where others
    dissent. It does not see errors that nearly all share. Nearly every real crowd is dependent
    to some degree; ``worth`` says how much it matters. ``crowdwise bench independence`` measures
    how often the test is wrong, and how often it finds what is there.

    Parameters
    ----------
    annotations : Annotations, frame, array, dict or path
        A worker who labels a task twice counts once, with the last label.
    gold : mapping, Series, frame or array, optional
        Known truths of some tasks: with them, errors that all share are seen.
    random_state : int or RandomState, default=0
        The seed.

    References
    ----------
    Kish (1965). Survey sampling. Wiley. (R labels whose errors correlate by r are worth
    ``R / (1 + (R - 1) r)``.)

    Examples
    --------
    >>> from crowdwise.simulate import simulate_crowd
    >>> votes = simulate_crowd(300, 12, 2, 5, random_state=0).annotations
    >>> check_independence(votes).is_dependent
    False
    """
    data = once_per_worker(annotations)
    rng = check_random_state(random_state)
    known = None if gold is None else as_gold(gold, data)
    shared = np.flatnonzero(data.redundancy > 1)
    per_task = float(data.redundancy[shared].mean()) if len(shared) else NAN
    if reason := find_reason(data, len(shared)):
        return Independence(NAN, NAN, per_task, NAN, len(shared), reason)
    most = min(ENOUGH, max(int(100 * ENOUGH / data.n_classes * per_task), 1))
    rows = shared[sample_tasks(data[shared], most, rng)]
    data, known = data[rows], None if known is None else known[rows]
    fitted = fit_independent(data, known)
    found = correlate_errors(data, fitted)
    n_crowds = int(np.clip(WORK // data.n_annotations, FEWEST, MOST))
    drawn = np.empty(n_crowds)
    for b in range(n_crowds):
        crowd = draw_crowd(data, fitted, known, rng)
        drawn[b] = correlate_errors(crowd, fit_independent(crowd, known))
    p_value = tail(found, drawn)
    excess = found - float(drawn.mean())
    worth = per_task / (1.0 + (per_task - 1.0) * max(excess, 0.0))
    return Independence(p_value, excess, per_task, worth, len(rows), UNSEEN)


def find_reason(data: Annotations, n_shared: int) -> str:
    """Why the test cannot be made, or nothing."""
    if n_shared < LEAST_TASKS:
        return f"Not tested: fewer than {LEAST_TASKS} tasks have two labels or more."
    if data.n_classes < 2:
        return "Not tested: there is only one class."
    if data.n_workers * data.n_classes**2 > MOST_CELLS:
        return "Not tested: there are too many workers and classes."
    return ""


def fit_independent(data: Annotations, gold: Ints | None) -> DawidSkene:
    """The model under test, with matrices pulled a little toward the crowd's."""
    known = None
    if gold is not None:
        there = gold >= 0
        known = pd.Series(data.classes[gold[there]], index=data.tasks[there])
    model = DawidSkene(smoothing=(1.0, 0.25), pooling=3.0, max_iter=40, tol=1e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(data, known)


def correlate_errors(data: Annotations, model: DawidSkene) -> float:
    """Mean correlation of whether two workers of a task are right, given the truth."""
    posterior, right = model.posterior_, np.einsum("wkk->wk", model.confusion_)
    ones = np.ones(data.n_annotations)
    who = csr_array((ones, (data.task, data.worker)), shape=data.shape)
    own = np.zeros_like(posterior)  # (task, class): sums of P(right) of those who gave it
    np.add.at(own, (data.task, data.label), right[data.worker, data.label])
    votes, variance = data.votes(), right * (1.0 - right)
    total = (votes - who @ right) ** 2  # all products of two errors, and the squares
    squares = votes - 2.0 * own + who @ right**2
    scale = (who @ np.sqrt(variance)) ** 2 - who @ variance
    return float((posterior * (total - squares)).sum() / max((posterior * scale).sum(), 1e-300))


def draw_crowd(
    data: Annotations, model: DawidSkene, gold: Ints | None, rng: np.random.RandomState
) -> Annotations:
    """Labels that the fitted workers might have given to the same tasks."""
    truth = draw_classes(np.tile(model.prior_, (data.n_tasks, 1)), rng)
    if gold is not None:
        truth = np.where(gold >= 0, gold, truth)
    label = draw_classes(model.confusion_[data.worker, truth[data.task]], rng)
    return replace(data, label=label.astype(np.int32))


def draw_classes(proba: Floats, rng: np.random.RandomState) -> Ints:
    """A class number from each row of probabilities."""
    level = np.cumsum(proba[:, :-1], axis=1)
    return (rng.random_sample(len(proba))[:, None] > level).sum(axis=1)


def tail(found: float, drawn: Floats) -> float:
    """P(a crowd of independent workers is at or above this), by Student's t."""
    n, spread = len(drawn), float(drawn.std(ddof=1))
    if not spread > 0:
        return NAN
    t = (found - float(drawn.mean())) / (spread * np.sqrt(1.0 + 1.0 / n))
    return float(stdtr(n - 1, -t))
