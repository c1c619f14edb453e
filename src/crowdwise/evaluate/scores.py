"""Scores of labels and their probabilities against known truths.

Functions other than :func:`score` take the class number of each truth, -1 if it is unknown.
"""

from collections.abc import Callable, Hashable
from functools import partial
from typing import Unpack

import numpy as np
import pandas as pd
from scipy.sparse import csr_array, hstack

from crowdwise.errors import ParameterError, explain, listing
from crowdwise.evaluate.calibration import bin_edges, bin_rows, calibration_error, confidence_auroc
from crowdwise.evaluate.intervals import (
    Estimate,
    IntervalSettings,
    bootstrap,
    check_interval,
    wilson,
)
from crowdwise.evaluate.truth_alignment import (
    Predictions,
    ScoredTasks,
    Truths,
    align_predictions,
    correct_shares,
    keep_known,
    predicted_shares,
)
from crowdwise.typing import Floats, Ints, RandomState


def score(
    predicted: Predictions,
    truth: Truths,
    *,
    minority: Hashable | None = None,
    n_bins: int = 10,
    bins: str = "mass",
    floor: float = 1e-6,
    n_resamples: int = 1000,
    confidence: float = 0.95,
    random_state: RandomState = 0,
) -> pd.DataFrame:
    """Score predictions on the tasks whose truth is known.

    A task whose label is tied counts as one over the number of ties, the mean of a random
    choice among them.

    Parameters
    ----------
    predicted : fitted aggregator or learner, DataFrame or Series
        A model with ``probas_``, or a learner with ``posterior_``, both of the tasks it was
        fitted to; a frame of tasks x classes, such as a learner's ``predict_proba`` with names;
        or a series of labels by task, for which scores that need probabilities are left out.
    truth : mapping, Series or frame
        True labels by task; other tasks are ignored.
    minority : label, optional
        The class that is scored on its own; by default the rarest true class.
    n_bins, bins : int, {"mass", "width"}
        For the calibration error: the number of bins of confidence, and whether they hold
        equal numbers of tasks or have equal widths.
    floor : float, default=1e-6
        Lower limit of probabilities in the log loss. A truth that was ruled out costs
        ``-log(floor)`` rather than infinity.
    n_resamples, confidence, random_state
        For the intervals, which come from resampled tasks, except Wilson's for accuracy and
        the influence of each task for the AUROC.

    Returns
    -------
    DataFrame
        One row per score; the columns are value, low, high and n_tasks.

        * accuracy, balanced accuracy (mean recall of the true classes), macro F1 (mean over
          all classes that occur), F1 and recall of the minority class: higher is better;
        * log loss (nats), Brier score (0 to 2), calibration error (mean gap between
          confidence and accuracy, biased upward when tasks are few): lower is better;
        * confidence AUROC: the chance that a correct label has more confidence than a wrong
          one; at 0.5, confidence is useless.

    Examples
    --------
    >>> import pandas as pd
    >>> proba = pd.DataFrame({"no": [0.9, 0.4, 0.5], "yes": [0.1, 0.6, 0.5]}, index=list("abc"))
    >>> scores = score(proba, {"a": "no", "b": "no", "c": "yes"})
    >>> print(f"{scores.loc['accuracy', 'value']:.2f}")
    0.50
    """
    check_interval(n_resamples, confidence)
    known = align_predictions(predicted, truth)
    rare = _minority(known, minority)
    rows = class_rows(known.posterior, known.truth)
    estimate = partial(
        _estimate, n_resamples=n_resamples, confidence=confidence, random_state=random_state
    )
    right = float(correct_shares(known.posterior, known.truth).sum())
    low, high = wilson(right, known.n_tasks, confidence)
    found = {
        "accuracy": Estimate(right / known.n_tasks, float(low), float(high), known.n_tasks),
        "balanced accuracy": estimate(rows, _balanced),
        "macro F1": estimate(rows, _macro_f1),
        "minority F1": estimate(rows, lambda sums: _f1(sums)[:, rare]),
        "minority recall": estimate(rows, lambda sums: _recall(sums)[:, rare]),
    }
    if not known.hard:
        edges = bin_edges(known.posterior.max(axis=1), n_bins, bins)
        found["log loss"] = estimate(loss_rows(known.posterior, known.truth, floor), _mean)
        found["Brier score"] = estimate(brier_rows(known.posterior, known.truth), _mean)
        found["calibration error"] = estimate(
            bin_rows(known.posterior, known.truth, edges), calibration_error
        )
        found["confidence AUROC"] = confidence_auroc(known.posterior, known.truth, confidence)
    table = {name: [e.value, e.low, e.high, known.n_tasks] for name, e in found.items()}
    columns = ["value", "low", "high", "n_tasks"]
    return pd.DataFrame.from_dict(table, orient="index", columns=columns).rename_axis("score")


