"""What a table is: rows of methods, columns of data, and what is measured for each pair."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any

from crowdwise.errors import ParameterError, explain, listing


@dataclass(frozen=True)
class Published:
    """A figure of a paper, and its standard error where the paper has one."""

    value: float
    error: float | None = None


@dataclass(frozen=True)
class Column:
    """Data that methods are compared on.

    Attributes
    ----------
    load : function
        Creates the data from a seed.
    redrawn : bool
        Whether the data differs from seed to seed. On fixed data a method without random
        numbers runs once.
    about : str
        What a reader needs to know about it.
    stand_in : bool
        Whether the data is another than the paper's: its figures are then shown for orientation,
        and not compared.
    not_blind : str
        What had been seen of this data before settings were fixed; empty if nothing had.
    """

    load: Callable[[int], Any]
    redrawn: bool = False
    about: str = ""
    stand_in: bool = False
    not_blind: str = ""


@dataclass(frozen=True)
class Row:
    """A method.

    Attributes
    ----------
    make : function
        Creates the estimator for a column, given the column's name.
    published : mapping from column to metric to Published
        What a paper reports.
    columns : sequence of str, optional
        The columns that the method can run on; all by default.
    not_blind : str, or mapping from column to str
        What had been seen of test results before the row's settings were fixed; empty if
        nothing had.
    """

    make: Callable[[str], Any]
    published: Mapping[str, Mapping[str, Published]] = field(default_factory=dict)
    columns: Sequence[str] | None = None
    not_blind: str | Mapping[str, str] = ""


@dataclass(frozen=True)
class Absent:
    """A row of a paper that cannot be run, and why."""

    reason: str
    published: Mapping[str, Mapping[str, Published]]


@dataclass(frozen=True)
class Table:
    """A table to run again.

    Attributes
    ----------
    title, source, about : str
        What it shows, where it was published, and how ours differs.
    rows, columns : mapping
        By name, in order.
    metrics : sequence of str
        The metrics shown; ``measure`` may return more. Higher is better.
    losses : sequence of str
        Metrics shown after these, of which lower is better.
    measure : function of estimator, data and seed
        Fits and scores; returns figures by name.
    pairs : sequence of (row, row)
        Comparisons to test over the seeds; the first is expected to be better.
    seeds, quick_seeds : int
        The number of runs behind a figure, and in a quick run.
    quick_rows, quick_columns : sequence of str, optional
        What a quick run includes.
    absent : mapping from row to Absent
        Rows of the paper that cannot be run.
    overall : bool, or sequence of str
        Whether to show means over all columns, or those over which.
    figure : function of summary and path, optional
        Draws the paper's figure from the summary.
    """

    name: str
    title: str
    source: str
    rows: Mapping[str, Row]
    columns: Mapping[str, Column]
    measure: Callable[[Any, Any, int], dict[str, float]]
    metrics: Sequence[str] = ("accuracy",)
    losses: Sequence[str] = ()
    about: str = ""
    notes: Sequence[str] = ()
    pairs: Sequence[tuple[str, str]] = ()
    seeds: int = 10
    quick_seeds: int = 2
    quick_rows: Sequence[str] | None = None
    quick_columns: Sequence[str] | None = None
    absent: Mapping[str, Absent] = field(default_factory=dict)
    overall: bool | Sequence[str] = False
    figure: Callable[[Any, IO[bytes]], None] | None = None

    def cells(
        self, rows: Sequence[str] | None = None, columns: Sequence[str] | None = None
    ) -> list[tuple[str, str]]:
        """The pairs of row and column to run, in order; only the chosen ones."""
        chosen_rows = _chosen("row", rows, self.rows, self.name)
        chosen_columns = _chosen("column", columns, self.columns, self.name)
        return [
            (row, column)
            for column in chosen_columns
            for row in chosen_rows
            if _runs(self.rows[row], column)
        ]

    def published(self, row: str, column: str, metric: str) -> Published | None:
        """The published figure, if there is one."""
        return self.rows[row].published.get(column, {}).get(metric)

    def needs_seeds(self, row: str, column: str) -> bool:
        """Whether a second run could differ from the first."""
        if self.columns[column].redrawn:
            return True
        model = self.rows[row].make(column)
        params = model.get_params() if hasattr(model, "get_params") else {"random_state": None}
        return any(name.split("__")[-1] == "random_state" for name in params)

    def not_blind(self, row: str, column: str) -> str:
        """What had been seen before a row's settings were fixed; empty if nothing had."""
        own = self.rows[row].not_blind
        said = own if isinstance(own, str) else own.get(column, "")
        return said or self.columns[column].not_blind


def published(
    columns: Sequence[str], values: Sequence[float | None], metric: str = "accuracy"
) -> dict[str, dict[str, Published]]:
    """Figures of one metric, column by column; None where the paper has none."""
    pairs = zip(columns, values, strict=True)
    return {column: {metric: Published(v)} for column, v in pairs if v is not None}


def _runs(row: Row, column: str) -> bool:
    return row.columns is None or column in row.columns


def _chosen(
    kind: str, asked: Sequence[str] | None, known: Mapping[str, Any], name: str
) -> list[str]:
    if asked is None:
        return list(known)
    unknown = [one for one in asked if one not in known]
    if unknown:
        raise ParameterError(
            explain(
                f"table {name} has no {kind} {unknown[0]!r}.",
                expected=listing(list(known), most=40),
            )
        )
    return [one for one in known if one in asked]
