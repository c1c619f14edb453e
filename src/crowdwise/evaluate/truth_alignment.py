"""Predictions aligned with known truths, task by task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, Union

import numpy as np
import pandas as pd

from crowdwise.annotations.names import as_names, encode, locate
from crowdwise.annotations.truth_names import compare_classes, warn_unseen_truths
from crowdwise.errors import AnnotationError, ParameterError, explain, listing, plural
from crowdwise.inference import CompactPosterior, share_best
from crowdwise.inference.posteriors import as_array
from crowdwise.io.truths import align_truths
from crowdwise.typing import Array, Floats, Ints

if TYPE_CHECKING:
    from crowdwise.base.aggregator import Aggregator
    from crowdwise.base.learner import Learner

Predictions: TypeAlias = Union["Aggregator", "Learner", pd.DataFrame, pd.Series]
Truths: TypeAlias = Mapping[str, object] | Mapping[int, object] | pd.Series | pd.DataFrame

# How far probabilities may be from a sum of 1: each may be rounded to two digits.
ROUNDED, MOST = 0.005, 0.05


@dataclass(frozen=True)
class ScoredTasks:
    """The tasks that have both a prediction and a truth."""

    classes: Array
    posterior: Floats  # (task, class)
    truth: Ints  # (task,)
    hard: bool  # whether the prediction was a label, not a distribution

    @property
    def n_tasks(self) -> int:
        return len(self.truth)


def align_predictions(predicted: Predictions, truth: Truths) -> ScoredTasks:
    """Align predictions and truths by task; their classes are merged.

    Parameters
    ----------
    predicted : fitted aggregator or learner, DataFrame or Series
        A model with ``probas_``, or with ``posterior_`` of its training tasks; a frame of
        tasks x classes; or a series of labels by task, in which None means no label.
    truth : mapping, Series or frame
        True labels by task; a frame has the columns task and gold or label. Tasks without a
        prediction, and predictions without a truth, are ignored.
    """
    frame = _as_table(predicted, truth)
    if not isinstance(frame, pd.DataFrame | pd.Series):
        raise AnnotationError(
            explain(
                f"A {type(predicted).__name__} cannot be scored.",
                expected="a fitted model, a frame of tasks x classes, or a series of labels",
                fix="give labels by task: a series or a dict",
            )
        )
    refuse_repeated_names(frame)
    place, known = align_truths(truth, frame.index, "that was predicted")
    if not len(known):
        fix = "give the true label of at least one task that was predicted"
        raise AnnotationError(explain("There are no truths to score by.", fix=fix))
    chosen = frame.iloc[place]
    hard = isinstance(chosen, pd.Series)
    names = chosen.dropna() if hard else chosen.columns
    classes = _merge_classes(as_names(names), as_names(known), hard=hard)
    posterior = _one_hot(chosen, classes) if hard else _widen(chosen, classes)
    return ScoredTasks(classes, posterior, locate(classes, known), hard)


def _as_table(predicted: Predictions, truth: Truths) -> pd.DataFrame | pd.Series:
    """Return a model's distributions as a named frame; anything else is unchanged."""
    posterior = getattr(predicted, "posterior_", None)
    if not isinstance(posterior, np.ndarray | CompactPosterior):
        return predicted.probas_ if hasattr(predicted, "probas_") else predicted
    tasks = pd.Index(predicted.tasks_, name="task", tupleize_cols=False)
    if isinstance(posterior, CompactPosterior):  # only tasks with a truth
        place = align_truths(truth, tasks, "that was predicted")[0]
        tasks, posterior = tasks[place], as_array(posterior.take(place))
    return pd.DataFrame(posterior, index=tasks, columns=predicted.classes_)


