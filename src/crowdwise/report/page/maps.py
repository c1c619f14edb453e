"""Tasks and workers as points on a plane."""

import numpy as np

from crowdwise.errors import plural
from crowdwise.report.facts import Facts
from crowdwise.report.page.charts import scatter_chart
from crowdwise.report.page.figures import Figure
from crowdwise.report.page.svg import MARKS, mark
from crowdwise.report.page.words import share, shorten
from crowdwise.typing import Ints

CONFIDENT = 0.9
OTHER = MARKS - 1  # shared mark of the less frequent classes


def task_map(facts: Facts) -> Figure | None:
    """Draw tasks, marked by label; uncertain ones are hollow."""
    own = facts.task_map
    if own is None:
        return None
    classes = facts.classes.name
    kinds, names = assign_marks(own.group, classes)
    labels = [classes[group] for group in own.group.tolist()]
    tips = [
        f"{task}: {label}, confidence {share(float(value))}, {plural(int(n), 'label')}"
        for task, label, value, n in zip(own.name, labels, own.value, own.n_labels, strict=True)
    ]
    reading = (
        f"Nearby tasks are similar, by {own.source}. Hollow points have a confidence below "
        f"{share(CONFIDENT)}. {own.note}"
    )
    label = f"Map of tasks. {reading}"
    faint = own.value < CONFIDENT
    picture = scatter_chart(own.x, own.y, kinds.tolist(), tips, label, faint=faint)
    rows = list(zip(own.name, labels, own.value, own.x, own.y, strict=True))
    columns = ["task", "label", "confidence", "x", "y"]
    key = tuple((mark(7, 7, kind, "", 5, "dot solid"), name) for kind, name in enumerate(names))
    return Figure("task-map", "Map of tasks", reading, picture, columns, rows, key)


def assign_marks(group: Ints, classes: list[str]) -> tuple[Ints, list[str]]:
    """Assign a mark to each of the most frequent classes and one to the rest, with names."""
    counts = np.bincount(group, minlength=len(classes))
    order = np.argsort(-counts, kind="stable")
    order = order[counts[order] > 0]
    kind = np.full(len(classes), OTHER)
    own = order if len(order) <= MARKS else order[:OTHER]
    kind[own] = np.arange(len(own))
    names = [shorten(classes[k], 24) for k in own.tolist()]
    if len(own) < len(order):
        names.append(f"{len(order) - len(own)} other classes")
    return kind[group], names


def worker_map(facts: Facts) -> Figure | None:
    """Draw workers by how they err: larger with more labels, hollow if often wrong."""
    own = facts.worker_map
    if own is None:
        return None
    tips = [
        f"{worker}: {share(float(right))} right, {plural(n, 'label')}"
        for worker, right, n in zip(own.name, own.value, own.n_labels.tolist(), strict=True)
    ]
    size = 3 + 9 * np.sqrt(own.n_labels / max(int(own.n_labels.max()), 1))
    middle = float(np.nanmedian(own.value))
    reading = (
        f"Nearby workers make similar mistakes, by {own.source}. Larger points have more labels; "
        f"hollow ones are less accurate than the median worker ({share(middle)}). {own.note}"
    )
    label, faint = f"Map of workers. {reading}", own.value < middle
    kinds = [0] * len(own.name)
    picture = scatter_chart(own.x, own.y, kinds, tips, label, sizes=size, faint=faint)
    rows = list(zip(own.name, own.n_labels, own.value, own.x, own.y, strict=True))
    columns = ["worker", "labels", "accuracy", "x", "y"]
    return Figure("worker-map", "Map of workers", reading, picture, columns, rows)
