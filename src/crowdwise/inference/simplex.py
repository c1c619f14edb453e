"""Distributions over the classes, as rows: scaling, ties, certainty, known truths and priors."""

import numpy as np
from numpy.typing import ArrayLike

from crowdwise.annotations import Annotations, tied
from crowdwise.errors import ParameterError, explain, listing
from crowdwise.typing import Floats, Ints

SAME = 9  # digits to which equal levels of certainty agree


def normalize(counts: Floats) -> Floats:
    """Scale the last axis to sum to one, uniform if it is empty."""
    total = counts.sum(axis=-1, keepdims=True)
    uniform = np.full_like(counts, 1.0 / counts.shape[-1])
    return np.divide(counts, total, out=uniform, where=total > 0)


def log_of(probability: Floats) -> Floats:
    """Return the logarithm, -inf at 0."""
    with np.errstate(divide="ignore"):
        return np.log(probability)


def one_hot(codes: Ints, n_classes: int) -> Floats:
    """Return a row for each class number, all 0 for a negative one."""
    return (codes[:, None] == np.arange(n_classes)).astype(np.float64)


def share_best(posterior: Floats) -> Floats:
    """Put all mass on the best class of each task, in equal parts if several are tied."""
    return normalize(tied(posterior).astype(np.float64))


def measure_certainty(annotations: Annotations, floor: float) -> Floats:
    """Return one over the variance of each task's labels (ICED eq. 2.4), 0 without any."""
    if not floor > 0:
        raise ParameterError(
            explain(
                f"floor={floor} is out of range.",
                expected="more than 0",
                fix="leave floor out for the default",
            )
        )
    variance = 1.0 - (annotations.shares() ** 2).sum(axis=1)
    labeled = annotations.votes().sum(axis=1) > 0
    return np.where(labeled, 1.0 / (np.maximum(variance, 0.0) + floor), 0.0)


def rank_certainty(certainty: Floats, n_levels: int) -> Ints:
    """Rank each task's value among the highest distinct ones, from 1; 0 for lower ones."""
    values = np.unique(np.round(certainty[certainty > 0], SAME))[::-1][:n_levels]
    found = np.round(certainty, SAME)[:, None] == values
    return np.where(found.any(axis=1), found.argmax(axis=1) + 1 if len(values) else 0, 0)


def clamp(posterior: Floats, gold: Ints | None) -> Floats:
    """Return the posterior with all mass on the gold class where known."""
    if gold is None:
        return posterior
    posterior = posterior.copy()
    posterior[gold >= 0] = 0.0
    posterior[np.flatnonzero(gold >= 0), gold[gold >= 0]] = 1.0
    return posterior


def gold_mask(gold: Ints | None, n_classes: int) -> Floats | None:
    """Return the log of 0 for every truth that gold rules out, to add to a log joint."""
    if gold is None or not (gold >= 0).any():
        return None
    mask = np.zeros((len(gold), n_classes))
    mask[gold >= 0] = -np.inf
    mask[np.flatnonzero(gold >= 0), gold[gold >= 0]] = 0.0
    return mask


def fixed_prior(class_prior: str | ArrayLike, n_classes: int) -> Floats | None:
    """Return the class prior given by a parameter; None if it is to be estimated."""
    if isinstance(class_prior, str):
        return None if class_prior == "estimate" else np.full(n_classes, 1.0 / n_classes)
    prior = np.asarray(class_prior, dtype=np.float64)
    if prior.shape != (n_classes,) or not (prior > 0).all():
        raise ParameterError(
            explain(
                f"class_prior has shape {prior.shape} for {n_classes} classes.",
                expected="one positive number per class",
                fix="leave it out to learn the shares, or give one per class",
            )
        )
    return normalize(prior)


def worker_prior(smoothing: ArrayLike, n_classes: int) -> Floats:
    """Return pseudo-counts of truth x label from one number, (right, wrong), or a matrix."""
    value = np.asarray(smoothing, dtype=np.float64)
    shapes = ((), (2,), (n_classes, n_classes))
    if value.shape not in shapes or not (value > 0).all():
        raise ParameterError(
            explain(
                f"smoothing has shape {value.shape} for {n_classes} classes.",
                expected="a positive number, a pair (right, wrong) of them, or one for each "
                "truth (row) and label (column)",
                fix="give one number for all",
            )
        )
    if value.ndim == 2:
        return value
    right, wrong = np.broadcast_to(value, 2)
    return np.where(np.eye(n_classes, dtype=bool), right, wrong)


def as_confusion_counts(value: ArrayLike, n_classes: int, name: str = "smoothing") -> Floats:
    """Return pseudo-counts of truth x label from one number, or from a matrix."""
    matrix = np.asarray(value, dtype=np.float64)
    if matrix.ndim == 0:
        return np.full((n_classes, n_classes), float(matrix))
    if matrix.shape != (n_classes, n_classes) or not (matrix > 0).all():
        raise ParameterError(
            explain(
                f"{name} has shape {matrix.shape} for {n_classes} classes.",
                expected="one positive number, or one for each truth (row) and label (column)",
                fix="give one number for all",
            )
        )
    return matrix


def one_coin_confusion(accuracy: ArrayLike, n_classes: int) -> Floats:
    """Return confusion matrices with evenly spread errors, ``(worker, truth, label)``.

    With a single class, there are no errors.
    """
    right = np.atleast_1d(np.asarray(accuracy, dtype=np.float64))[:, None, None]
    if not ((right >= 0) & (right <= 1)).all():
        raise ParameterError(
            explain(
                f"accuracy={listing(right.ravel())} has values that are not probabilities.",
                expected="numbers from 0 to 1",
                fix="divide percentages by 100",
            )
        )
    if n_classes == 1:
        return np.ones_like(right)
    wrong = (1.0 - right) / (n_classes - 1)
    return np.where(np.eye(n_classes, dtype=bool), right, wrong)
