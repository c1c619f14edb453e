"""Label counts of each task, which is all that most agreement measures need."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from crowdwise.annotations import Annotations
from crowdwise.annotations.order import as_numbers, describe_order
from crowdwise.errors import ParameterError, explain, listing
from crowdwise.io import as_annotations
from crowdwise.memory import refuse_dense
from crowdwise.typing import AnnotationsLike, Array, Floats

WEIGHTS = ("identity", "linear", "quadratic", "ratio")
WeightsLike: TypeAlias = str | ArrayLike  # a name in WEIGHTS, or a matrix class x class
LEVELS = ("nominal", "ordinal", "interval", "ratio")
CELLS_AT_ONCE = 1 << 22


@dataclass(frozen=True)
class LabelCounts:
    """How many workers gave each label, on the tasks that have any."""

    counts: csr_array  # (task, class)
    classes: Array
    n_workers: int

    @cached_property
    def size(self) -> Floats:
        """Labels of each task."""
        return np.asarray(self.counts.sum(axis=1), dtype=np.float64)

    @cached_property
    def shared(self) -> Array:
        """Which tasks have two labels or more."""
        return self.size > 1

    @cached_property
    def used(self) -> Array:
        """Names of the classes that occur."""
        return self.classes[np.asarray(self.counts.sum(axis=0)) > 0]


def once_per_worker(annotations: AnnotationsLike) -> Annotations:
    """Keep at most one label per worker and task, all of equal weight.

    Agreement is between workers: one who labels a task twice counts once, with the last
    label, and weights do not matter (but an annotation of weight 0 is left out).
    A soft label counts as its most probable class.
    """
    data = as_annotations(annotations)
    if data.weight is not None and not (data.weight > 0).all():
        data = data.filter(data.weight > 0)
    if data.n_repeats:
        data = data.without_repeats("last")
    return replace(data, weight=None, soft=None)


def label_counts(annotations: Annotations) -> LabelCounts:
    """Count the labels of each task; takes what :func:`once_per_worker` returns."""
    ones = np.ones(annotations.n_annotations)
    parts = (ones, annotations.label.astype(np.int32), annotations.indptr.copy())
    table = csr_array(parts, shape=(annotations.n_tasks, annotations.n_classes))
    table.sum_duplicates()
    labeled = np.flatnonzero(annotations.redundancy)
    if len(labeled) < annotations.n_tasks:
        table = table[labeled]
    return LabelCounts(table, annotations.classes, len(np.unique(annotations.worker)))


def sum_similarity(table: LabelCounts, kernel: Floats | None) -> Floats:
    """Sum the similarity of all ordered pairs of each task's labels, a label with itself too.

    ``kernel[k, l]`` is how similar classes k and l are, 1 for a class and itself; None
    is for classes that are similar only to themselves.
    """
    counts = table.counts
    if kernel is None:
        squares = csr_array((counts.data**2, counts.indices, counts.indptr), shape=counts.shape)
        return np.asarray(squares.sum(axis=1))
    step = max(CELLS_AT_ONCE // max(counts.shape[1], 1), 1)
    blocks = (counts[start : start + step] for start in range(0, counts.shape[0], step))
    sums = [np.asarray(block.multiply(block @ kernel).sum(axis=1)) for block in blocks]
    return np.concatenate([np.zeros(0), *sums])


def expected_similarity(shares: Floats, kernel: Floats | None) -> Floats:
    """Similarity of two labels drawn from the same shares; one value per row."""
    other = shares if kernel is None else shares @ kernel
    return np.einsum("rk,rk->r", shares, other)


def weight_kernel(weights: WeightsLike, classes: Array) -> Floats | None:
    """How similar two classes are under named weights, or under a matrix of them."""
    if isinstance(weights, str):
        if weights not in WEIGHTS:
            raise ParameterError(
                f"weights={weights!r} is unknown.\n  expected: {', '.join(WEIGHTS)}, or a matrix"
                "\n  fix:      choose one of these, or give a matrix classes x classes"
            )
        if weights == "identity":
            return None
        _refuse_many(classes)
        if weights == "ratio":
            return _ratio_kernel(classes)
        values = ordered_values(classes)
        gap = np.abs(values[:, None] - values)
        return _nearness(gap if weights == "linear" else gap**2)
    kernel = np.asarray(weights, dtype=np.float64)
    if kernel.shape != (len(classes), len(classes)) or not np.allclose(np.diag(kernel), 1):
        raise ParameterError(
            explain(
                f"The weights have shape {kernel.shape} for {len(classes)} classes.",
                expected="one number for each pair of classes, 1 for a class and itself",
                fix="give one row and one column for each class, in their order",
            )
        )
    return kernel


def level_kernel(level: str, table: LabelCounts) -> Floats | None:
    """How similar two classes are at a level of measurement (Krippendorff's distances)."""
    if level not in LEVELS:
        raise ParameterError(
            f"level={level!r} is unknown.\n  expected: {', '.join(LEVELS)}"
            "\n  fix:      choose one of these"
        )
    if level == "nominal":
        return None
    _refuse_many(table.classes)
    if level == "ratio":
        return _ratio_kernel(table.classes)
    values = _middle_ranks(table) if level == "ordinal" else _numbers(table.classes, level)
    return _nearness((values[:, None] - values) ** 2)


def _refuse_many(classes: Array) -> None:
    n = len(classes)
    refuse_dense("A weight for every two classes", (n, n), ("classes", "classes"))


def _ratio_kernel(classes: Array) -> Floats:
    """Similarity of numbers with a true zero: their gap counts relative to their sum."""
    values = _numbers(classes, "ratio")
    gap, total = values[:, None] - values, values[:, None] + values
    return _nearness(np.divide(gap, total, out=np.zeros_like(gap), where=total > 0) ** 2)


def _nearness(gap: Floats) -> Floats:
    """One minus the gap, with the widest gap as 1."""
    return 1 - gap / max(gap.max(initial=0), 1e-300)


def _middle_ranks(table: LabelCounts) -> Floats:
    """Where the middle of each class stands among all labels that share a task, in order."""
    number = np.asarray(table.counts[np.flatnonzero(table.shared)].sum(axis=0), dtype=np.float64)
    order = np.argsort(ordered_values(table.classes), kind="stable")
    ranks = np.empty_like(number)
    ranks[order] = np.cumsum(number[order]) - number[order] / 2
    return ranks


def ordered_values(classes: Array) -> Floats:
    """The classes as numbers where they are numbers, else their positions in ``classes``."""
    values = as_numbers(classes)
    return np.arange(len(classes), dtype=np.float64) if values is None else values


def note_order(kernel: Floats | None, classes: Array) -> str:
    """Say which order a similarity of classes follows, where that is not plain."""
    if kernel is None:
        return ""
    return describe_order(classes[np.argsort(ordered_values(classes), kind="stable")])


def _numbers(classes: Array, level: str) -> Floats:
    values = as_numbers(classes)
    if values is None or (level == "ratio" and (values < 0).any()):
        raise ParameterError(
            explain(
                f"The classes are not numbers that level={level!r} can use.",
                first=f"classes are {listing(classes)}",
                expected="numbers" + (" of 0 or more" if level == "ratio" else ""),
                fix="use level='ordinal', which takes the order of the classes, or 'nominal'",
            )
        )
    return values
