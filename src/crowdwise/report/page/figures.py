"""The figures of a report: a chart, a sentence about it, and its numbers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from crowdwise.errors import plural
from crowdwise.report.facts import Facts
from crowdwise.report.facts.data import Spread
from crowdwise.report.page.charts import (
    Curve,
    IntervalRow,
    bar_chart,
    heat_chart,
    interval_chart,
    line_chart,
)
from crowdwise.report.page.words import DASH, between, number, share
from crowdwise.typing import Ints

MOST_CLASSES = 16  # in a figure
MOST_ROWS = 24  # workers in a figure
WIDE = 640


@dataclass(frozen=True)
class Figure:
    """A chart with its title, and the table that its buttons save."""

    id: str
    title: str
    reading: str
    picture: Markup
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    key: tuple[tuple[Markup, str], ...] = ()  # marks and their meaning


def per_task(facts: Facts) -> Figure:
    """Draw the number of tasks by number of labels."""
    return _spread("per-task", "Labels per task", facts.data.per_task, "tasks")


def per_worker(facts: Facts) -> Figure:
    """Draw the number of workers by number of labels."""
    return _spread("per-worker", "Labels per worker", facts.data.per_worker, "workers")


def _spread(identity: str, title: str, spread: Spread, who: str) -> Figure:
    names = [f"{b.low:,}" if b.low == b.high else f"{b.low:,}{DASH}{b.high:,}" for b in spread.bars]
    counts = [bar.count for bar in spread.bars]
    reading = f"Median {number(spread.median, 0)}, from {spread.least:,} to {spread.most:,}."
    picture = bar_chart(names, counts, "labels", f"{title}. {reading}")
    rows = list(zip(names, counts, strict=True))
    return Figure(identity, title, reading, picture, ["labels", who], rows)


def agreement(facts: Facts) -> Figure | None:
    """Draw the measures of agreement on one scale."""
    if not any(math.isfinite(measure.value) for measure in facts.agreement):
        return None
    rows = []
    for m in facts.agreement:
        spread = between(m.low, m.high)
        text = number(m.value) + (f" ({spread})" if spread and math.isfinite(m.value) else "")
        rows.append(IntervalRow(m.name[0].upper() + m.name[1:], m.value, m.low, m.high, text))
    label = "Agreement: " + "; ".join(f"{row.name} {row.text}" for row in rows)
    least = min([row.low for row in rows if math.isfinite(row.low)], default=0.0)
    picture = interval_chart(rows, label, lambda v: number(v, 1), (min(0.0, least), 1.0))
    columns = ["measure", "value", "low", "high", "tasks"]
    values = [(m.name, m.value, m.low, m.high, m.n_tasks) for m in facts.agreement]
    reading = "0 is chance (except for observed agreement), 1 is perfect; bars are 95% intervals."
    return Figure("agreement", "Agreement", reading, picture, columns, values)


def confidence(facts: Facts) -> Figure:
    """Draw the distribution of confidence."""
    tasks = facts.tasks
    counts = tasks.histogram.tolist()
    edges = [k / len(counts) for k in range(len(counts) + 1)]
    first = next((k for k, n in enumerate(counts) if n), 0)
    names = [share(low) for low in edges[first:-1]]
    confident = share(1 - tasks.n_uncertain / max(tasks.n_tasks, 1))
    reading = f"{confident} of the tasks have a confidence of at least {share(tasks.threshold)}."
    label = f"Tasks by confidence. {reading}"
    picture = bar_chart(names, counts[first:], "confidence, from", label)
    rows = list(zip(edges[first:-1], edges[first + 1 :], counts[first:], strict=True))
    columns = ["from", "to", "tasks"]
    return Figure("confidence", "Confidence of the labels", reading, picture, columns, rows)


def reliability(facts: Facts) -> Figure | None:
    """Draw confidence against accuracy, if truths are known."""
    bins = facts.trust.reliability
    if not bins:
        return None
    x = [one.confidence for one in bins]
    low, high = [one.low for one in bins], [one.high for one in bins]
    curves = [
        Curve("accuracy", x, [one.accuracy for one in bins], 0, low, high),
        Curve("as stated", x, x, 1),
    ]
    n = sum(one.n_tasks for one in bins)
    gap = sum(one.n_tasks * abs(one.confidence - one.accuracy) for one in bins) / n
    reading = f"On {plural(n, 'known truth')}, confidence and accuracy differ by {share(gap, 1)} "
    reading += "on average, chance included; a calibrated method lies on the line “as stated”."
    label = f"Accuracy by confidence. {reading}"
    picture = line_chart(curves, label, "confidence", share, x_written=share)
    rows = [(b.confidence, b.accuracy, b.low, b.high, b.n_tasks) for b in bins]
    columns = ["confidence", "accuracy", "low", "high", "tasks"]
    title = "Does confidence mean what it says?"
    return Figure("reliability", title, reading, picture, columns, rows)


def accuracy(facts: Facts) -> Figure:
    """Draw accuracy with intervals, for the workers with most labels."""
    own = facts.workers
    busiest = np.arange(min(len(own.name), MOST_ROWS))
    rows = [
        IntervalRow(
            own.name[k],
            float(own.accuracy[k]),
            float(own.low[k]),
            float(own.high[k]),
            f"{share(float(own.accuracy[k]))} of {int(own.n_labels[k]):,}",
            1 if own.flag[k] and "few" not in own.flag[k] else 0,
        )
        for k in busiest[np.argsort(-own.accuracy[busiest], kind="stable")].tolist()
    ]
    who = "all workers" if len(own.name) <= MOST_ROWS else f"the {MOST_ROWS} busiest workers"
    reading = f"Accuracy of {who}, with 95% intervals."
    if any(row.kind for row in rows):
        reading += " Orange squares are flagged workers."
    label = f"{reading} From {rows[-1].text} ({rows[-1].name}) to {rows[0].text} ({rows[0].name})."
    picture = interval_chart(rows, label, share, title="share of right labels")
    columns = ["worker", "labels", "accuracy", "low", "high", "remark"]
    table = zip(own.name, own.n_labels, own.accuracy, own.low, own.high, own.flag, strict=True)
    return Figure("accuracy", "Accuracy of the workers", reading, picture, columns, list(table))


def drift(facts: Facts) -> Figure | None:
    """Draw the accuracy of all labels over time."""
    if facts.times is None:
        return None
    periods = facts.times.periods
    curve = Curve(
        "accuracy",
        [float(k + 1) for k in range(len(periods))],
        [period.accuracy for period in periods],
        0,
        [period.low for period in periods],
        [period.high for period in periods],
    )
    ends = share(periods[0].accuracy), share(periods[-1].accuracy)
    reading = "From {} at the start to {} at the end.".format(*ends)
    label = f"Accuracy over time. {reading}"
    picture = line_chart([curve], label, "tenths of the job, by time", share)
    rows = [(p.start, p.n_labels, p.accuracy, p.low, p.high) for p in periods]
    columns = ["from", "labels", "accuracy", "low", "high"]
    return Figure("drift", "Accuracy over time", reading, picture, columns, rows)


def pairs(facts: Facts) -> Figure | None:
    """Draw a shaded table, workers by workers."""
    own = facts.pairs
    if own is None:
        return None

    def tip(i: int, j: int) -> str:
        if i == j:
            return own.name[i]
        value = float(own.kappa[i, j])
        text = number(value) if np.isfinite(value) else "too few tasks in common"
        shared = plural(int(own.n_shared[i, j]), "task")
        return f"{own.name[i]} and {own.name[j]}: {text}, {shared}"

    reading = (
        "Cohen's kappa of each pair: blue for agreement, orange for disagreement, blank for fewer "
        f"than {own.min_overlap} shared tasks. Workers who agree most with the rest come first."
    )
    width = 480 if len(own.name) <= 12 else WIDE
    picture = heat_chart(own.kappa, own.name, own.name, reading, number, tip, width=width)
    rows = [
        (own.name[i], own.name[j], own.n_shared[i, j], own.kappa[i, j])
        for i in range(len(own.name))
        for j in range(i + 1, len(own.name))
        if own.n_shared[i, j]
    ]
    columns = ["worker", "other", "tasks", "kappa"]
    return Figure("pairs", "Agreement of every pair of workers", reading, picture, columns, rows)


def balance(facts: Facts) -> Figure:
    """Draw each class's share of the tasks, by method."""
    own, chosen = facts.classes, frequent_classes(facts)
    heads = ["labels", *(method.name for method in facts.methods)]
    columns = [own.given, *(method.shares for method in facts.methods)]
    if own.true is not None:
        heads, columns = [*heads, "truth"], [*columns, own.true]
    table = np.column_stack(columns)
    names = [own.name[k] for k in chosen]
    most = float(table.max())
    reading = "Share of each class among the labels, and among the tasks according to each method."
    picture = heat_chart(
        table[chosen] / max(most, 1e-9),
        names,
        heads,
        reading,
        lambda v: share(v * most),
        lambda i, j: f"{names[i]}, {heads[j]}: {share(float(table[chosen[i], j]), 1)}",
    )
    rows = [(own.name[k], *table[k].tolist()) for k in range(len(own.name))]
    title = "Class balance by method"
    return Figure("balance", title, reading, picture, ["class", *heads], rows)


