"""The stopping rule of all iterative methods, and the choice among random restarts."""

import logging
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from sklearn.exceptions import ConvergenceWarning

from crowdwise import progress

log = logging.getLogger("crowdwise")

End = TypeVar("End")


@dataclass
class Trace:
    """The objective after each step, oldest first."""

    objective: list[float] = field(default_factory=list)

    def record(self, value: float) -> None:
        self.objective.append(float(value))
        log.debug("step %d: objective %.6f", len(self.objective), value)

    def risen_by(self) -> float:
        """Return the relative change of the objective in the last step (inf after the first)."""
        if len(self.objective) < 2:
            return float("inf")
        before, after = self.objective[-2:]
        return abs(after - before) / max(abs(before), 1.0)


def until_converged(max_iter: int, tol: float, *, name: str = "EM") -> Iterator[Trace]:
    """Yield one :class:`Trace` repeatedly, until it changes by less than ``tol``.

    With ``tol=0``, exactly ``max_iter`` steps are taken, without a warning.
    """
    trace = Trace()
    for _ in progress.track(range(max_iter), f"{name}, at most"):
        yield trace
        if trace.risen_by() < tol:
            return
    if tol > 0:
        warnings.warn(
            f"{name} stopped after max_iter={max_iter} steps while the objective still changed "
            f"by {trace.risen_by():.1e} per step (tol={tol:.1e}). Raise max_iter, or raise tol.",
            ConvergenceWarning,
            stacklevel=3,
        )


@dataclass(frozen=True)
class Run(Generic[End]):
    """The end of a run, and the objective after each step."""

    end: End
    objective: list[float]


def best_of(n_restarts: int, run: Callable[[], Run[End]]) -> Run[End]:
    """Return the run with the highest final objective; only its warnings are shown."""
    with progress.bar("restarts", n_restarts, "restart") as bar:
        best, shown = _quietly(run)
        for _ in range(n_restarts - 1):
            bar.advance()
            other, caught = _quietly(run)
            if other.objective[-1] > best.objective[-1]:
                best, shown = other, caught
    for warning in shown:
        warnings.warn(warning.message, warning.category, stacklevel=3)
    return best


def _quietly(run: Callable[[], Run[End]]) -> tuple[Run[End], list[warnings.WarningMessage]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        return run(), caught
