"""How much workers agree."""

import math

from crowdwise.report.facts import Facts
from crowdwise.report.facts.gather import Measure
from crowdwise.report.page.charts import Row, interval_chart
from crowdwise.report.page.html import Markup, tag
from crowdwise.report.page.sheet import Sheet, fixed_table, section
from crowdwise.report.page.words import DASH, between, number


def agreement(facts: Facts, sheet: Sheet) -> Markup:
    """All measures with their intervals, and what each of them means."""
    words = fixed_table(
        "What the measures say",
        ("measure", "in words"),
        [(measure.name, measure.reading) for measure in facts.agreement],
    )
    known = any(math.isfinite(measure.value) for measure in facts.agreement)
    parts = tag("div", chart_of(facts, sheet), words, class_="grid") if known else words
    return section("agreement", "How much workers agree", parts)


def chart_of(facts: Facts, sheet: Sheet) -> Markup:
    """The measures on one scale."""
    rows = [row_of(measure) for measure in facts.agreement]
    label = "Agreement: " + "; ".join(f"{row.name} {row.told}" for row in rows)
    least = min([row.low for row in rows if math.isfinite(row.low)], default=0.0)
    bounds = (min(0.0, least), 1.0)
    picture = interval_chart(rows, label, lambda v: number(v, 1), bounds)
    columns = ["measure", "value", "low", "high", "tasks"]
    values = [(m.name, m.value, m.low, m.high, m.n_tasks) for m in facts.agreement]
    reading = "0 is chance (but for observed agreement), 1 is perfect; bars are 95% intervals."
    return sheet.chart("agreement", "Agreement", reading, picture, columns, values)


def row_of(measure: Measure) -> Row:
    """A measure as a row of the chart."""
    spread = between(measure.low, measure.high)
    told = number(measure.value) + (f" ({spread})" if spread else "")
    name = measure.name[0].upper() + measure.name[1:]
    told = told if math.isfinite(measure.value) else DASH
    return Row(name, measure.value, measure.low, measure.high, told)