def keep_known(posterior: Floats | CompactPosterior, truth: Ints) -> tuple[Floats, Ints]:
    """Return the tasks whose truth is known, not -1; refuse truths that are no class numbers."""
    codes, shape = np.asarray(truth), np.shape(posterior)
    fits = len(shape) == 2 and codes.shape == shape[:1] and codes.dtype.kind in "iu"
    if not fits or ((codes < -1) | (codes >= shape[1])).any():
        raise ParameterError(
            explain(
                f"Truths of shape {codes.shape} and type {codes.dtype} do not match predictions of "
                f"shape {shape}.",
                expected="probabilities, tasks x classes, and a class number for each task, -1 if "
                "its truth is unknown",
                fix="give these, or use score(model, truths by task), which takes names",
            )
        )
    known = np.flatnonzero(codes >= 0)
    if not len(known):
        fix = "give the true label of at least one task that was predicted"
        raise AnnotationError(explain("There are no truths to score by.", fix=fix))
    compact = isinstance(posterior, CompactPosterior)
    some = as_array(posterior.take(known)) if compact else np.asarray(posterior)[known]
    return some, codes[known]


def predicted_shares(posterior: Floats) -> Floats:
    """Return 1 for the best class of each task, split between ties; all 0 if there is none."""
    return np.where(posterior.sum(axis=1, keepdims=True) > 0, share_best(posterior), 0.0)


def correct_shares(posterior: Floats, truth: Ints) -> Floats:
    """Return whether each task's label is correct; if tied, the chance that it is."""
    return predicted_shares(posterior)[np.arange(len(truth)), truth]


def _merge_classes(predicted: Array, true: Array, *, hard: bool) -> Array:
    """Merge the classes of both; labels need not name all classes, but then truths must."""
    own, known = encode(predicted, "label")[0], encode(true, "label")[0]
    unseen = locate(own, known) < 0
    if unseen.all():
        fact = "None of the true labels was ever predicted."
        raise AnnotationError(explain(fact, **compare_classes(known, own)))
    if not hard or (locate(known, own) < 0).any():
        warn_unseen_truths(true, own, "all predictions for them are wrong")
    return np.concatenate([own.astype(object), known[unseen].astype(object)])


def _widen(frame: pd.DataFrame, classes: Array) -> Floats:
    wide = np.zeros((len(frame), len(classes)))
    wide[:, locate(classes, frame.columns)] = as_distributions(frame)
    return wide


def _one_hot(labels: pd.Series, classes: Array) -> Floats:
    given = labels.notna().to_numpy()
    wide = np.zeros((len(labels), len(classes)))
    wide[np.flatnonzero(given), locate(classes, labels[given])] = 1.0
    return wide


def refuse_repeated_names(predicted: pd.DataFrame | pd.Series) -> None:
    """Refuse tasks or classes that have more than one prediction."""
    names = {"task": predicted.index}
    if isinstance(predicted, pd.DataFrame):
        names["class"] = predicted.columns
    for what, index in names.items():
        again = index[index.duplicated()].unique()
        if len(again):
            raise AnnotationError(
                explain(
                    f"Some names of a {what} occur more than once: {len(again):,}.",
                    first=f"{what}={listing(again[:1])}",
                    expected=f"one prediction for each {what}",
                    fix="drop or merge the repeated names",
                )
            )


def as_distributions(predicted: pd.DataFrame) -> Floats:
    """Return probabilities as an array; rows must be distributions, up to rounding."""
    numbers = predicted
    if any(dtype.kind not in "fiub" for dtype in set(predicted.dtypes)):
        numbers = predicted.apply(pd.to_numeric, errors="coerce")
    proba = numbers.to_numpy(dtype=np.float64)
    total, slack = proba.sum(axis=1), min(MOST, ROUNDED * proba.shape[1]) + 1e-9
    with np.errstate(invalid="ignore"):
        bad = ~((proba >= -1e-9).all(axis=1) & (np.abs(total - 1.0) <= slack))
    if bad.any():
        row = int(bad.argmax())
        what = "is not a distribution" if bad.sum() == 1 else "are not distributions"
        raise AnnotationError(
            explain(
                f"{int(bad.sum()):,} of {plural(len(bad), 'prediction')} {what}.",
                first=f"task={listing(predicted.index[row : row + 1])}: "
                f"[{listing(predicted.iloc[row].to_numpy())}]",
                expected="probabilities of the classes, which sum to 1",
                fix="divide each row by its sum, and leave out tasks without a prediction",
            )
        )
    return proba / total[:, None]
