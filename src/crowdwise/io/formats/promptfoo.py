"""promptfoo: JSON or JSONL of results; judges are the assertions that a model graded."""

from collections.abc import Mapping

from crowdwise.io.build import LongTable
from crowdwise.io.document import JSON, Document, ReadOptions, Record
from crowdwise.io.formats.collect import Collector, get_field, list_rows
from crowdwise.io.recognize import Format
from crowdwise.io.values import Cell

# Kinds of assertions that are graded by a language model.
GRADED = (
    "llm-rubric", "model-graded-closedqa", "model-graded-factuality", "factuality", "g-eval",
    "answer-relevance", "context-faithfulness", "context-recall", "context-relevance",
    "conversation-relevance", "select-best", "pi", "classifier", "moderation",
)  # fmt: skip


def matches(document: Document) -> bool:
    """Return whether rows have a grading result, or the index of a test."""
    rows = list_results(document)
    return any({"gradingResult", "testIdx"} <= row.keys() for row in rows[:20])


def parse(document: Document, options: ReadOptions) -> LongTable:
    """Return one row for each output and grader; a provider's output for a test is a task."""
    rows = Collector(document.name)
    results = list_results(document)
    names = [(find_provider(row.get("provider")), row.get("promptIdx")) for row in results]
    makers, prompts = (
        {own for own in column if own is not None} for column in zip(*names, strict=True)
    )
    for row, (maker, prompt) in zip(results, names, strict=True):
        task = get_field(row, options.task or "testIdx")
        if options.task is None:  # other things that distinguish outputs
            task = f"{task} {maker}" if len(makers) > 1 else task
            task = f"{task} prompt {prompt}" if len(prompts) > 1 else task
        parts = get_field(row, "gradingResult.componentResults")
        if not isinstance(parts, list) or not parts:
            rows.count_left_out("outputs without a grade")
            continue
        graders = [name_grader(part, options.worker) for part in parts]
        for part, grader in zip(parts, graders, strict=True):
            rubric = f"{grader}: {get_field(part, 'assertion.value')!s:.60}"
            kind = get_field(part, "assertion.type")
            if str(kind).removeprefix("not-") not in GRADED and options.worker is None:
                rows.count_left_out("grades of no model")
                continue
            several = graders.count(grader) > 1  # then each rubric is its own grader
            rows.add(task, rubric if several else grader, find_grade(part))
    return rows.to_long("worker from the grader of an assertion", "label from its score")


def list_results(document: Document) -> list[Record]:
    return list_rows(document, "results.results", "results")


def find_provider(value: Cell) -> Cell:
    """Return a provider's label, else its id."""
    return (value.get("label") or value.get("id")) if isinstance(value, Mapping) else value


def name_grader(part: Record, asked: str | None) -> Cell:
    """Name the grader: as asked, else the assertion's provider, metric or kind."""
    if asked is not None:
        return get_field(part, asked)
    own = get_field(part, "assertion.provider")
    maker = find_provider(own) if own is not None else None
    named = get_field(part, "assertion.metric")
    return " ".join(map(str, filter(None, (maker, named)))) or get_field(part, "assertion.type")


def find_grade(part: Record) -> Cell:
    """Return the score, or whether it passed if there is none."""
    score = part.get("score")
    passed = part.get("pass")
    return int(passed) if score is None and isinstance(passed, bool) else score


FORMAT = Format("promptfoo", __doc__, JSON, parse, matches=matches)
