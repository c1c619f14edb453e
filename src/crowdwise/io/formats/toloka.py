"""Toloka: assignments, TSV."""

from crowdwise.io.content import Content, Long, Options, Table
from crowdwise.io.formats._rows import choose
from crowdwise.io.formats._tables import present, take

INPUT, OUTPUT, GOLDEN = "INPUT:", "OUTPUT:", "GOLDEN:"
TASK, WORKER, STATUS = "ASSIGNMENT:task_id", "ASSIGNMENT:worker_id", "ASSIGNMENT:status"
TIMES = ("ASSIGNMENT:submitted", "ASSIGNMENT:started")


def matches(content: Content) -> bool:
    """Whether there are columns for the worker and an output, as Toloka writes them."""
    return WORKER in content.columns and any(n.startswith(OUTPUT) for n in content.columns)


def parse(content: Table, options: Options) -> Long:
    """One row for each task of an assignment that was not rejected."""
    columns = list(content.columns)
    outputs = [name.removeprefix(OUTPUT) for name in columns if name.startswith(OUTPUT)]
    roles = {"worker": WORKER, "task": TASK}
    if options.asked in columns:
        roles["label"] = str(options.asked)
    else:
        asked = options.asked.removeprefix(OUTPUT) if options.asked else None
        question = choose(asked, outputs, content.name)
        roles |= {"label": OUTPUT + question, "gold": GOLDEN + question}
    if TASK not in columns and options.task is None:
        inputs = [name for name in columns if name.startswith(INPUT)]
        roles["task"] = choose(None, inputs, content.name, "input column", "task")
    roles["time"] = next((name for name in TIMES if name in columns), TIMES[0])
    label = {"label": roles["label"]}
    long = take(content, present(roles, content) | options.columns | label)
    if options.rejected or STATUS not in columns:
        return long
    status = content.frame([STATUS])[STATUS]
    return long.without(status.isin(["REJECTED"]).to_numpy(bool), "rejected assignments")
