"""What a model in a file must hold to be used: arrays that fit its names, and sound numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Protocol

import numpy as np

from crowdwise.errors import FormatError
from crowdwise.typing import Array

DISTRIBUTIONS = ("posterior_", "confusion_", "prior_")  # where their last axis is the classes
COUNTS = ("counts_", "knowing_counts_", "spam_counts_")  # of labels, pseudo-counts included
SHARES = ("rates_", "rate_", "accuracy_", "propensity_", "confidence_")
ROUNDING = 1e-4  # what rows of single precision may be off by


class Model(Protocol):
    """A model as it comes from a file."""

    @property
    def _axes(self) -> Mapping[str, tuple[str, ...]]: ...

    def _worker_rows(self) -> Mapping[str, Array]: ...

    def _task_rows(self) -> Mapping[str, Array]: ...


class CompactRows(Protocol):
    """A posterior that is kept only for the classes that tasks were given."""

    value: Array
    rest: Array

    def sum(self, axis: int) -> Array: ...


def refuse_misfits(model: Model) -> None:
    """Refuse a model whose learned arrays do not have the sizes of its names."""
    axes = {axis for names in model._axes.values() for axis in names} | {"tasks_", "workers_"}
    for axis in sorted(axes):
        if np.ndim(getattr(model, axis)) != 1:
            raise FormatError(f"{axis} is not a list of names.")
    rows: dict[str, tuple[str, ...]] = {
        **dict.fromkeys(model._worker_rows(), ("workers_",)),
        **dict.fromkeys(model._task_rows(), ("tasks_",)),
    }
    for name, names in {**rows, **model._axes}.items():
        if name in vars(model):
            expected = tuple(len(getattr(model, axis)) for axis in names)
            found = np.shape(vars(model)[name])
            if (found if name in model._axes else found[:1]) != expected:
                raise FormatError(f"{name} has the shape {found}, its names {expected}.")
    for value in vars(model).values():
        if hasattr(value, "refuse_misfits"):  # a part that knows its own sizes
            value.refuse_misfits(len(vars(model)["workers_"]), len(vars(model)["classes_"]))
    inner = getattr(model, "_inner", tuple)
    for other in inner():
        refuse_misfits(other)


def refuse_unsound(model: object) -> None:
    """Refuse learned numbers out of their range: probabilities, counts, single numbers."""
    for name, value in vars(model).items():
        if isinstance(value, float) and not math.isfinite(value) and name.endswith("_"):
            raise FormatError(f"{name} is {value}.")
        if hasattr(value, "toarray"):  # in compact form
            _refuse_unsound_rows(value)
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


def _refuse_unsound_rows(posterior: CompactRows) -> None:
    lowest = min(part.min(initial=0.0) for part in (posterior.value, posterior.rest))
    total = posterior.sum(axis=1)
    if lowest < 0.0 or np.abs(total - 1.0).max(initial=0.0) > ROUNDING:
        raise FormatError("Not every row of posterior_ sums to 1.")


def _last_axis(model: object, name: str) -> str:
    axes: Mapping[str, tuple[str, ...]] = getattr(model, "_axes", {})
    return axes[name][-1] if name in axes else ""


def refuse_not_numbers(arrays: Mapping[str, Array], *, own_code: bool) -> None:
    """Refuse NaN and infinity in any array; a user's network may well hold infinity."""
    for name, array in arrays.items():
        if array.dtype.kind != "f":
            continue
        sound = ~np.isnan(array) if own_code and name.startswith("net_") else np.isfinite(array)
        if not sound.all():
            first = array[~sound].flat[0]
            raise FormatError(f"{int((~sound).sum()):,} numbers of {name} are not finite: {first}.")
