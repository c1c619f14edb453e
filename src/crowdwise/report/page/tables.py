"""The two tables that the page's script fills, sorts, searches and paginates."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crowdwise.report.facts import Facts
from crowdwise.report.facts.facts import to_plain
from crowdwise.report.page.words import shorten
from crowdwise.typing import Array, Json

DIGITS = 4
TASK_LETTERS, WORKER_LETTERS = 160, 120  # maximum length of names


@dataclass(frozen=True)
class Column:
    """A column of a sortable table.

    ``kind`` says how cells are shown: ``name``, ``text``, ``class`` (a class number),
    ``count``, ``share``, ``number``, ``time``, ``votes`` (pairs of class number and count) or
    ``interval`` (a share with ``low`` and ``high``).
    """

    title: str
    kind: str
    values: Array | Sequence[object]
    low: Array | None = None
    high: Array | None = None
    about: str = ""

    def for_script(self) -> Json:
        """Return the column as the script expects it."""
        found = {"title": self.title, "kind": self.kind, "values": round_values(self.values)}
        if self.low is not None:
            found |= {"low": round_values(self.low), "high": round_values(self.high)}
        return found


@dataclass(frozen=True)
class Table:
    """Columns, and the controls of a table.

    ``choose`` is the title of a column to filter by; ``order`` is the initial sort column, and
    whether it is ascending; ``details`` is what a click on a name shows.
    """

    id: str
    caption: str
    columns: list[Column]
    search: str
    choose: str
    order: tuple[int, bool]
    details: str = ""

    def for_script(self) -> Json:
        """Return the table as the script expects it."""
        return {
            "columns": [column.for_script() for column in self.columns],
            "order": list(self.order),
            "choose": self.choose,
            "details": self.details,
        }


def task_table(facts: Facts) -> Table:
    """Make the table of tasks and their labels."""
    tasks = facts.tasks
    columns = [
        Column("Task", "name", [shorten(one, TASK_LETTERS) for one in tasks.name]),
        Column("Label", "class", tasks.label),
        Column("Confidence", "share", tasks.confidence, about="probability of the label"),
        Column("Labels", "count", tasks.n_labels, about="annotations of the task"),
        Column("Agree", "share", tasks.support, about="share of labels for this class"),
        Column("Given", "votes", tasks.votes, about="how many labels of each class"),
    ]
    if tasks.truth is not None:
        columns.append(Column("Truth", "class", tasks.truth, about="if known"))
    caption = f"Label of each task by {facts.method}"
    return Table("tasks", caption, columns, "Search tasks", "Label", (2, True))


def worker_table(facts: Facts) -> Table:
    """Make the table of workers, with accuracy and skill."""
    own, times = facts.workers, facts.times
    columns = [
        Column("Worker", "name", [shorten(one, WORKER_LETTERS) for one in own.name]),
        Column("Labels", "count", own.n_labels),
        Column("Accuracy", "interval", own.accuracy, own.low, own.high),
        Column("Agrees", "share", own.agreement, about="with another worker of the same task"),
        Column("Skill", "number", own.skill, about="0 ignores the task, 1 knows every truth"),
    ]
    if own.gold_accuracy is not None:
        about = "share of right labels on tasks with a known truth"
        columns.append(Column("Checked", "share", own.gold_accuracy, about=about))
    if times is not None:
        pace = Column("Pace", "time" if times.unit else "number", times.pace)
        columns += [pace, Column("First half", "share", times.early)]
        columns.append(Column("Second half", "share", times.late))
    columns.append(Column("Remark", "text", own.flag))
    caption = "Workers: accuracy with 95% interval, agreement and skill"
    order = (1, False)
    return Table("workers", caption, columns, "Search workers", "Remark", order, "confusion")


def round_values(value: object) -> object:
    """Convert to plain values, with numbers rounded."""
    if isinstance(value, np.ndarray):
        cells = np.round(value, DIGITS)
        return cells.tolist() if np.isfinite(cells).all() else to_plain(cells)
    if isinstance(value, list | tuple):
        return [round_values(one) for one in value]
    if isinstance(value, float):  # including numpy's
        return round(float(value), DIGITS) if math.isfinite(value) else None
    return to_plain(value)
