"""WRENCH: JSON of weak labels, ``{task: {label, weak_labels, data}}``."""

from crowdwise.io.build import LongTable
from crowdwise.io.document import ReadOptions, Tree
from crowdwise.io.formats.collect import Collector
from crowdwise.io.recognize import Format

ABSTAIN = -1


def matches(document: Tree) -> bool:
    """Return whether every task has a list of weak labels."""
    rows = document.sample
    return bool(rows) and all(isinstance(row.get("weak_labels"), list) for row in rows)


def parse(document: Tree, _: ReadOptions) -> LongTable:
    """Return one row per weak label: its index is the worker, -1 abstains, ``label`` is gold."""
    rows = Collector(document.name)
    for task, record in document.value.items():
        known = record if isinstance(record, dict) else {}
        if not isinstance(known.get("weak_labels"), list):
            rows.count_left_out("tasks without weak labels")
            continue
        for worker, label in enumerate(known["weak_labels"]):
            if label == ABSTAIN:
                rows.count_left_out("abstentions")
            else:
                rows.add(task, worker, label)
        if known.get("label") is not None and not rows.add_truth(task, known["label"]):
            rows.count("truths that cannot be read")
    return rows.to_long("worker from the place in 'weak_labels'", untyped=("task",))


FORMAT = Format("wrench", __doc__, Tree, parse, matches=matches)
