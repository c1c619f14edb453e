"""Inspect: evaluation logs, .json or .eval; judges are scorers, or models with worker=model."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from crowdwise.io.build import LongTable
from crowdwise.io.document import JSON, Document, ReadOptions, Record, Tree
from crowdwise.io.formats.collect import Collector, get_field, list_rows
from crowdwise.io.recognize import Format
from crowdwise.io.values import Cell

MODEL = "model"  # worker=MODEL uses the evaluated model as the judge and its answer as the label


def matches(document: Document) -> bool:
    """Return whether samples have an id, an epoch, and scores by scorer."""
    rows = list_samples(document)
    return bool(rows) and all(
        {"id", "epoch"} <= row.keys() and isinstance(row.get("scores"), Mapping | None)
        for row in rows[:20]
    )


def parse(document: Document, options: ReadOptions) -> LongTable:
    """Return one row for each sample and scorer; the outputs of an epoch are tasks of their own.

    With ``worker="model"``, a row for each sample: epochs are then several answers by one judge.
    """
    rows = Collector(document.name)
    samples = list_samples(document)
    models = {find_model(document, sample) for sample in samples}
    if options.worker == MODEL:
        for sample in samples:
            task = get_field(sample, options.task or "id")
            rows.add(task, find_model(document, sample), find_answer(sample, options.asked))
            if options.gold is not None:
                rows.add_truth(task, get_field(sample, options.gold))
        return rows.to_long("worker from the model")
    several = len({row.get("epoch") for row in samples}) > 1
    for sample in samples:
        task = get_field(sample, options.task or "id")
        task = f"{task} #{sample.get('epoch')}" if several else task
        for scorer, value in list_scores(sample, options.asked):
            rows.add(task, scorer, value)
        if not sample.get("scores"):
            rows.count_left_out("samples without a score")
    source = str(models.pop()) if len(models) == 1 else ""
    return replace(rows.to_long("worker from the scorer"), source=source)


def list_samples(document: Document) -> list[Record]:
    return list_rows(document, "samples")


def list_scores(sample: Record, asked: str | None) -> Iterator[tuple[str, Cell]]:
    """Yield scorers and their scores; a scorer with several values counts once for each."""
    scores = sample.get("scores") or {}
    for scorer, score in scores.items():
        value = score.get("value") if isinstance(score, Mapping) else score
        value = None if value == {} else value
        parts = value.items() if isinstance(value, Mapping) else [(None, value)]
        for part, own in parts:
            if part is None or asked is None:
                yield scorer if part is None else f"{scorer}/{part}", as_label(own)
            elif part == asked:
                yield scorer, as_label(own)


def find_answer(sample: Record, asked: str | None) -> Cell:
    """Return the model's answer, as extracted by the scorer (or the one asked for)."""
    scores = sample.get("scores") or {}
    chosen = [scores[asked]] if asked in scores else list(scores.values())
    return next((score.get("answer") for score in chosen if isinstance(score, Mapping)), None)


def find_model(document: Document, sample: Record) -> Cell:
    """Return the evaluated model, named in the header of the log or with the output."""
    head = document.value if isinstance(document, Tree) else {}
    return get_field(head, "eval.model") or get_field(sample, "output.model") or document.stem


def as_label(value: Cell) -> Cell:
    """Return the value; None if the scorer gave none."""
    return None if isinstance(value, float) and value != value else value  # noqa: PLR0124  NaN


FORMAT = Format("inspect_ai", __doc__, JSON, parse, matches=matches)
