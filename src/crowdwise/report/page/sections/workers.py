"""Every worker: accuracy, mistakes, speed and drift."""

import numpy as np

from crowdwise.report.facts import Facts
from crowdwise.report.facts.times import TimeFacts
from crowdwise.report.page.charts import Curve, Row, interval_chart, line_chart
from crowdwise.report.page.html import Markup, clean, shortened, tag
from crowdwise.report.page.sections.maps import workers_on_map
from crowdwise.report.page.sheet import Column, Sheet, note, section
from crowdwise.report.page.words import duration, share

MOST_ROWS = 24  # of the chart
LETTERS = 120  # of a worker's name


def workers(facts: Facts, sheet: Sheet) -> Markup:
    """The best and the worst of the busy ones in a picture, all of them in a table."""
    own = facts.workers
    sheet.extra["confusion"] = np.round(own.confusion, 1).tolist()
    return section(
        "workers",
        "Every worker",
        tag("p", words_of(facts)),
        tag("div", *pictures(facts, sheet), class_="grid"),
        tag("h3", "All workers"),
        note(own.note),
        note("Choose a worker's name to see what this worker takes for what."),
        sheet.table(
            "workers",
            "Workers: accuracy with 95% interval, agreement and skill",
            columns_of(facts),
            search="Search workers",
            choose="Remark",
            details="confusion",
            order=(1, False),
        ),
    )


def pictures(facts: Facts, sheet: Sheet) -> list[Markup]:
    """Accuracy, map and drift in two columns of about one height."""
    sides: list[list[Markup | None]] = [
        [accuracy_chart(facts, sheet)],
        [workers_on_map(facts.worker_map, sheet)],
    ]
    if facts.times is not None:
        few = len(facts.workers.name) <= MOST_ROWS // 2
        sides[0 if few else 1].append(drift_chart(facts.times, sheet))
    return [tag("div", *side) for side in sides]


def words_of(facts: Facts) -> str:
    """What can be said of all workers together."""
    own = facts.workers
    text = (
        f"A label drawn at random is right {share(own.mean_accuracy)} of the time, if "
        f"{facts.method} is. Accuracy is the expected share of right labels; skill is 0 for "
        "someone who ignores the task and 1 for someone who knows every truth."
    )
    times = facts.times
    if times is None:
        return text
    return (
        f"{text} Labels were given from {times.first} to {times.last}; the median worker takes "
        f"{duration(times.median_pace, times.unit)} from one label to the next."
    )


def accuracy_chart(facts: Facts, sheet: Sheet) -> Markup:
    """Accuracy with intervals, of those with most labels."""
    own = facts.workers
    chosen = np.arange(min(len(own.name), MOST_ROWS))
    chosen = chosen[np.argsort(-own.accuracy[chosen], kind="stable")]
    rows = [
        Row(
            own.name[k],
            float(own.accuracy[k]),
            float(own.low[k]),
            float(own.high[k]),
            f"{share(float(own.accuracy[k]))} of {int(own.n_labels[k]):,}",
            1 if own.flag[k] and "few" not in own.flag[k] else 0,
        )
        for k in chosen.tolist()
    ]
    who = "all workers" if len(own.name) <= MOST_ROWS else f"the {MOST_ROWS} busiest workers"
    flagged = sum(row.kind for row in rows)
    reading = f"Accuracy of {who}, with 95% intervals."
    if flagged:
        reading += " Orange squares are those to look at."
    label = f"{reading} From {rows[-1].told} ({rows[-1].name}) to {rows[0].told} ({rows[0].name})."
    picture = interval_chart(rows, label, share, title="share of right labels")
    columns = ["worker", "labels", "accuracy", "low", "high", "remark"]
    values = [
        (own.name[k], own.n_labels[k], own.accuracy[k], own.low[k], own.high[k], own.flag[k])
        for k in range(len(own.name))
    ]
    return sheet.chart("accuracy", "How good the workers are", reading, picture, columns, values)


def drift_chart(times: TimeFacts, sheet: Sheet) -> Markup:
    """Accuracy of all labels over time."""
    place = [float(k + 1) for k in range(len(times.periods))]
    curve = Curve(
        "accuracy",
        place,
        [period.accuracy for period in times.periods],
        0,
        [period.low for period in times.periods],
        [period.high for period in times.periods],
    )
    first, last = times.periods[0], times.periods[-1]
    reading = f"From {share(first.accuracy)} at the start to {share(last.accuracy)} at the end."
    label = f"Accuracy over time. {reading}"
    picture = line_chart([curve], label, "tenths of the job, by time", share)
    rows = [(p.start, p.n_labels, p.accuracy, p.low, p.high) for p in times.periods]
    columns = ["from", "labels", "accuracy", "low", "high"]
    return sheet.chart("drift", "Accuracy over time", reading, picture, columns, rows)


def columns_of(facts: Facts) -> list[Column]:
    """The table of workers."""
    own, times = facts.workers, facts.times
    columns = [
        Column("Worker", "name", [shortened(clean(one), LETTERS) for one in own.name]),
        Column("Labels", "count", own.n_labels),
        Column("Accuracy", "interval", own.accuracy, own.low, own.high),
        Column("Agrees", "share", own.agreement, about="with another worker of the task"),
        Column("Skill", "number", own.skill, about="0 ignores the task, 1 knows every truth"),
    ]
    if own.gold_accuracy is not None:
        about = "share of right labels where the truth is known"
        columns.append(Column("Checked", "share", own.gold_accuracy, about=about))
    if times is not None:
        pace = Column("Pace", "time" if times.unit else "number", times.pace)
        columns += [pace, Column("First half", "share", times.early)]
        columns.append(Column("Second half", "share", times.late))
    columns.append(Column("Remark", "text", own.flag))
    return columns