def confusion(facts: Facts) -> Figure:
    """Draw the confusion matrix of all workers together."""
    own, chosen = facts.classes, frequent_classes(facts)
    total = own.confusion.sum(axis=1, keepdims=True)
    rates = np.divide(
        own.confusion, total, out=np.full_like(own.confusion, np.nan), where=total > 0
    )
    shown, names = rates[np.ix_(chosen, chosen)], [own.name[k] for k in chosen]
    reading = f"Rows are the class inferred by {facts.method}, columns the label given."

    def tip(i: int, j: int) -> str:
        return f"{names[i]} labeled {names[j]}: {share(float(shown[i, j]), 1)}"

    picture = heat_chart(shown, names, names, reading, share, tip)
    rows = [(own.name[k], *rates[k].tolist()) for k in range(len(own.name))]
    columns = ["inferred \\ given", *own.name]
    return Figure("confusion", "Confusion matrix of the crowd", reading, picture, columns, rows)


def frequent_classes(facts: Facts) -> Ints:
    """Return the classes with most labels, in their own order."""
    return np.sort(np.argsort(-facts.classes.given, kind="stable")[:MOST_CLASSES])


def curve(facts: Facts) -> Figure | None:
    """Draw the forecast for fewer and more labels per task, and the measurements."""
    own = facts.curve
    if own is None:
        return None
    points = own.points
    x = [float(point.n_labels) for point in points]
    low, high = [point.low for point in points], [point.high for point in points]
    curves = [Curve("forecast", x, [point.forecast for point in points], 0, low, high)]
    if any(math.isfinite(point.kept) for point in points):
        curves.append(Curve("label kept", x, [point.kept for point in points], 1))
    if any(math.isfinite(point.measured) for point in points):
        curves.append(Curve("measured accuracy", x, [point.measured for point in points], 2))
    reading = f"The data have {own.now:.1f} labels per task on average."
    values = "; ".join(f"{point.n_labels} labels: {share(point.forecast)}" for point in points)
    label = f"Accuracy by labels per task. {reading} {values}"
    picture = line_chart(curves, label, "labels per task", share, at=own.now)
    columns = ["labels per task", "forecast", "low", "high", "label kept", "measured accuracy"]
    rows = [(p.n_labels, p.forecast, p.low, p.high, p.kept, p.measured) for p in points]
    return Figure("curve", "Accuracy by labels per task", reading, picture, columns, rows)


