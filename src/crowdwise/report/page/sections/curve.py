"""Fewer or more labels per task."""

import math

from crowdwise.report.facts import Facts
from crowdwise.report.facts.curve import CurveFacts
from crowdwise.report.page.charts import Curve, line_chart
from crowdwise.report.page.html import Markup, tag
from crowdwise.report.page.sheet import Sheet, fixed_table, note, section
from crowdwise.report.page.words import share, shares_between


def curve(facts: Facts, sheet: Sheet) -> Markup | None:
    """What to expect of a number of labels per task."""
    own = facts.curve
    if own is None:
        return None
    return section(
        "curve",
        "Fewer or more labels per task",
        tag("p", EXPLAINED),
        note(own.note),
        tag("div", accuracy_chart(own, sheet), expected_table(own), class_="grid"),
    )


def accuracy_chart(own: CurveFacts, sheet: Sheet) -> Markup:
    """The forecast, and what was measured."""
    points = own.points
    x = [float(point.n_labels) for point in points]
    low, high = [point.low for point in points], [point.high for point in points]
    curves = [Curve("forecast", x, [point.forecast for point in points], 0, low, high)]
    if any(math.isfinite(point.kept) for point in points):
        curves.append(Curve("label kept", x, [point.kept for point in points], 1))
    if any(math.isfinite(point.measured) for point in points):
        curves.append(Curve("right, measured", x, [point.measured for point in points], 2))
    reading = f"The data have {own.now:.1f} labels per task on average."
    told = "; ".join(f"{point.n_labels} labels: {share(point.forecast)}" for point in points)
    label = f"Accuracy by labels per task. {reading} {told}"
    picture = line_chart(curves, label, "labels per task", share, at=own.now)
    columns = ["labels per task", "forecast", "low", "high", "label kept", "right"]
    rows = [(p.n_labels, p.forecast, p.low, p.high, p.kept, p.measured) for p in points]
    return sheet.chart("curve", "Accuracy by labels per task", reading, picture, columns, rows)


def expected_table(own: CurveFacts) -> Markup:
    """The same as numbers."""
    heads = ("labels per task", "forecast", "for other crowds like this", "label kept")
    rows = [
        (
            str(point.n_labels),
            (share(point.forecast), "right"),
            (shares_between(point.low, point.high), "right"),
            (share(point.kept), "right"),
        )
        for point in own.points
    ]
    return fixed_table("What to expect", heads, rows)


EXPLAINED = (
    "The forecast simulates workers like these: it trusts the method's own view of them, and is "
    "too high where the method is too sure. “Label kept” is measured: the share of tasks that keep "
    "their label when only so many of their labels, drawn at random, are used."
)
