"""Operations on a posterior, whether it is an array or in compact form."""

import numpy as np
import pandas as pd

from crowdwise import memory
from crowdwise.annotations import TIE, tied
from crowdwise.errors import AnnotationError, explain
from crowdwise.inference.compact import CompactPosterior
from crowdwise.inference.engines.engine import Posterior
from crowdwise.inference.simplex import share_best
from crowdwise.typing import Array, Floats, Ints


def as_array(posterior: Posterior) -> Floats:
    """Return the posterior as an array, if that fits into memory."""
    if not isinstance(posterior, CompactPosterior):
        return posterior
    memory.refuse_dense("Probabilities of every class", posterior.shape, ("tasks", "classes"))
    return posterior.toarray()


def choose(posterior: Posterior) -> Ints:
    """Return the best class of each task, the first of tied ones."""
    if isinstance(posterior, CompactPosterior):
        return posterior.argmax()
    return tied(posterior).argmax(axis=1)


def share_right(posterior: Posterior, truth: Ints) -> Floats:
    """Return whether each task's best class is right; one over the number of tied ones."""
    if not isinstance(posterior, CompactPosterior):
        return share_best(posterior)[np.arange(len(truth)), truth]
    leads = posterior.at(truth) >= posterior.max() - TIE
    return leads / posterior.count_tied()


def as_frame(posterior: Posterior, tasks: Array | pd.Index, classes: Array) -> pd.DataFrame:
    """Return the posterior with its names, task x class."""
    if isinstance(posterior, CompactPosterior):
        size = memory.show_bytes(8 * len(posterior) * len(classes))
        raise AnnotationError(
            explain(
                f"A frame of {len(posterior):,} tasks x {len(classes):,} classes would "
                f"take {size} of memory.",
                fix="use labels_ or predict for the labels, posterior_.max() for their "
                "probabilities, and posterior_[rows] for complete distributions of some tasks",
            )
        )
    index = pd.Index(tasks, name="task")
    return pd.DataFrame(posterior, index=index, columns=pd.Index(classes, name="label"))


def name_labels(codes: Ints, tasks: Array | pd.Index, classes: Array) -> pd.Series:
    """Return the label of each task by name, None for a negative number."""
    labels = pd.Series(classes[codes], index=pd.Index(tasks, name="task"))
    if (codes < 0).any():
        labels = labels.astype(object)
        labels[codes < 0] = None
    return labels.rename("agg_label")
