"""Confusion matrices, ``confusion[worker, truth, label]``, from accuracies and from counts."""

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from crowdwise.annotations import Annotations
from crowdwise.errors import ParameterError, explain, listing
from crowdwise.inference.engines.memory import MemoryEngine
from crowdwise.inference.simplex import normalize
from crowdwise.typing import Floats, Ints


def one_coin_confusion(accuracy: ArrayLike, n_classes: int) -> Floats:
    """Confusion matrices of workers who err evenly, ``(worker, truth, label)``.

    With one class there is nothing to err about.
    """
    right = np.atleast_1d(np.asarray(accuracy, dtype=np.float64))[:, None, None]
    if not ((right >= 0) & (right <= 1)).all():
        raise ParameterError(
            explain(
                f"accuracy={listing(right.ravel())} is not all probabilities.",
                expected="numbers from 0 to 1",
            )
        )
    if n_classes == 1:
        return np.ones_like(right)
    wrong = (1.0 - right) / (n_classes - 1)
    return np.where(np.eye(n_classes, dtype=bool), right, wrong)


def count_labels(annotations: Annotations, posterior: Floats, row: Ints | None = None) -> Floats:
    """Expected label counts under a posterior, ``(worker, truth, label)``.

    With ``row``, workers are counted in the rows of these numbers instead: several of them
    together where the number is the same, and not at all where it is negative.
    """
    if row is not None:
        place = row[annotations.worker]
        annotations = annotations.filter(place >= 0)
        names = np.arange(row.max(initial=-1) + 1)
        worker = place[place >= 0].astype(np.int32)
        annotations = replace(annotations, workers=names, worker=worker)
    return MemoryEngine(annotations).count(posterior)


def pooled_confusion(annotations: Annotations, posterior: Floats, pooling: float = 1.0) -> Floats:
    """P(label | truth) of each worker by counting, ``(worker, truth, label)``.

    Each row gets ``pooling`` labels of the crowd's confusion, so that no worker is ever
    certain.
    """
    counts = count_labels(annotations, posterior)
    crowd = normalize(counts.sum(axis=0) + 1.0 / annotations.n_classes)
    return normalize(counts + pooling * crowd)
