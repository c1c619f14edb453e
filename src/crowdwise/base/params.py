"""Parameter validation: the only access to scikit-learn's private module for it."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from math import inf
from numbers import Integral, Real
from typing import Any, ClassVar, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator, _fit_context
from sklearn.utils._param_validation import (
    Interval,
    InvalidParameterError,
    StrOptions,
    make_constraint,
)

__all__ = [
    "DEVICES",
    "NUMBER",
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

# What a parameter may be: a range or choice from this module, a type, None, or one of
# scikit-learn's words such as "array-like", "boolean" and "random_state".
Constraint: TypeAlias = Interval | StrOptions | type | str | None
Constraints: TypeAlias = Mapping[str, Sequence[Constraint]]

checks_params = _fit_context(prefer_skip_nested_validation=True)

MOST = np.iinfo(np.int64).max  # larger numbers overflow somewhere, and are never useful


class Part(BaseEstimator):
    """A part of a method, described by parameters; ``check`` refuses invalid ones."""

    _parameter_constraints: ClassVar[Constraints] = {}
    check = BaseEstimator._validate_params


def check_params(estimator: BaseEstimator) -> None:
    """Refuse parameters that ``fit`` would refuse."""
    estimator._validate_params()


def find_misfits(estimator: BaseEstimator) -> Iterator[tuple[str, Any, str]]:
    """Yield the parameters that ``fit`` would refuse: name, value, and what is allowed."""
    values = estimator.get_params(deep=False)
    for name, choices in estimator._parameter_constraints.items():
        if name in values and not any(_fits(choice, values[name]) for choice in choices):
            words = dict.fromkeys(filter(None, map(_describe, choices)))
            yield name, values[name], ", or ".join(words) or "an object, which only Python can give"


def at_least(low: float) -> Interval:
    """Accept integers from ``low`` up, or reals if ``low`` is a float."""
    return Interval(_kind(low), low, MOST, closed="both")


def more_than(low: float) -> Interval:
    """Accept reals above ``low``."""
    return Interval(Real, low, MOST, closed="right")


def between(low: float, high: float, *, ends: bool = True) -> Interval:
    """Accept values from ``low`` to ``high``, including these if ``ends``."""
    return Interval(_kind(low), low, high, closed="both" if ends else "neither")


def one_of(*choices: str) -> StrOptions:
    """Accept exactly these words."""
    return StrOptions(set(choices))


def _kind(low: float) -> type:
    return Real if isinstance(low, float) else Integral


WORDS: Mapping[Any, str] = {
    None: "None",
    Mapping: "a dict of numbers",
    "array-like": "a list of numbers",
    list: "a list of numbers",
    "boolean": "True or False",
    "verbose": "True, False or a whole number",
    "random_state": "None or a whole number",
    str: "text",
    Hashable: "the name of a class",
}


def _fits(choice: Constraint, value: Any) -> bool:
    """Return whether scikit-learn would accept a value, and numbers where these are meant."""
    if choice == "array-like":
        try:
            return np.asarray(value, dtype=np.float64).ndim > 0
        except (TypeError, ValueError, OverflowError):
            return False
    if isinstance(choice, Interval) and isinstance(value, bool):
        return False
    return bool(make_constraint(choice).is_satisfied_by(value))


def _describe(choice: Constraint) -> str:
    """Describe what a constraint accepts, as written on a command line; empty if impossible."""
    if isinstance(choice, StrOptions):
        return ", ".join(sorted(choice.options))
    if isinstance(choice, Interval):
        number = "a whole number" if choice.type is Integral else "a number"
        return f"{number} {_describe_range(choice)}".rstrip()
    return WORDS.get(choice, "")


def _describe_range(choice: Interval) -> str:
    low, high = choice.left, choice.right
    if low is None:
        return f"of {high} or less"
    if low == -MOST:
        return ""
    if high in (MOST, inf):
        return f"of {low:g} or more" if choice.closed == "both" else f"above {low:g}"
    return (
        f"from {low:g} to {high:g}"
        if choice.closed == "both"
        else f"above {low:g} and below {high:g}"
    )


THREADS: Sequence[Constraint] = (  # a number of them, or how many fewer than all, as in n_jobs=-1
    at_least(1),
    Interval(Integral, None, -1, closed="right"),
    None,
)
NUMBER = Interval(Real, -MOST, MOST, closed="both")
DEVICES: Sequence[Constraint] = (str, None)
