"""Label counts of each task, which are all that most agreement measures need."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from crowdwise.annotations import Annotations
from crowdwise.annotations.frames import advise_on_number
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
    """How many workers gave each label, for tasks with any labels."""

    counts: csr_array  # (task, class)
    classes: Array
    n_workers: int

    @cached_property
    def size(self) -> Floats:
        """Number of labels of each task."""
        return np.asarray(self.counts.sum(axis=1), dtype=np.float64)

    @cached_property
    def shared(self) -> Array:
        """Whether each task has two labels or more."""
        return self.size > 1

    @cached_property
    def used(self) -> Array:
        """Names of the classes that occur."""
        return self.classes[np.asarray(self.counts.sum(axis=0)) > 0]


def once_per_worker(annotations: AnnotationsLike) -> Annotations:
    """Keep at most one label per worker and task, all of equal weight.

    Agreement is between workers: one who labels a task twice counts once, with the last
    label; weights do not matter, except that annotations of weight 0 are left out.
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
    """Sum the similarity of all ordered pairs of each task's labels, self-pairs included.

    ``kernel[k, l]`` is the similarity of classes k and l, 1 on the diagonal; None means that
    different classes are not similar at all.
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
    """Return the expected similarity of two labels drawn from the same shares, one per row."""
    other = shares if kernel is None else shares @ kernel
    return np.einsum("rk,rk->r", shares, other)


def weight_kernel(weights: WeightsLike, classes: Array) -> Floats | None:
    """Return the similarity of classes under named weights, or under a weight matrix."""
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
    return _check_kernel(weights, len(classes))


def _check_kernel(weights: ArrayLike, n_classes: int) -> Floats:
    """Return a matrix of weights, unless they are not shares of agreement."""
    given = np.asarray(weights)
    kernel = (
        given.astype(np.float64) if given.dtype.kind in "fiub" else np.full(given.shape, np.nan)
    )
    shape = n_classes, n_classes
    fits = kernel.shape == shape and bool(((kernel >= 0) & (kernel <= 1)).all())
    if not fits or not np.allclose(np.diag(kernel), 1) or not np.allclose(kernel, kernel.T):
        raise ParameterError(
            explain(
                f"These weights of shape {kernel.shape} cannot be used for {n_classes} classes.",
                expected="a number from 0 to 1 for each pair of classes, the same both ways "
                "around, and 1 for a class and itself",
                fix="give one row and one column per class, in the order of the classes",
            )
        )
    return kernel


def level_kernel(level: str, table: LabelCounts) -> Floats | None:
    """Return the similarity of classes at a level of measurement (Krippendorff's distances)."""
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
    """Return the similarity of numbers with a true zero: their gap relative to their sum."""
    values = _numbers(classes, "ratio")
    gap, total = values[:, None] - values, values[:, None] + values
    return _nearness(np.divide(gap, total, out=np.zeros_like(gap), where=total > 0) ** 2)


def _nearness(gap: Floats) -> Floats:
    """Return one minus the gap, scaled so that the widest gap is 1."""
    return 1 - gap / max(gap.max(initial=0), 1e-300)


def _middle_ranks(table: LabelCounts) -> Floats:
    """Return the middle rank of each class among all labels of shared tasks."""
    number = np.asarray(table.counts[np.flatnonzero(table.shared)].sum(axis=0), dtype=np.float64)
    order = np.argsort(ordered_values(table.classes), kind="stable")
    ranks = np.empty_like(number)
    ranks[order] = np.cumsum(number[order]) - number[order] / 2
    return ranks


def ordered_values(classes: Array) -> Floats:
    """Return the classes as numbers if they are numbers, else their positions."""
    values = as_numbers(classes)
    return np.arange(len(classes), dtype=np.float64) if values is None else values


def note_order(kernel: Floats | None, classes: Array) -> str:
    """Say which order a similarity of classes follows, unless it is obvious."""
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
                fix=advise_on_number(next(filter(advise_on_number, classes), None))
                + "use level='ordinal', which takes the order of the classes, or 'nominal'",
            )
        )
    return values
