"""A test of what most methods assume: that workers err independently."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.utils import check_random_state

from crowdwise.aggregate.shared_errors import find_reason, most_annotations, share_errors
from crowdwise.evaluate.draws import sample_tasks
from crowdwise.evaluate.intervals import NAN
from crowdwise.evaluate.label_counts import once_per_worker
from crowdwise.io import as_gold
from crowdwise.typing import AnnotationsLike, GoldLike, RandomState

FEWEST, MOST, WORK = 10, 40, 300_000  # simulated crowds, and annotations times crowds
SIGNIFICANT, HALF = 0.01, 0.5
UNSEEN = (
    "Errors that nearly all workers share look like truths, and no test without gold sees them."
)


@dataclass(frozen=True)
class Independence:
    """The result of :func:`check_independence`.

    Attributes
    ----------
    p_value : float
        Probability of this much dependence in a crowd of independent workers; NaN if not tested.
    correlation : float
        Mean correlation of the errors of two workers on the same task, minus that of a crowd of
        independent workers whose truths are inferred.
    labels_per_task : float
        Mean number of labels, over tasks with two or more.
    worth : float
        How many labels of independent workers these are worth (Kish).
    n_tasks : int
        Number of tasks used.
    note : str
        What the test cannot see, or why there is no result.
    """

    p_value: float
    correlation: float
    labels_per_task: float
    worth: float
    n_tasks: int
    note: str

    @property
    def is_dependent(self) -> bool:
        """Return whether workers demonstrably err together (at the 1 % level)."""
        return self.p_value < SIGNIFICANT

    @property
    def is_severe(self) -> bool:
        """Return whether labels are also worth less than half as many independent ones."""
        return self.is_dependent and self.worth < HALF * self.labels_per_task

    def describe(self) -> str:
        """Describe the result in words."""
        chance = "p < 0.001" if self.p_value < 0.001 else f"p = {self.p_value:.3f}"
        worth = f"the {self.labels_per_task:.1f} labels of a task are worth {self.worth:.1f} "
        worth += "of independent workers"
        if self.is_severe:
            text = f"Workers err together ({chance}): {worth}. Without known truths, no method's "
            return f"{text}confidence can be trusted here."
        if self.is_dependent:
            text = f"Workers err together to some degree ({chance}): {worth}. Methods that assume "
            return f"{text}independence are overconfident."
        if np.isnan(self.p_value):
            return self.note
        return f"No clear sign that workers err together ({chance}). {UNSEEN}"


def check_independence(
    annotations: AnnotationsLike, gold: GoldLike = None, *, random_state: RandomState = 0
) -> Independence:
    """Test whether workers err independently, given the truths.

    Dawid and Skene's model, in which they do, is fitted; the statistic is the mean correlation
    of two workers' errors on the same task. Crowds are then drawn from the fitted model, with the
    same tasks and workers, and the model is fitted to each: a parametric bootstrap, with
    Student's t for the tail because there are few crowds. Above 30,000 annotations, a sample of
    tested.

    It detects copying, and tasks on which many workers err, whether hard or misleading, if others
    dissent. It does not detect errors that nearly all share. Nearly every real crowd is dependent
    to some degree; ``worth`` says how much it matters. ``crowdwise bench independence`` measures
    how often the test is wrong, and how often it finds real dependence.

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
    rows = shared[sample_tasks(data[shared], most_annotations(data, per_task), rng)]
    data, known = data[rows], None if known is None else known[rows]
    n_crowds = int(np.clip(WORK // data.n_annotations, FEWEST, MOST))
    found = share_errors(data, known, n_crowds, rng)
    worth = per_task / (1.0 + (per_task - 1.0) * max(found.excess, 0.0))
    return Independence(found.p_value, found.excess, per_task, worth, len(rows), UNSEEN)
