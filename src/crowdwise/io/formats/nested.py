"""A JSON object ``{task: {worker: label}}``, such as peerannot's answers.json."""

from collections.abc import Mapping
from dataclasses import replace

from crowdwise.annotations.wide import Nested
from crowdwise.errors import FormatError, explain
from crowdwise.io.build import LongTable
from crowdwise.io.document import ReadOptions, Tree
from crowdwise.io.formats.collect import Collector
from crowdwise.io.recognize import Format
from crowdwise.io.triples import orient_labels


def matches(document: Tree) -> bool:
    """Return whether all values are objects with plain values."""
    return all(
        isinstance(labels, Mapping) and not any(isinstance(x, list | dict) for x in labels.values())
        for labels in document.value.values()
    )


def parse(document: Tree, options: ReadOptions) -> LongTable:
    """Return one row for each pair; tasks keep their order, and may have no label at all."""
    rows = Collector(document.name)
    for task, labels in document.value.items():
        if not isinstance(labels, Mapping):
            raise FormatError(
                explain(
                    f"{document.name} has no labels by worker for task {task!r}.",
                    expected="{task: {worker: label}}",
                    fix="write {task: {worker: label}}, or rows of task, worker, label",
                )
            )
    value: Nested = document.value
    note = "tasks from the outer names, workers from the inner"
    if not options.named:
        value, note = orient_labels(value, document.name)
    for task, labels in value.items():
        for worker, label in labels.items():
            rows.add(task, worker, label)
    long = rows.to_long(untyped=("task", "worker"))
    return replace(long, names={"tasks": list(value)}, notes=(*long.notes, note))


FORMAT = Format("nested", __doc__, Tree, parse, matches=matches)
