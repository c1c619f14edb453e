"""Kili: assets with the labels of every person, for jobs that choose categories."""

import json
from collections.abc import Iterator, Mapping

from crowdwise.errors import FormatError, explain
from crowdwise.io.build import LongTable
from crowdwise.io.document import ReadOptions, Record, RecordTable
from crowdwise.io.formats.collect import Collector, choose_question, get_field, get_first
from crowdwise.io.recognize import Format
from crowdwise.io.values import Cell

TASKS = ("externalId", "external_id", "id")
WORKERS = ("author.email", "author.id", "author")
# Labels that are nobody's own answer.
NOT_VOTES = {
    "PREDICTION": "predictions", "INFERENCE": "predictions", "AUTOSAVE": "labels not submitted",
    "REVIEW": "reviews of others' labels",
}  # fmt: skip


def matches(document: RecordTable) -> bool:
    """Return whether any label of an asset has a category for a job."""
    labels = (label for row in document.sample for label in _list_labels(row))
    return any(_find_chosen(answer) for label in labels for _, answer in _list_jobs(label))


def parse(document: RecordTable, options: ReadOptions) -> LongTable:
    """Return one row for each person's latest label of an asset, with one job's category."""
    records = document.records()
    labels = [label for record in records for label in _list_labels(record)]
    jobs = [job for label in labels for job, answer in _list_jobs(label) if _find_chosen(answer)]
    job = choose_question(options.asked, jobs, document.name, "job")
    rows = Collector(document.name)
    for record in records:
        task = get_field(record, options.task) if options.task else get_first(record, TASKS)
        for label in _list_labels(record):
            _add(rows, task, label, job, options)
    notes = ("task from 'externalId'", "worker from 'author'") if not options.task else ()
    return rows.to_long(f"label from job {job!r}", *notes)


def _add(rows: Collector, task: Cell, label: Cell, job: str, options: ReadOptions) -> None:
    if not isinstance(label, Mapping):
        return rows.count_left_out("labels that are not annotations")
    kind = str(label.get("labelType", "")).upper()
    if kind in NOT_VOTES:
        return rows.count_left_out(NOT_VOTES[kind])
    if label.get("isLatestLabelForUser") is False:
        return rows.count_left_out("labels that their author replaced")
    answer = dict(_list_jobs(label)).get(job)
    if isinstance(answer, Mapping) and answer.get("annotations"):
        _refuse_parts(rows.where, job, task)
    worker = get_field(label, options.worker) if options.worker else get_first(label, WORKERS)
    rows.add(task, worker, _find_chosen(answer) or None, get_first(label, ("createdAt",)))
    parts = answer.get("categories") if isinstance(answer, Mapping) else None
    if any(isinstance(one, Mapping) and one.get("children") for one in parts or ()):
        rows.count("labels with answers below the category, which are not read")
    return None


def _list_labels(record: Record) -> list[Cell]:
    given = record.get("labels")
    return given if isinstance(given, list) else []


def _list_jobs(label: Cell) -> Iterator[tuple[str, Cell]]:
    """Yield the jobs of a label with their answers, which some exports have as text."""
    given = label.get("jsonResponse") if isinstance(label, Mapping) else None
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError:
            given = None
    return iter(given.items()) if isinstance(given, Mapping) else iter(())


def _find_chosen(answer: Cell) -> list[Cell]:
    """Return the names of the categories that an answer chooses."""
    given = answer.get("categories") if isinstance(answer, Mapping) else None
    parts = given if isinstance(given, list) else []
    names = [one.get("name") for one in parts if isinstance(one, Mapping)]
    return [name for name in names if name is not None]


def _refuse_parts(where: str, job: str, task: Cell) -> None:
    raise FormatError(
        explain(
            f"{where} is an export of Kili that marks parts of the assets.",
            first=f"asset {task!r}, job {job!r}",
            expected="a category for each asset",
            fix="choose another job, or make each part a task of its own",
        )
    )


FORMAT = Format("kili", __doc__, RecordTable, parse, matches=matches)
