"""What is put on a page, and the values that go along for the script to use."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from crowdwise.report.facts.as_json import plain
from crowdwise.report.page.html import Markup, clean, data_block, join, tag

DIGITS = 4


@dataclass(frozen=True)
class Column:
    """A column of a table that can be sorted.

    ``kind`` says how cells are shown: ``name``, ``text``, ``class`` (a class number),
    ``count``, ``share``, ``number``, ``time``, ``votes`` (pairs of class number and count) or
    ``interval`` (a share with ``low`` and ``high``).
    """

    title: str
    kind: str
    values: Any
    low: Any = None
    high: Any = None
    about: str = ""


@dataclass
class Sheet:
    """Collects the values of charts and tables while their markup is made."""

    charts: dict[str, Any] = field(default_factory=dict)
    tables: dict[str, Any] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)

    def chart(
        self,
        identity: str,
        title: str,
        reading: str,
        picture: Markup,
        columns: Sequence[str],
        rows: Sequence[Sequence[Any]],
        *,
        key: Markup | None = None,
    ) -> Markup:
        """A picture with its title, what it says, and buttons to take it along."""
        cells = [[rounded(cell) for cell in row] for row in rows]
        self.charts[identity] = {"columns": rounded(list(columns)), "rows": cells}
        save = [
            tag(
                "button",
                f"Save {kind}",
                type="button",
                data_save=kind.lower(),
                data_of=identity,
                aria_label=f"Save {kind} of {title}",
            )
            for kind in ("SVG", "CSV")
        ]
        numbers = tag("details", tag("summary", "Numbers"), data_numbers=identity)
        return tag(
            "figure",
            tag("figcaption", tag("strong", title), " ", tag("span", reading)),
            tag("div", picture, class_="canvas"),
            key,
            tag("div", numbers, tag("span", *save, class_="save"), class_="tools"),
            id=f"chart-{identity}",
            class_="chart",
        )

    def table(
        self,
        identity: str,
        caption: str,
        columns: Sequence[Column],
        *,
        search: str = "",
        choose: str = "",
        details: str = "",
        order: tuple[int, bool] = (0, True),
    ) -> Markup:
        """A table that the script fills, sorts, searches and cuts into pages.

        ``choose`` is the title of a column to filter by; ``order`` the column to sort by
        at first, and whether upwards.
        """
        self.tables[identity] = {
            "columns": [column_values(column) for column in columns],
            "order": list(order),
            "choose": choose,
            "details": details,
        }
        heads = [
            tag(
                "th",
                tag("button", column.title, type="button", title=column.about or None),
                scope="col",
                aria_sort="none",
                class_="" if column.kind in ("name", "text", "class", "votes") else "right",
            )
            for column in columns
        ]
        table = tag("table", tag("caption", caption), tag("thead", tag("tr", *heads)), tag("tbody"))
        return tag(
            "div",
            controls(identity, search, choose),
            scrolled(table, caption),
            tag("div", class_="pager"),
            tag("div", class_="details", aria_live="polite") if details else None,
            class_="data-table",
            data_table=identity,
        )

    def block(self) -> Markup:
        """All the values, for the script."""
        return data_block("facts", {"charts": self.charts, "tables": self.tables, **self.extra})


def column_values(column: Column) -> dict[str, Any]:
    """A column as the script takes it."""
    found = {"title": column.title, "kind": column.kind, "values": rounded(column.values)}
    if column.low is not None:
        found |= {"low": rounded(column.low), "high": rounded(column.high)}
    return found


def controls(identity: str, search: str, choose: str) -> Markup:
    """A box to search in, a list to choose from, and a button to take the table along."""
    box = choice = None
    if search:
        label = tag("span", search)
        box = tag("label", label, tag("input", type="search", autocomplete="off", data_search=True))
    if choose:
        choice = tag("label", tag("span", choose), tag("select", "", data_choose=True))
    save = tag("button", "Save CSV", type="button", data_save_table=identity)
    count = tag("span", class_="count", role="status", aria_live="polite")
    return tag("div", box, choice, count, save, class_="controls")


def fixed_table(caption: str, heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> Markup:
    """A small table as it is; cells that are tuples are (text, class)."""
    body = [tag("tr", [_fixed_cell(k, cell) for k, cell in enumerate(row)]) for row in rows]
    sides = [cell[1].split()[0] if isinstance(cell, tuple) else None for cell in rows[0]]
    head = tag(
        "tr",
        [tag("th", text, scope="col", class_=at) for text, at in zip(heads, sides, strict=True)],
    )
    table = tag("table", tag("caption", caption), tag("thead", head), tag("tbody", body))
    return scrolled(table, caption)


def _fixed_cell(place: int, cell: Any) -> Markup:
    text, kind = cell if isinstance(cell, tuple) else (cell, None)
    if place == 0:
        return tag("th", text, scope="row", class_=kind)
    return tag("td", text, class_=kind)


def scrolled(table: Markup, label: str) -> Markup:
    """A table in a frame of its own, so that it scrolls and the page does not."""
    return tag("div", table, class_="scroll", role="region", aria_label=label, tabindex=0)


def rounded(value: Any) -> Any:
    """Plain values, numbers in few digits, text that is safe to show."""
    if isinstance(value, np.ndarray):
        cells = np.round(value, DIGITS)
        return cells.tolist() if np.isfinite(cells).all() else plain(cells)
    if isinstance(value, list | tuple):
        return [rounded(one) for one in value]
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, float):  # numpy's too
        return round(float(value), DIGITS) if math.isfinite(value) else None
    return plain(value)


def section(identity: str, title: str, *parts: Any) -> Markup:
    """A part of the page with a heading of its own."""
    heading = tag("h2", title, id=f"{identity}-title")
    return tag("section", heading, join(*parts), id=identity, aria_labelledby=f"{identity}-title")


def note(text: str) -> Markup | None:
    """A remark in small print, where there is one."""
    return tag("p", text, class_="note") if text else None
