"""How certain a crowd is of each task, by how much its labels vary."""

import numpy as np
import pandas as pd

from crowdwise.inference import measure_certainty, rank_certainty
from crowdwise.io import as_annotations
from crowdwise.typing import AnnotationsLike


def certainty(
    annotations: AnnotationsLike, *, floor: float = 0.05, n_levels: int = 3
) -> pd.DataFrame:
    """Measure the certainty of each task's labels, and its group: what ICED warms up by.

    A label is a corner of a simplex; its variance over the workers of a task is one minus
    the sum of the squared shares of the classes: 0 where all agree, and at most one minus
    one over the number of classes. Certainty is one over the variance plus ``floor``.

    Parameters
    ----------
    annotations : Annotations, frame, array, dict or path
        Whatever :func:`crowdwise.io.as_annotations` takes. A task with a single label
        counts as one on which all agree.
    floor : float, default=0.05
        What is added to the variance. The smaller, the more a task on which all agree
        stands out: at 0.05 it is 11 times as certain as a tied one of two classes, at 1e-6
        half a million times.
    n_levels : int, default=3
        How many of the highest distinct values are groups of their own.

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
