"""Settings of a project and of the service."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields

from crowdwise.errors import ParameterError, explain
from crowdwise.typing import Json


@dataclass(frozen=True)
class Settings:
    """A project: its classes, what a label costs, and when a task is done.

    Attributes
    ----------
    classes : tuple of str
        The classes that workers choose from.
    title, instructions : str
        Texts shown to workers.
    target : float
        Share of labels that should be right; tasks that are done are not offered again.
    min_labels, max_labels : int
        Minimum and maximum number of labels per task.
    cost : float
        Cost of a label.
    lease : float
        Seconds that a worker keeps a task before others may get it.
    checks : float
        Share of a worker's tasks that have a known truth.
    """

    classes: tuple[str, ...] = ()
    title: str = "Labels"
    instructions: str = ""
    target: float = 0.95
    min_labels: int = 2
    max_labels: int = 10
    cost: float = 1.0
    lease: float = 600.0
    checks: float = 0.0

    def __post_init__(self) -> None:
        for name, is_right, expected in (
            ("target", 0 < self.target < 1, "a number between 0 and 1"),
            ("checks", 0 <= self.checks <= 1, "a number from 0 to 1"),
            ("cost", 0 <= self.cost < float("inf"), "0 or more"),
            ("lease", 0 < self.lease <= 30 * 86_400, "seconds, up to 30 days"),
            ("min_labels", 1 <= self.min_labels <= self.max_labels, "1 to max_labels"),
            ("classes", len(set(self.classes)) == len(self.classes), "classes that differ"),
        ):
            if not is_right:
                what = f"{name}={getattr(self, name)!r} cannot be used."
                raise ParameterError(
                    explain(what, expected=expected, fix="correct it, and start again")
                )

    def to_body(self) -> Json:
        """Return the body of an event."""
        return asdict(self) | {"classes": list(self.classes)}

    @classmethod
    def from_body(cls, body: Json) -> Settings:
        """Read settings from the body of an event; unknown ones of later versions are ignored."""
        known = {field.name for field in fields(cls)}
        values = {name: value for name, value in body.items() if name in known}
        return cls(**values | {"classes": tuple(values.get("classes", ()))})
