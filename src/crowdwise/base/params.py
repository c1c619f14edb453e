"""The one door to scikit-learn's private parameter validation."""

from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import ClassVar, TypeAlias

from sklearn.base import BaseEstimator, _fit_context
from sklearn.utils._param_validation import Interval, InvalidParameterError, StrOptions

__all__ = [
    "DEVICES",
    "THREADS",
    "Constraints",
    "InvalidParameterError",
    "Part",
    "StrOptions",
    "at_least",
    "between",
    "check_params",
    "checks_params",
    "more_than",
    "one_of",
]

# What each parameter may be: a range or choice made here, a type, None, or one of
# scikit-learn's words such as "array-like", "boolean" and "random_state".
Constraint: TypeAlias = Interval | StrOptions | type | str | None
Constraints: TypeAlias = Mapping[str, Sequence[Constraint]]

checks_params = _fit_context(prefer_skip_nested_validation=True)


class Part(BaseEstimator):
    """A part of a method, described by parameters; ``check`` refuses those that make no sense."""

    _parameter_constraints: ClassVar[Constraints] = {}
    check = BaseEstimator._validate_params


def check_params(estimator: BaseEstimator) -> None:
    """Refuse parameters that ``fit`` would refuse."""
    estimator._validate_params()


def at_least(low: float) -> Interval:
    """Accept integers from ``low`` up, or reals if ``low`` is a float."""
    return Interval(_kind(low), low, None, closed="left")


def more_than(low: float) -> Interval:
    """Accept integers above ``low``, or reals if ``low`` is a float."""
    return Interval(_kind(low), low, None, closed="neither")


def between(low: float, high: float, *, ends: bool = True) -> Interval:
    """Accept values from ``low`` to ``high``, with these ``ends`` or without."""
    return Interval(_kind(low), low, high, closed="both" if ends else "neither")


def one_of(*choices: str) -> StrOptions:
    """Accept exactly these words."""
    return StrOptions(set(choices))


def _kind(low: float) -> type:
    return Real if isinstance(low, float) else Integral


THREADS: Sequence[Constraint] = (  # a number of them, or how many fewer than all, as in n_jobs=-1
    at_least(1),
    Interval(Integral, None, -1, closed="right"),
    None,
)
DEVICES: Sequence[Constraint] = (str, None)
