"""Class balance, and which classes are confused."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from crowdwise.annotations import Annotations
from crowdwise.annotations.names import locate
from crowdwise.inference import count_labels
from crowdwise.typing import Floats

MOST_MISTAKES = 8


@dataclass(frozen=True)
class Mistake:
    """How often tasks of one class are labeled as another."""

    truth: str
    label: str
    share: float  # of the labels of tasks of this class


@dataclass(frozen=True)
class ClassFacts:
    """Class shares, and the confusion matrix of the whole crowd."""

    name: list[str]
    given: Floats  # (class,): share of annotations
    inferred: Floats  # (class,): expected share of tasks by the main method
    true: Floats | None  # (class,): share of known truths
    confusion: Floats  # (truth, label): expected number of annotations
    mistakes: tuple[Mistake, ...]  # the most frequent first

    @property
    def rarest(self) -> int:
        """Return the number of the class with the fewest tasks, among those in use."""
        return int(np.where(self.given > 0, self.inferred, np.inf).argmin())


def class_facts(data: Annotations, posterior: Floats, truth: pd.Series | None) -> ClassFacts:
    """Count classes among labels, inferred truths and known truths."""
    n_classes = data.n_classes
    given = np.bincount(data.label, minlength=n_classes) / max(data.n_annotations, 1)
    confusion = crowd_confusion(data, posterior)
    names = [str(name) for name in data.classes.tolist()]
    true = None
    if truth is not None:
        code = locate(data.classes, truth.to_numpy())
        true = np.bincount(code[code >= 0], minlength=n_classes) / max((code >= 0).sum(), 1)
    return ClassFacts(
        name=names,
        given=given,
        inferred=posterior[data.redundancy > 0].mean(axis=0),
        true=true,
        confusion=confusion,
        mistakes=mistakes_of(confusion, names),
    )


def crowd_confusion(data: Annotations, posterior: Floats) -> Floats:
    """Return the expected number of annotations by truth and label, summed over workers."""
    plain, everyone = replace(data, weight=None, soft=None), np.zeros(data.n_workers, np.int64)
    return count_labels(plain, posterior, everyone)[0]


def mistakes_of(confusion: Floats, names: list[str]) -> tuple[Mistake, ...]:
    """List the most frequent wrong labels, as shares of their truth's labels."""
    rows = confusion.sum(axis=1, keepdims=True)
    share = np.divide(confusion, rows, out=np.zeros_like(confusion), where=rows >= 1)
    np.fill_diagonal(share, 0.0)
    order = np.argsort(-share, axis=None, kind="stable")[:MOST_MISTAKES]
    found = [(int(i), int(j)) for i, j in zip(*np.unravel_index(order, share.shape), strict=True)]
    return tuple(
        Mistake(names[i], names[j], float(share[i, j])) for i, j in found if share[i, j] > 0
    )