def held_out(facts: Facts) -> Figure | None:
    """Draw the probability that each method gives to held-out labels."""
    rows = [
        IntervalRow(m.name, own.value, own.low, own.high, share(own.value, 1), 0 if m.main else 4)
        for m in facts.methods
        if m.held_out is not None
        for own in [m.held_out.probability]
    ]
    if not rows:
        return None
    reading = "Geometric means. Predicting labels well is not the same as being right."
    label = f"Probability of held-out labels. {reading}"
    picture = interval_chart(rows, label, share, title="probability of held-out labels")
    columns = ["method", "probability", "low", "high"]
    values = [(row.name, row.value, row.low, row.high) for row in rows]
    return Figure("held-out", "Held-out labels", reading, picture, columns, values)


def truth(facts: Facts) -> Figure | None:
    """Draw the accuracy of each method on known truths."""
    if not facts.n_truths:
        return None
    rows = [
        IntervalRow(m.name, own.value, own.low, own.high, share(own.value, 1), 0 if m.main else 4)
        for m in facts.methods
        for own in [m.scores["accuracy"]]
    ]
    best = max(rows, key=lambda row: row.value)
    known = plural(facts.n_truths, "known truth")
    reading = f"Accuracy on {known}. Best: {best.name}, {best.text}."
    picture = interval_chart(rows, reading, share, title="share of right labels")
    values = [(m.name, *(own.value for own in m.scores.values())) for m in facts.methods]
    columns = ["method", *facts.methods[0].scores]
    return Figure("truth", "Known truths", reading, picture, columns, values)
