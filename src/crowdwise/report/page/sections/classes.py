"""Class balance, and what is taken for what."""

import numpy as np

from crowdwise.report.facts import Facts
from crowdwise.report.page.charts import heat_chart
from crowdwise.report.page.html import Markup, name, tag
from crowdwise.report.page.sheet import Sheet, fixed_table, note, section
from crowdwise.report.page.words import share
from crowdwise.typing import Ints

MOST_CLASSES = 16  # of the pictures


def classes(facts: Facts, sheet: Sheet) -> Markup:
    """Shares of the classes by method, and the crowd's confusion matrix."""
    own = facts.classes
    order = np.argsort(-own.given, kind="stable")[:MOST_CLASSES]
    order = np.sort(order)
    left_out = len(own.name) - len(order)
    return section(
        "classes",
        "Classes, and what is taken for what",
        note(f"The {MOST_CLASSES} most frequent of {len(own.name):,} classes." if left_out else ""),
        tag("div", balance(facts, sheet, order), mistaken(facts, sheet, order), class_="grid"),
        mistakes(facts),
    )


def balance(facts: Facts, sheet: Sheet, order: Ints) -> Markup:
    """What share of the tasks each method gives to each class."""
    own = facts.classes
    heads = ["labels", *(method.name for method in facts.methods)]
    columns = [own.given, *(method.shares for method in facts.methods)]
    if own.true is not None:
        heads, columns = [*heads, "truth"], [*columns, own.true]
    table = np.column_stack(columns)
    names = [own.name[k] for k in order]
    shades = table[order] / max(float(table.max()), 1e-9)
    reading = "Share of each class among the labels, and among the tasks as each method has it."
    picture = heat_chart(
        shades, names, heads, reading,
        lambda v: share(v * float(table.max())),
        lambda i, j: f"{names[i]}, {heads[j]}: {share(float(table[order[i], j]), 1)}",
    )  # fmt: skip
    rows = [(own.name[k], *table[k].tolist()) for k in range(len(own.name))]
    return sheet.chart(
        "balance", "What each method believes", reading, picture, ["class", *heads], rows
    )


def mistaken(facts: Facts, sheet: Sheet, order: Ints) -> Markup:
    """The confusion matrix of all workers together."""
    own = facts.classes
    total = own.confusion.sum(axis=1, keepdims=True)
    rates = np.divide(
        own.confusion, total, out=np.full_like(own.confusion, np.nan), where=total > 0
    )
    shown = rates[np.ix_(order, order)]
    names = [own.name[k] for k in order]
    reading = f"Rows are the class that {facts.method} infers, columns the label that is given."
    picture = heat_chart(
        shown, names, names, reading, share,
        lambda i, j: f"{names[i]} labelled {names[j]}: {share(float(shown[i, j]), 1)}",
    )  # fmt: skip
    rows = [(own.name[k], *rates[k].tolist()) for k in range(len(own.name))]
    columns = ["inferred \\ given", *own.name]
    return sheet.chart("confusion", "What is taken for what", reading, picture, columns, rows)


def mistakes(facts: Facts) -> Markup | None:
    """The most frequent mistakes in words."""
    found = facts.classes.mistakes
    if not found:
        return None
    rows = [
        (name(one.truth, 30), name(one.label, 30), (share(one.share), "right")) for one in found
    ]
    return fixed_table("Most frequent mistakes", ("class", "taken for", "of its labels"), rows)
