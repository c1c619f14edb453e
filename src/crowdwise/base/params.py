"""The one door to scikit-learn's private parameter validation."""

from numbers import Integral, Real
from typing import Any

from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, InvalidParameterError, StrOptions

__all__ = [
    "InvalidParameterError",
    "StrOptions",
    "at_least",
    "between",
    "check_params",
    "checks_params",
    "more_than",
    "one_of",
]

checks_params = _fit_context(prefer_skip_nested_validation=True)


def check_params(estimator: Any) -> None:
    """Refuse parameters that ``fit`` would refuse."""
    estimator._validate_params()


def at_least(low: float) -> Any:
    """Accept integers from ``low`` up, or reals if ``low`` is a float."""
    return Interval(_kind(low), low, None, closed="left")


def more_than(low: float) -> Any:
    """Accept integers above ``low``, or reals if ``low`` is a float."""
    return Interval(_kind(low), low, None, closed="neither")


def between(low: float, high: float) -> Any:
    """Accept values from ``low`` to ``high``, both included."""
    return Interval(_kind(low), low, high, closed="both")


def one_of(*choices: str) -> Any:
    """Accept exactly these words."""
    return StrOptions(set(choices))


def _kind(low: float) -> type:
    return Real if isinstance(low, float) else Integral
