"""What is in the data, and what is odd about it."""

from crowdwise.report.facts import Facts
from crowdwise.report.facts.data import Spread
from crowdwise.report.page.charts import bar_chart
from crowdwise.report.page.html import Markup, tag
from crowdwise.report.page.sheet import Sheet, fixed_table, note, section
from crowdwise.report.page.words import DASH, number, share


def data(facts: Facts, sheet: Sheet) -> Markup:
    """Counts, two histograms, and notes of the reader."""
    counts = facts.data
    return section(
        "data",
        "What is in the data",
        tag(
            "div",
            spread_chart(sheet, "per-task", "Labels per task", counts.per_task, "labels", "tasks"),
            spread_chart(
                sheet, "per-worker", "Labels per worker", counts.per_worker, "labels", "workers"
            ),
            class_="grid",
        ),
        fixed_table("What to look at before believing any number", HEADS, oddities(facts)),
        note(f"From the reader: {'; '.join(counts.notes)}." if counts.notes else ""),
    )


HEADS = ("what", "how many", "why it matters")


def spread_chart(
    sheet: Sheet, identity: str, title: str, spread: Spread, what: str, who: str
) -> Markup:
    """How many tasks or workers have how many labels."""
    names = [f"{b.low:,}" if b.low == b.high else f"{b.low:,}{DASH}{b.high:,}" for b in spread.bars]
    counts = [bar.count for bar in spread.bars]
    reading = f"Median {number(spread.median, 0)}, from {spread.least:,} to {spread.most:,}."
    picture = bar_chart(names, counts, what, f"{title}. {reading}")
    return sheet.chart(
        identity, title, reading, picture, [what, who], list(zip(names, counts, strict=True))
    )


def oddities(facts: Facts) -> list[tuple[object, ...]]:
    """Everything that was looked for, found or not."""
    counts, flags = facts.data, facts.workers.flags
    tasks, workers = max(counts.n_tasks, 1), max(facts.workers.n_workers, 1)
    rows = [
        ("Tasks without a label", counts.n_unlabelled, counts.n_unlabelled / tasks,
         "their label is a guess from the class balance"),
        ("Tasks with one label", counts.n_single, counts.n_single / tasks,
         "nobody has checked them"),
        ("Tasks on which all agree", counts.n_unanimous, counts.n_unanimous / tasks,
         f"of {counts.n_shared:,} that two workers or more have labelled"),
        ("Repeated annotations", counts.n_repeats, counts.n_repeats / counts.n_annotations,
         f"{counts.n_contradictions:,} of them with another label than the first time"),
        ("Workers with one label", counts.n_once, counts.n_once / workers,
         "too little to judge them by"),
        ("Workers cut off from the rest", counts.n_workers_apart, counts.n_workers_apart / workers,
         linked(counts.n_parts)),
        *((f"Workers: {flag}", n, n / workers, MEANS[flag]) for flag, n in flags.items()),
    ]  # fmt: skip
    found: list[tuple[object, ...]] = [
        (what, (f"{n:,} ({share(part)})" if n else "none", "right" if n else "right quiet"), why)
        for what, n, part, why in rows
    ]
    busy = (share(counts.busy_share), "right")
    found.append(("Labels by the busiest tenth", busy, "their habits weigh most"))
    return found


def linked(n_parts: int) -> str:
    """Whether labels link everyone with everyone."""
    if n_parts == 1:
        return "shared tasks link all workers"
    return f"there are {n_parts:,} parts that share neither tasks nor workers"


MEANS = {
    "answers as if at random": "their labels do not follow what the others see",
    "always the same label": "though most of the others see something else",
    "often contradicts the rest": "labels may be swapped, or the task misunderstood",
    "too few labels to say": "judge them once they have labelled more",
}
