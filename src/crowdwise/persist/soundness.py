"""Checks of a loaded model: arrays must match its names, and numbers must be valid."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Protocol

import numpy as np

from crowdwise.annotations import Annotations
from crowdwise.errors import CrowdwiseError, FormatError
from crowdwise.typing import Array

DISTRIBUTIONS = ("posterior_", "confusion_", "prior_")  # if their last axis is the classes
COUNTS = ("counts_", "knowing_counts_", "spam_counts_")  # of labels, pseudo-counts included
SHARES = (
    "rates_", "rate_", "accuracy_", "propensity_", "confidence_", "share_", "caution_",
)  # fmt: skip
ROUNDING = 1e-4  # possible error of rows in single precision
MOST = 1e100  # larger numbers are never learned, and would overflow
FEW = 3  # workers and classes of a question that is made up
MOST_LOG = 700.0  # largest number to exponentiate
# What an axis of an array stands for: names in the model ("tasks_"), a size, or a word for a size
# shared by several arrays.
Axes = tuple[str | int, ...]


class Model(Protocol):
    """A model loaded from a file."""

    @property
    def _axes(self) -> Mapping[str, Axes]: ...

    def _worker_rows(self) -> Mapping[str, Array]: ...

    def _task_rows(self) -> Mapping[str, Array]: ...


class CompactRows(Protocol):
    """A posterior stored only for the classes that tasks were given."""

    value: Array
    rest: Array

    def sum(self, axis: int) -> Array: ...


def refuse_misfits(model: Model) -> None:
    """Refuse a model whose learned arrays do not match the sizes of its names."""
    axes = {axis for names in model._axes.values() for axis in names} | {"tasks_", "workers_"}
    sizes: dict[str | int, int] = {axis: axis for axis in axes if isinstance(axis, int)}
    for axis in sorted(axis for axis in axes if isinstance(axis, str) and axis.endswith("_")):
        if np.ndim(getattr(model, axis)) != 1:
            raise FormatError(f"{axis} is not a list of names.")
        sizes[axis] = len(getattr(model, axis))
    rows: dict[str, Axes] = {
        **dict.fromkeys(model._worker_rows(), ("workers_",)),
        **dict.fromkeys(model._task_rows(), ("tasks_",)),
    }
    for name, names in {**rows, **model._axes}.items():
        if name in vars(model):
            found = np.shape(vars(model)[name])
            shared = zip(names, found, strict=False)
            expected = tuple(sizes.setdefault(axis, size) for axis, size in shared)
            whole = len(found) == len(names) if name in model._axes else found != ()
            if not whole or found[: len(names)] != expected:
                raise FormatError(f"{name} has shape {found}, but its names require {expected}.")
    if (idle := vars(model).get("idle_")) is not None and (
        np.ndim(idle) != 1
        or np.asarray(idle).dtype.kind not in "iu"
        or not np.isin(idle, np.arange(sizes["workers_"])).all()
        or len(np.unique(idle)) >= sizes["workers_"]
    ):
        raise FormatError("idle_ names unknown workers, or all of them.")
    for value in vars(model).values():
        if hasattr(value, "refuse_misfits"):  # a part with its own check
            value.refuse_misfits(len(vars(model)["workers_"]), len(vars(model)["classes_"]))
    if hasattr(model, "_refuse_forged"):  # a model with further checks
        model._refuse_forged()
    inner = getattr(model, "_inner", tuple)
    for other in (*inner(), *_list_parts(model)):
        refuse_misfits(other)


def _list_parts(model: Model) -> list[Model]:
    """List models among the learned values, alone or in a list, that have their own names."""
    values = [each if isinstance(each, list) else [each] for each in vars(model).values()]
    names = {"tasks_", "workers_", "classes_"}
    parts = (part for listed in values for part in listed if hasattr(part, "_axes"))
    return [part for part in parts if names <= vars(part).keys()]


def refuse_useless(model: object) -> None:
    """Refuse a model that cannot be used: it is asked about a few made-up tasks."""
    use = getattr(model, "predict_proba", None) or getattr(model, "transform", None)
    n_features = getattr(model, "n_features_in_", None)
    if n_features is None and hasattr(model, "_posterior"):
        _refuse_useless_votes(model)
    if use is None or n_features is None:
        return
    X = np.random.default_rng(0).normal(size=(3, n_features)).astype(np.float32)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = np.asarray(use(X))
    known = np.shape(vars(model).get("posterior_", ()))
    of_classes = len(known) == 2 and known[1] == len(getattr(model, "classes_", ()))
    if of_classes and hasattr(model, "predict_proba") and found.shape[1:] != known[1:]:
        raise FormatError("The learned values are about other classes than the model names.")
    if len(found) != len(X) or not np.isfinite(found).all():
        raise FormatError("The learned values give no finite numbers for new tasks.")
    if hasattr(model, "predict_proba") and _last_axis(model, "posterior_") == "classes_":
        _refuse_improbable(found)


def _refuse_improbable(found: Array) -> None:
    """Refuse answers about tasks that are not probabilities of the classes."""
    if found.min() < -ROUNDING or np.abs(found.sum(axis=-1) - 1.0).max() > ROUNDING:
        raise FormatError("The learned values give no probabilities for new tasks.")


def _refuse_useless_votes(model: Any) -> None:
    """Do the same with a model of labels alone, on tasks with and without agreement."""
    workers, classes = model.workers_, model.classes_
    n_workers, n_classes = min(len(workers), FEW), min(len(classes), FEW)
    task, worker = (side.ravel() for side in np.indices((2 * n_classes, n_workers)))
    label = np.where(task < n_classes, task, task + worker) % n_classes
    votes = Annotations.from_codes(task, worker, label, workers=workers, classes=classes)
    with suppress(CrowdwiseError), np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = np.asarray(model.predict_proba(votes))
        if not np.isfinite(found).all():
            raise ValueError("What was learned gives no finite numbers for new tasks.")


def refuse_unsound(model: object) -> None:
    """Refuse learned numbers out of range: probabilities, counts, single numbers."""
    for name, value in vars(model).items():
        if isinstance(value, float) and not math.isfinite(value) and name.endswith("_"):
            raise FormatError(f"{name} is {value}.")
        if hasattr(value, "toarray"):  # compact form
            _refuse_unsound_rows(value)
        elif name.startswith("log_") and np.size(value):
            _refuse_overflow(name, np.asarray(value, dtype=np.float64))
        elif name in (*DISTRIBUTIONS, *COUNTS, *SHARES) and np.size(value):
            numbers = np.asarray(value, dtype=np.float64)
            lowest, highest = numbers.min(), numbers.max()
            if name in COUNTS and lowest <= 0.0:
                raise FormatError(f"{name} holds counts down to {lowest:.6g}.")
            if name not in COUNTS and (lowest < -ROUNDING or highest > 1.0 + ROUNDING):
                raise FormatError(f"{name} holds probabilities from {lowest:.6g} to {highest:.6g}.")
            if name in DISTRIBUTIONS and _last_axis(model, name) == "classes_":
                total = numbers.sum(axis=-1)
                if np.abs(total - 1.0).max() > ROUNDING:
                    raise FormatError(f"Not every row of {name} sums to 1.")


def _refuse_overflow(name: str, logs: Array) -> None:
    lowest = -MOST if name == "log_prior_" else -MOST_LOG  # for very rare classes
    if logs.min() < lowest or logs.max() > MOST_LOG:
        raise FormatError(f"{name} holds logarithms from {logs.min():.6g} to {logs.max():.6g}.")


def _refuse_unsound_rows(posterior: CompactRows) -> None:
    lowest = min(part.min(initial=0.0) for part in (posterior.value, posterior.rest))
    total = posterior.sum(axis=1)
    if lowest < 0.0 or np.abs(total - 1.0).max(initial=0.0) > ROUNDING:
        raise FormatError("Not every row of posterior_ sums to 1.")


def _last_axis(model: object, name: str) -> str | int:
    axes: Mapping[str, Axes] = getattr(model, "_axes", {})
    return axes[name][-1] if name in axes else ""


def refuse_not_numbers(arrays: Mapping[str, Array], *, own_code: bool) -> None:
    """Refuse NaN and infinity in any array, except infinity in a user's network."""
    for name, array in arrays.items():
        if array.dtype.kind not in "biuf":
            raise FormatError(f"{name} holds numbers of type {array.dtype}.")
        if array.dtype.kind != "f":
            continue
        own = own_code and name.startswith("net_")
        most = min(MOST, float(np.finfo(array.dtype).max))
        sound = ~np.isnan(array) if own else np.abs(array) <= most
        if not sound.all():
            first = array[~sound].flat[0]
            raise FormatError(f"{int((~sound).sum()):,} numbers of {name} are not finite: {first}.")
