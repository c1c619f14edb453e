"""OpenAI evals: JSONL of events, or output items of the API; judges are graders."""

from collections.abc import Mapping

from crowdwise.io.build import LongTable
from crowdwise.io.document import JSON, Document, ReadOptions, Record
from crowdwise.io.formats.collect import Collector, choose_question, get_field, get_first, list_rows
from crowdwise.io.recognize import Format
from crowdwise.io.values import Cell

EVENT = {"run_id", "event_id", "sample_id", "type"}
LABELS = ("choice", "score", "correct", "picked")
KINDS = ("metrics", "match")


def matches(document: Document) -> bool:
    """Return whether rows are events of a run, or items with grader results."""
    rows = list_rows(document, "data")
    return any(is_item(row) or row.keys() >= EVENT for row in rows[:50])


def is_item(row: Record) -> bool:
    return row.get("object") == "eval.run.output_item" and isinstance(row.get("results"), list)


def parse(document: Document, options: ReadOptions) -> LongTable:
    """Return one row for each sample and grader; an event's grader is its run."""
    rows = Collector(document.name)
    records = list_rows(document, "data")
    specs = [row["spec"] for row in records if isinstance(row.get("spec"), Mapping)]
    by_run = {str(spec.get("run_id")): spec for spec in specs}
    runs = {str(row["run_id"]) for row in records if is_grade(row)}
    asked = options.asked or choose_field(records, document.name)
    for row in records:
        if is_item(row):
            add_item(rows, row, options)
        elif is_grade(row):
            task = get_field(row, options.task or "sample_id")
            run = str(row["run_id"])
            spec = by_run.get(run) or (specs[0] if specs and len(runs) == 1 else {})
            name = document.stem if len(runs) == 1 else run
            rows.add(task, name_run(row, spec, options, name), find_label(row, asked))
        elif row.keys() >= EVENT:
            rows.count_left_out("events without a grade")
        elif not {"spec", "final_report"} & row.keys():
            rows.count_left_out("rows without a grade")
    return rows.to_long()


def add_item(rows: Collector, row: Record, options: ReadOptions) -> None:
    """Add the results of every grader of one item."""
    task = get_first(row, (options.task,) if options.task else ("datasource_item_id", "id"))
    for result in row["results"]:
        label = get_first(result, (options.asked,) if options.asked else ("score", "passed"))
        rows.add(task, result.get("name"), int(label) if isinstance(label, bool) else label)


def is_grade(row: Record) -> bool:
    return row.keys() >= EVENT and row["type"] in KINDS


def choose_field(records: list[Record], where: str) -> str | None:
    """Choose the field with the label of events; they must have it in common."""
    data = [row["data"] for row in records if is_grade(row) and isinstance(row["data"], Mapping)]
    fields = [next((name for name in LABELS if own.get(name) is not None), None) for own in data]
    named = [name for name in fields if name is not None]
    return choose_question(None, named, where, "field") if named else None


def name_run(row: Record, spec: Record, options: ReadOptions, name: str) -> Cell:
    """Name the grader: as asked, else the model in the log's header, else ``name``."""
    if options.worker is not None:
        return get_field(row, options.worker)
    models = get_first(spec, ("completion_fns", "model_name"))
    return (models[0] if isinstance(models, list) and models else models) or name


def find_label(row: Record, asked: str | None) -> Cell:
    """Return the choice or its score; None if the answer could not be parsed."""
    data = row.get("data")
    if not isinstance(data, Mapping):
        return None
    found = get_field(data, asked) if asked else None
    found = int(found) if isinstance(found, bool) else found
    return None if found == "__invalid__" else found


FORMAT = Format("openai_evals", __doc__, JSON, parse, matches=matches)
