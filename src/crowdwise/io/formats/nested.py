"""A JSON object ``{task: {worker: label}}``, as peerannot's answers.json."""

from collections.abc import Mapping

from crowdwise.errors import FormatError, explain
from crowdwise.io.content import Content, Long, Options, Tree
from crowdwise.io.formats._rows import Rows


def matches(content: Content) -> bool:
    """Whether all values are objects, and their values are plain."""
    return isinstance(content, Tree) and all(
        isinstance(labels, Mapping) and not any(isinstance(x, list | dict) for x in labels.values())
        for labels in content.value.values()
    )


def parse(content: Tree, _: Options) -> Long:
    """One row for each pair; tasks keep their order, and may have no label at all."""
    rows = Rows(content.name)
    for task, labels in content.value.items():
        if not isinstance(labels, Mapping):
            raise FormatError(
                explain(
                    f"{content.name} has no labels by worker for task {task!r}.",
                    expected="{task: {worker: label}}",
                )
            )
        for worker, label in labels.items():
            rows.add(task, worker, label)
    long = rows.long(untyped=("task", "worker"))
    long.names["tasks"] = list(content.value)
    return long
