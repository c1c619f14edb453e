"""Who disagrees with whom."""

import numpy as np

from crowdwise.report.facts import Facts
from crowdwise.report.facts.pairs import Pair, PairFacts
from crowdwise.report.page.charts import heat_chart
from crowdwise.report.page.html import Markup, name, tag
from crowdwise.report.page.sheet import Sheet, fixed_table, note, section
from crowdwise.report.page.words import DASH, number, share

WIDE = 640


def pairs(facts: Facts, sheet: Sheet) -> Markup:
    """Kappa of every two workers, and the pairs that stand out."""
    own = facts.pairs
    if own is None:
        return section(
            "pairs",
            "Who disagrees with whom",
            note("No two workers share enough tasks to compare."),
        )
    return section(
        "pairs",
        "Who disagrees with whom",
        note(own.note),
        tag(
            "div",
            heat(own, sheet),
            tag(
                "div",
                pair_table("Pairs that disagree most", own.worst),
                pair_table("Pairs that agree on everything", own.copies),
            ),
            class_="grid",
        ),
    )


def heat(own: PairFacts, sheet: Sheet) -> Markup:
    """A shaded table of workers by workers."""

    def tip(i: int, j: int) -> str:
        if i == j:
            return own.name[i]
        value = float(own.kappa[i, j])
        told = number(value) if np.isfinite(value) else "too few tasks in common"
        return f"{own.name[i]} and {own.name[j]}: {told}, {int(own.n_shared[i, j]):,} tasks"

    reading = (
        "Cohen's kappa of each pair: blue agrees, orange contradicts, empty shares fewer than "
        f"{own.min_overlap} tasks. Those who agree most with the rest come first."
    )
    small = len(own.name) <= 12
    picture = heat_chart(
        own.kappa, own.name, own.name, reading, lambda v: number(v, 2), tip,
        width=480 if small else WIDE,
    )  # fmt: skip
    rows = [
        (own.name[i], own.name[j], own.n_shared[i, j], own.kappa[i, j])
        for i in range(len(own.name))
        for j in range(i + 1, len(own.name))
        if own.n_shared[i, j]
    ]
    columns = ["worker", "other", "tasks", "kappa"]
    return sheet.chart("pairs", "Agreement of every two workers", reading, picture, columns, rows)


def pair_table(caption: str, found: tuple[Pair, ...]) -> Markup | None:
    """Some pairs in words."""
    if not found:
        return None
    rows = [
        (
            [name(pair.one, 20), " and ", name(pair.other, 20)],
            (f"{pair.n_shared:,}", "right"),
            (share(pair.agreement), "right"),
            (number(pair.kappa) if np.isfinite(pair.kappa) else DASH, "right"),
        )
        for pair in found
    ]
    return fixed_table(caption, ("workers", "tasks shared", "agree", "kappa"), rows)
