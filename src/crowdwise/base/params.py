"""The one door to scikit-learn's private parameter validation."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from math import inf
from numbers import Integral, Real
from typing import Any, ClassVar, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator, _fit_context
from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    InvalidParameterError,
    StrOptions,
    make_constraint,
)

__all__ = [
    "DEVICES",
    "NUMBER",
    "NUMBERS",
    "SIZES",
    "THREADS",
    "Constraints",
    "InvalidParameterError",
    "Part",
    "StrOptions",
    "at_least",
    "between",
    "check_params",
    "checks_params",
    "find_misfits",
    "more_than",
    "one_of",
]

# What each parameter may be: a range or choice made here, a type, None, or one of
# scikit-learn's words such as "boolean" and "random_state".
Constraint: TypeAlias = Interval | StrOptions | HasMethods | type | str | None
Constraints: TypeAlias = Mapping[str, Sequence[Constraint]]

checks_params = _fit_context(prefer_skip_nested_validation=True)

MOST = np.iinfo(np.int64).max  # a larger number overflows somewhere, and none is of use


class Range(Interval):
    """Numbers of a kind between two ends, to which True and False do not belong."""

    def is_satisfied_by(self, val: Any) -> bool:
        return (
            not isinstance(val, bool)
            and bool(super().is_satisfied_by(val))
            and (abs(val) <= MOST or val == self.right)
        )


class Numbers(HasMethods):
    """A list or array of finite numbers; scikit-learn's "array-like" may hold anything."""

    def __init__(self) -> None:
        super().__init__("__len__")

    def is_satisfied_by(self, val: Any) -> bool:
        try:
            array = np.asarray(val, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            return False
        return array.ndim > 0 and bool(np.isfinite(array).all())

    def __str__(self) -> str:
        return "a list or array of finite numbers"


class Sizes(Numbers):
    """Whole numbers of 1 or more in a list, which may be empty."""

    def is_satisfied_by(self, val: Any) -> bool:
        if not super().is_satisfied_by(val):
            return False
        array = np.asarray(val, dtype=np.float64)
        return array.ndim == 1 and bool(((array >= 1) & (array == array.round())).all())

    def __str__(self) -> str:
        return "a tuple of whole numbers of 1 or more"


NUMBERS, SIZES = Numbers(), Sizes()


class Part(BaseEstimator):
    """A part of a method, described by parameters; ``check`` refuses those that make no sense."""

    _parameter_constraints: ClassVar[Constraints] = {}
    check = BaseEstimator._validate_params


def check_params(estimator: BaseEstimator) -> None:
    """Refuse parameters that ``fit`` would refuse."""
    estimator._validate_params()


def find_misfits(estimator: BaseEstimator) -> Iterator[tuple[str, Any, str]]:
    """The parameters that ``fit`` would refuse: name, value, and in words what it may be."""
    values = estimator.get_params(deep=False)
    for name, choices in getattr(estimator, "_parameter_constraints", {}).items():
        if name in values and not any(
            make_constraint(choice).is_satisfied_by(values[name]) for choice in choices
        ):
            words = dict.fromkeys(filter(None, map(_describe, choices)))
            yield name, values[name], ", or ".join(words) or "an object, which only Python can give"


def at_least(low: float) -> Interval:
    """Accept integers from ``low`` up, or reals if ``low`` is a float."""
    return Range(_kind(low), low, None, closed="left")


def more_than(low: float) -> Interval:
    """Accept reals above ``low``."""
    return Range(Real, low, None, closed="neither")


def between(low: float, high: float, *, ends: bool = True) -> Interval:
    """Accept values from ``low`` to ``high``, with these ``ends`` or without."""
    return Range(_kind(low), low, high, closed="both" if ends else "neither")


def one_of(*choices: str) -> StrOptions:
    """Accept exactly these words."""
    return StrOptions(set(choices))


def _kind(low: float) -> type:
    return Real if isinstance(low, float) else Integral


WORDS: Mapping[Any, str] = {
    None: "None",
    Mapping: "a dict of numbers",
    NUMBERS: "a list of numbers",
    SIZES: "whole numbers of 1 or more, as in (64, 32)",
    list: "a list of numbers",
    "boolean": "True or False",
    "verbose": "True, False or a whole number",
    "random_state": "None or a whole number",
    str: "text",
    Hashable: "the name of a class",
}


def _describe(choice: Constraint) -> str:
    """What a constraint accepts, as it is written on a command line; nothing if it cannot be."""
    if isinstance(choice, StrOptions):
        return ", ".join(sorted(choice.options))
    if isinstance(choice, Interval):
        number = "a whole number" if choice.type is Integral else "a number"
        return f"{number} {_describe_range(choice)}".rstrip()
    return WORDS.get(choice, "")


def _describe_range(choice: Interval) -> str:
    low, high, ends = choice.left, choice.right, choice.closed != "neither"
    if low is None:
        return "" if high is None else f"of {high} or less"
    if high in (None, inf):
        return f"of {low:g} or more" if ends else f"above {low:g}"
    return f"from {low:g} to {high:g}" if ends else f"above {low:g} and below {high:g}"


THREADS: Sequence[Constraint] = (  # a number of them, or how many fewer than all, as in n_jobs=-1
    at_least(1),
    Range(Integral, None, -1, closed="right"),
    None,
)
NUMBER = Range(Real, None, None, closed="neither")
DEVICES: Sequence[Constraint] = (str, None)