def accuracy(posterior: Floats, truth: Ints) -> float:
    """Compute the share of correct labels; a tie counts one over the number tied."""
    return float(correct_shares(*keep_known(posterior, truth)).mean())


def balanced_accuracy(posterior: Floats, truth: Ints) -> float:
    """Compute the mean recall of the true classes."""
    return _value(class_rows(*keep_known(posterior, truth)), _balanced)


def macro_f1(posterior: Floats, truth: Ints) -> float:
    """Compute the mean F1 of all classes that are true or predicted somewhere."""
    return _value(class_rows(*keep_known(posterior, truth)), _macro_f1)


def class_f1(posterior: Floats, truth: Ints) -> Floats:
    """Compute F1 of each class, NaN if it is neither true nor predicted."""
    return _f1(_sums(class_rows(*keep_known(posterior, truth))))[0]


def class_recall(posterior: Floats, truth: Ints) -> Floats:
    """Compute the share of each class's tasks that are labeled correctly; NaN if none."""
    return _recall(_sums(class_rows(*keep_known(posterior, truth))))[0]


def log_loss(posterior: Floats, truth: Ints, *, floor: float = 1e-6) -> float:
    """Compute the mean of -log P(truth), in nats, with no probability below ``floor``."""
    return _value(loss_rows(*keep_known(posterior, truth), floor), _mean)


def brier_score(posterior: Floats, truth: Ints) -> float:
    """Compute the mean squared distance from the posterior to the truth, from 0 to 2."""
    return _value(brier_rows(*keep_known(posterior, truth)), _mean)


def class_rows(posterior: Floats, truth: Ints) -> csr_array:
    """Return for each task, by class, whether it is true, predicted, and both."""
    n_classes = posterior.shape[1]
    one = csr_array(
        (np.ones(len(truth)), truth, np.arange(len(truth) + 1)), shape=(len(truth), n_classes)
    )
    chosen = csr_array(predicted_shares(posterior))
    return hstack([one, chosen, one.multiply(chosen)], format="csr")


def loss_rows(posterior: Floats, truth: Ints, floor: float) -> Floats:
    """Return for each task 1 and its log loss."""
    if not 0 < floor < 1:
        raise ParameterError(
            f"floor={floor} is out of range.\n  expected: between 0 and 1"
            "\n  fix:      leave floor out for the usual one"
        )
    own = posterior[np.arange(len(truth)), truth]
    return np.column_stack([np.ones(len(truth)), -np.log(np.maximum(own, floor))])


def brier_rows(posterior: Floats, truth: Ints) -> Floats:
    """Return for each task 1 and its squared distance to the truth."""
    own = posterior[np.arange(len(truth)), truth]
    return np.column_stack([np.ones(len(truth)), (posterior**2).sum(axis=1) - 2 * own + 1])


def _parts(sums: Floats) -> tuple[Floats, Floats, Floats]:
    """Split sums into tasks of each true class, labels of each class, and correct ones."""
    true, predicted, right = np.split(sums, 3, axis=1)
    return true, predicted, right


def _recall(sums: Floats) -> Floats:
    true, _, right = _parts(sums)
    return np.divide(right, true, out=np.full_like(right, np.nan), where=true > 0.5)


def _f1(sums: Floats) -> Floats:
    true, predicted, right = _parts(sums)
    out = np.full_like(right, np.nan)
    return np.divide(2 * right, true + predicted, out=out, where=true + predicted > 1e-9)


def _balanced(sums: Floats) -> Floats:
    return np.nanmean(_recall(sums), axis=1)


def _macro_f1(sums: Floats) -> Floats:
    return np.nanmean(_f1(sums), axis=1)


def _mean(sums: Floats) -> Floats:
    return sums[:, 1] / sums[:, 0]


def _sums(rows: Floats | csr_array) -> Floats:
    return np.asarray(rows.sum(axis=0), dtype=np.float64)[None]


def _value(rows: Floats | csr_array, statistic: Callable[[Floats], Floats]) -> float:
    return float(statistic(_sums(rows))[0])


def _estimate(
    rows: Floats | csr_array,
    statistic: Callable[[Floats], Floats],
    **settings: Unpack[IntervalSettings],
) -> Estimate:
    return Estimate(_value(rows, statistic), *bootstrap(rows, statistic, **settings))


def _minority(known: ScoredTasks, name: Hashable | None) -> int:
    """Return the number of the class that is scored on its own."""
    if name is None:
        count = np.bincount(known.truth, minlength=len(known.classes))
        return int(np.where(count > 0, count, count.max() + 1).argmin())
    found = [k for k, own in enumerate(known.classes.tolist()) if own == name]
    if not found:
        raise ParameterError(
            explain(
                f"minority={name!r} is not a class.",
                expected=f"one of {listing(known.classes)}",
                fix="name one of the classes, or leave minority out",
            )
        )
    return found[0]
