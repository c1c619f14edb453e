"""OpenAI evals: JSONL of events, or output items of the API; judges are graders."""

from collections.abc import Mapping

from crowdwise.io.build import LongTable
from crowdwise.io.document import JSON, Document, ReadOptions, Record
from crowdwise.io.formats.collect import Collector, get_field, get_first, list_rows
from crowdwise.io.recognize import Format
from crowdwise.io.values import Cell

EVENT = {"run_id", "event_id", "sample_id", "type"}
LABELS = ("choice", "score", "correct", "picked")
KINDS = ("metrics", "match")


def matches(document: Document) -> bool:
    """Whether rows are events of a run, or items with results of graders."""
    rows = list_rows(document, "data")
    return any(is_item(row) or row.keys() >= EVENT for row in rows[:50])


def is_item(row: Record) -> bool:
    return row.get("object") == "eval.run.output_item" and isinstance(row.get("results"), list)


def parse(document: Document, options: ReadOptions) -> LongTable:
    """One row for each sample and grader; an event's grader is the run it belongs to."""
    rows = Collector(document.name)
    records = list_rows(document, "data")
    spec: Record = next(
        (row["spec"] for row in records if isinstance(row.get("spec"), Mapping)), {}
    )
    for row in records:
        if is_item(row):
            add_item(rows, row, options)
        elif row.keys() >= EVENT and row["type"] in KINDS:
            task = get_field(row, options.task or "sample_id")
            rows.add(task, name_run(row, spec, options, document), find_label(row, options))
        elif row.keys() >= EVENT:
            rows.count_left_out("events without a grade")
        elif not {"spec", "final_report"} & row.keys():
            rows.count_left_out("rows without a grade")
    return rows.to_long()


def add_item(rows: Collector, row: Record, options: ReadOptions) -> None:
    """Take the results of every grader of one item."""
    task = get_first(row, (options.task,) if options.task else ("datasource_item_id", "id"))
    for result in row["results"]:
        passed = result.get("passed")
        label = get_first(result, (options.asked,) if options.asked else ("score",))
        if label is None and passed is not None:
            label = int(bool(passed))
        rows.add(task, result.get("name"), label)


def name_run(row: Record, spec: Record, options: ReadOptions, document: Document) -> Cell:
    """Who graded: as asked, else the model that the head of the log names, else the file."""
    if options.worker is not None:
        return get_field(row, options.worker)
    models = get_first(spec, ("completion_fns", "model_name"))
    return (models[0] if isinstance(models, list) and models else models) or document.stem


def find_label(row: Record, options: ReadOptions) -> Cell:
    """What was chosen, or its score; None where the answer could not be read."""
    data = row.get("data")
    if not isinstance(data, Mapping):
        return None
    found = get_first(data, (options.asked,) if options.asked else LABELS)
    found = int(found) if isinstance(found, bool) else found
    return None if found == "__invalid__" else found


FORMAT = Format("openai_evals", __doc__, JSON, parse, matches=matches)
