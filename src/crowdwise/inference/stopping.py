"""The stopping rule shared by every iterative method."""

import logging
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field

from sklearn.exceptions import ConvergenceWarning

from crowdwise import progress

log = logging.getLogger("crowdwise")


@dataclass
class Trace:
    """The objective after each step, oldest first."""

    objective: list[float] = field(default_factory=list)

    def record(self, value: float) -> None:
        self.objective.append(float(value))
        log.debug("step %d: objective %.6f", len(self.objective), value)

    def risen_by(self) -> float:
        """Relative change of the objective in the last step (inf after the first)."""
        if len(self.objective) < 2:
            return float("inf")
        before, after = self.objective[-2:]
        return abs(after - before) / max(abs(before), 1.0)


def until_converged(max_iter: int, tol: float, *, name: str = "EM") -> Iterator[Trace]:
    """Yield one :class:`Trace` over and over, until it changes by less than ``tol``.

    With ``tol=0`` exactly ``max_iter`` steps are taken and nothing is said.
    """
    trace = Trace()
    for _ in progress.track(range(max_iter), f"{name}, at most"):
        yield trace
        if trace.risen_by() < tol:
            return
    if tol > 0:
        warnings.warn(
            f"{name} stopped after max_iter={max_iter} steps while the objective still changed "
            f"by {trace.risen_by():.1e} a step (tol={tol:.1e}). Raise max_iter, or raise tol.",
            ConvergenceWarning,
            stacklevel=3,
        )
