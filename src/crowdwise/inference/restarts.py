"""Random restarts: run a method from several starts and keep the best end."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from crowdwise import progress

End = TypeVar("End")


@dataclass(frozen=True)
class Run(Generic[End]):
    """Where one start led, and the objective after each step on the way."""

    end: End
    objective: list[float]


def best_of(n_restarts: int, run: Callable[[], Run[End]]) -> Run[End]:
    """The run whose objective ends highest, the first of equals; only its warnings are heard."""
    best, heard = _quietly(run)
    for _ in progress.track(range(n_restarts - 1), "restarts", unit="restart"):
        other, caught = _quietly(run)
        if other.objective[-1] > best.objective[-1]:
            best, heard = other, caught
    for warning in heard:
        warnings.warn(warning.message, warning.category, stacklevel=3)
    return best


def _quietly(run: Callable[[], Run[End]]) -> tuple[Run[End], list[warnings.WarningMessage]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        return run(), caught
