"""The figure of judges who err together."""

import numpy as np

from crowdwise.report.facts import Facts
from crowdwise.report.page.charts import heat_chart
from crowdwise.report.page.figures import WIDE, Figure
from crowdwise.report.page.words import number


def panel(facts: Facts) -> Figure | None:
    """Draw a shaded table, judges by judges, ordered by cluster."""
    own = facts.panel
    if own is None:
        return None
    names = [judge.name for judge in own.judges]

    def tip(i: int, j: int) -> str:
        return names[i] if i == j else f"{names[i]} and {names[j]}: {number(own_value(i, j))}"

    def own_value(i: int, j: int) -> float:
        return float(own.correlation[i, j])

    shown = np.where(np.eye(len(names), dtype=bool), np.nan, own.correlation)
    reading = (
        "Correlation of the errors of each pair of judges: blue if they err together, orange if "
        "one tends to be right when the other is wrong. Judges of one cluster are side by side."
    )
    width = 480 if len(names) <= 12 else WIDE
    picture = heat_chart(shown, names, names, reading, number, tip, width=width)
    rows = [
        (names[i], names[j], own_value(i, j))
        for i in range(len(names))
        for j in range(i + 1, len(names))
    ]
    columns = ["judge", "other", "correlation"]
    return Figure("panel", "Judges who err together", reading, picture, columns, rows)
