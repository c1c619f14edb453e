"""Certainty of each task, from how much its labels vary."""

import numpy as np
import pandas as pd

from crowdwise.inference import measure_certainty, rank_certainty
from crowdwise.io import as_annotations
from crowdwise.typing import AnnotationsLike


def certainty(
    annotations: AnnotationsLike, *, floor: float = 0.05, n_levels: int = 3
) -> pd.DataFrame:
    """Measure the certainty of each task's labels, and its group, as ICED's warm-up does.

    A label is a corner of a simplex; its variance over the workers of a task is one minus
    the sum of the squared class shares: 0 where all agree, and at most one minus one over the
    number of classes. Certainty is one over (variance plus ``floor``).

    Parameters
    ----------
    annotations : Annotations, frame, array, dict or path
        Anything that :func:`crowdwise.io.as_annotations` accepts. A task with a single label
        counts as unanimous.
    floor : float, default=0.05
        Added to the variance. The smaller it is, the more unanimous tasks stand out: at 0.05
        they are 11 times as certain as a tie between two classes, at 1e-6 half a million times.
    n_levels : int, default=3
        How many of the highest distinct values form groups of their own.

    Returns
    -------
    DataFrame
        By task: ``certainty``, 0 where there are no labels, and ``level``, 1 for the highest
        value, 2 for the next, and 0 for all below the last level and for no labels.

    References
    ----------
    Wang, Thekinen, Liu, Liu and Tang (2021). Learning from imbalanced crowdsourced labeled
    data. SIAM International Conference on Data Mining. Definition 2 and section 2.5.

    Examples
    --------
    >>> certainty([[0, 0, 0], [0, 1, 1], [1, 1, 1]])["certainty"].round(2).tolist()
    [20.0, 2.02, 20.0]
    """
    data = as_annotations(annotations)
    score = measure_certainty(data, floor)
    table = {"certainty": score, "level": rank_certainty(score, n_levels)}
    return pd.DataFrame(table, index=pd.Index(np.asarray(data.tasks), name="task"))
