"""Toloka: assignments, TSV."""

from crowdwise.io.build import LongTable
from crowdwise.io.document import ReadOptions, Table
from crowdwise.io.formats.collect import choose_question, find_present
from crowdwise.io.recognize import Format

INPUT, OUTPUT, GOLDEN = "INPUT:", "OUTPUT:", "GOLDEN:"
TASK, WORKER, STATUS = "ASSIGNMENT:task_id", "ASSIGNMENT:worker_id", "ASSIGNMENT:status"
TIMES = ("ASSIGNMENT:submitted", "ASSIGNMENT:started")


def parse(document: Table, options: ReadOptions) -> LongTable:
    """Return one row for each task of an assignment that was not rejected."""
    columns = list(document.columns)
    outputs = [name.removeprefix(OUTPUT) for name in columns if name.startswith(OUTPUT)]
    roles = {"worker": WORKER, "task": TASK}
    if options.asked in columns:
        roles["label"] = str(options.asked)
    else:
        asked = options.asked.removeprefix(OUTPUT) if options.asked else None
        question = choose_question(asked, outputs, document.name)
        roles |= {"label": OUTPUT + question, "gold": GOLDEN + question}
    if TASK not in columns and options.task is None:
        inputs = [name for name in columns if name.startswith(INPUT)]
        roles["task"] = choose_question(None, inputs, document.name, "input column", "task")
    roles["time"] = next((name for name in TIMES if name in columns), TIMES[0])
    label = {"label": roles["label"]}
    long = LongTable.from_columns(document, find_present(roles, document) | options.columns | label)
    if options.rejected or STATUS not in columns:
        return long
    status = document.frame([STATUS])[STATUS]
    return long.drop_rows(status.isin(["REJECTED"]).to_numpy(bool), "rejected assignments")


FORMAT = Format("toloka", __doc__, Table, parse, marks=({WORKER, OUTPUT + "*"},))
