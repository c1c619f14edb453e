"""Decisions that give rare classes their due."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from crowdwise.errors import ParameterError, explain
from crowdwise.evaluate.truth_alignment import Predictions, Truths, align_predictions
from crowdwise.typing import Floats


def rebalance(
    proba: ArrayLike | pd.DataFrame,
    prior: ArrayLike | None = None,
    target: ArrayLike | None = None,
) -> Floats | pd.DataFrame:
    """Adjust probabilities to other class frequencies.

    Each class's probability is divided by its old frequency and multiplied by its new one.
    By default, the most probable class then maximizes expected balanced accuracy, the mean share
    of each class's tasks that are labeled correctly. No truth is needed for it.

    Parameters
    ----------
    proba : DataFrame or array of shape (n_tasks, n_classes)
        An aggregator's ``probas_``, or ``predict_proba`` of a learner.
    prior : array of shape (n_classes,), optional
        Class frequencies where the probabilities were learned: an aggregator's ``prior_``, or by
        default the mean of ``proba``.
    target : array of shape (n_classes,), optional
        New class frequencies; equal by default.

    Examples
    --------
    >>> rebalance([[0.7, 0.3]], prior=[0.9, 0.1]).round(3).tolist()
    [[0.206, 0.794]]
    """
    table = np.asarray(proba, dtype=np.float64)
    n_classes = table.shape[-1]
    was = table.mean(axis=0) if prior is None else _shares(prior, n_classes, "prior")
    will = np.ones(n_classes) if target is None else _shares(target, n_classes, "target")
    shifted = table * np.divide(will, was, out=np.zeros(n_classes), where=was > 0)
    total = shifted.sum(axis=-1, keepdims=True)
    shifted = np.divide(shifted, total, out=table.copy(), where=total > 0)
    if isinstance(proba, pd.DataFrame):
        return pd.DataFrame(shifted, index=proba.index, columns=proba.columns)
    return shifted


def balanced_threshold(
    predicted: Predictions, truth: Truths, *, positive: Hashable | None = None
) -> float:
    """Find the probability threshold between two classes from known truths.

    Among all thresholds, it has the highest balanced accuracy on the tasks whose truth is
    known, and lies halfway between the two probabilities that it separates.

    Parameters
    ----------
    predicted : fitted aggregator or DataFrame
        A model with ``probas_``, or a frame of tasks x two classes.
    truth : mapping, Series or frame
        True label by task; other tasks are ignored. Do not use the tasks that you test on.
    positive : label, optional
        The class whose probability is compared; by default the rarer true class.

    Examples
    --------
    >>> proba = pd.DataFrame({"no": [0.9, 0.8, 0.7, 0.6], "yes": [0.1, 0.2, 0.3, 0.4]})
    >>> balanced_threshold(proba, {0: "no", 1: "no", 2: "no", 3: "yes"})
    0.35
    """
    known = align_predictions(predicted, truth)
    size = np.bincount(known.truth, minlength=len(known.classes))
    if known.hard or len(known.classes) != 2 or not size.all():
        raise ParameterError(
            explain(
                "A threshold needs probabilities of two classes, and truths of both.",
                expected="a frame of tasks x two classes",
                fix="use rebalance for more than two classes, or if no truth is known",
            )
        )
    names = known.classes.tolist()
    chosen = int(size.argmin()) if positive is None else names.index(positive)
    score = known.posterior[:, chosen]
    own = known.truth == chosen
    edges = np.unique(score)
    middle = np.concatenate([edges[:1], (edges[1:] + edges[:-1]) / 2])
    found = [(score[own] >= at).mean() + (score[~own] < at).mean() for at in middle]
    return float(middle[int(np.argmax(found))])


def _shares(value: ArrayLike, n_classes: int, name: str) -> Floats:
    """Check for positive numbers, one per class, and scale them to sum to one."""
    shares = np.asarray(value, dtype=np.float64)
    if shares.shape != (n_classes,) or not (shares > 0).all():
        raise ParameterError(
            explain(
                f"{name} has shape {shares.shape} for {n_classes} classes.",
                expected="one positive number per class",
                fix="give a share for each class, in the order of the classes",
            )
        )
    return shares / shares.sum()
