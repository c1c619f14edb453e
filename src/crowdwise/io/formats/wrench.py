"""WRENCH: JSON of weak labels, ``{task: {label, weak_labels, data}}``."""

from crowdwise.io.content import Content, Long, Options, Tree
from crowdwise.io.formats._rows import Rows

ABSTAIN = -1


def matches(content: Content) -> bool:
    """Whether every task has a list of weak labels."""
    rows = content.sample if isinstance(content, Tree) else []
    return bool(rows) and all(isinstance(row.get("weak_labels"), list) for row in rows)


def parse(content: Tree, _: Options) -> Long:
    """One row for each weak label; its place is the worker, -1 abstains, ``label`` is gold."""
    rows = Rows(content.name)
    for task, record in content.value.items():
        known = record if isinstance(record, dict) else {}
        for worker, label in enumerate(known.get("weak_labels") or []):
            if label == ABSTAIN:
                continue
            rows.add(task, worker, label)
        if known.get("label") is not None:
            rows.know(task, known["label"])
    return rows.long("worker from the place in 'weak_labels'", untyped=("task",))
