"""Read, in stages: open, recognize, parse, build."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from typing import Any

import pandas as pd

from crowdwise.annotations import Annotations
from crowdwise.annotations.frames import refuse_values
from crowdwise.annotations.grouping import find_words, list_missing
from crowdwise.annotations.names import is_whole, parse_whole
from crowdwise.errors import CrowdwiseError, FormatError, ParameterError, explain, listing
from crowdwise.io.build import LongTable, build_annotations, join_tables
from crowdwise.io.document import Document, Matrix, ReadOptions, Table
from crowdwise.io.formats import FORMATS, long, wide
from crowdwise.io.formats.collect import choose_question
from crowdwise.io.formats.refused import REFUSED
from crowdwise.io.frames import as_pandas, from_pandas
from crowdwise.io.open import CONTAINERS, find_files, open_document
from crowdwise.io.recognize import MALFORMED, REQUIRED, Format, recognize_format
from crowdwise.io.typed_files import parse_value
from crowdwise.io.values import Cell
from crowdwise.typing import Names

BY_NAME = {form.name: form for form in FORMATS}
DEFAULTS = ReadOptions()
Declared = Mapping[str, Names]  # tasks, workers or classes declared by the caller


def read(
    path: object,
    format: str | None = None,
    *,
    task: str | None = None,
    worker: str | None = None,
    label: str | None = None,
    weight: str | None = None,
    time: str | None = None,
    gold: str | None = None,
    score: str | None = None,
    question: str | None = None,
    missing: Cell = "auto",
    rejected: bool = False,
    repeats: str = "all",
    tasks: Names | None = None,
    workers: Names | None = None,
    classes: Names | None = None,
) -> Annotations:
    """Read annotations from a file of any known format.

    The format and the roles of the columns are recognized; ``notes`` of the result say how they
    were understood, and what was left out. Whatever is given here overrides that.

    An empty cell is missing, and so are ``null`` in JSON and labels that are the text NA, N/A,
    nan, None, null or the like; a note says how many there were. A column of a text file is
    read as integers if every value in it is a whole number without leading zeros (``7`` or
    ``7.0``), otherwise as text. JSON and Parquet keep their types.

    Parameters
    ----------
    path : path, list of paths, binary stream, frame, list of triples, or what json.loads returns
        A file, plain, gzip or zip; or a folder of files of one format, whose rows are
        combined. An export that is already in memory is used as it is.
    format : str, optional
        A name in ``crowdwise.io.formats.FORMATS``, or a kind of file: csv, tsv, json, jsonl,
        parquet, npy.
    task, worker, label, weight, time, gold : str, optional
        Names of columns, or of fields such as ``meta.id`` in JSON records. In a wide table,
        a pattern such as ``worker="rater_*"`` selects the columns of workers.
    score : str, optional
        Column of a long table with the number behind each label.
    question : str, optional
        The question to read, if an export has several.
    missing : value or list of values, default="auto"
        Labels that mean "no label", instead of NA, None and the like and, in a wide table,
        -1. With None, only empty cells are missing, and NA is a class, as it is if ``classes``
        includes it.
    rejected : bool, default=False
        Also read what the platform rejected (MTurk, Toloka) or calls tainted (Appen).
    repeats : {"all", "first", "last", "majority"}, default="all"
        What to keep when a worker labels a task more than once.
    tasks, workers, classes : array-like, optional
        All names, in order; any other name is refused.
    """
    roles = {"task": task, "worker": worker, "label": label, "weight": weight, "time": time}
    refuse_values({**roles, "gold": gold, "score": score, "question": question})
    unlabeled = _list_missing(missing)
    words = find_words(unlabeled, [] if classes is None else classes)
    form, container = _find_format(format)
    options = ReadOptions(
        task, worker, label, weight, time, gold, question, unlabeled, rejected, words, bool(form)
    )
    options = replace(options, score=score)
    documents = _choose_array(_open_all(path, container), question)
    form = form or _guess_format(documents[0], options)
    names = {"tasks": tasks, "workers": workers, "classes": classes}
    declared = {key: own for key, own in names.items() if own is not None}
    return _parse_and_build(documents, form, options, declared, repeats)


def read_frame(frame: Any) -> Annotations:
    """Read a frame like a file with its columns, or else as a wide table.

    Unlike in a file, an unrecognized first column does not name the tasks: their place is
    the frame's index.
    """
    whole = as_pandas(frame)
    document = from_pandas(whole)
    if set(REQUIRED) <= set(document.columns):
        return _parse_and_build([document], long.FORMAT)
    narrow = [form for form in FORMATS if form is not wide.FORMAT]
    form = recognize_format(document, [*REFUSED, *narrow])
    if form is None:
        document = from_pandas(whole, always=True)
        form = wide.FORMAT if wide.may_be_wide(document) else long.FORMAT
    return _parse_and_build([document], form)


def _list_missing(missing: Cell) -> Cell:
    """List the values that mean "no label", including text for numbers; "auto" is unchanged."""
    if isinstance(missing, str) and missing == "auto":
        return missing
    values = list_missing(missing)
    return values + [parse_whole(value) for value in values if is_whole(value)]


def _find_format(name: str | None) -> tuple[Format[Any] | None, str | None]:
    """Find the format or the kind of file with this name."""
    if name is None:
        return None, None
    plain = name.lower().replace("-", "_").replace(" ", "_")
    if plain not in {*BY_NAME, *CONTAINERS}:
        known = ", ".join([*BY_NAME, *CONTAINERS])
        raise ParameterError(
            explain(
                f"format={name!r} is unknown.",
                expected=known,
                fix="leave it out to have the format recognized",
            )
        )
    return BY_NAME.get(plain), plain if plain in CONTAINERS else None


def _open_all(source: Any, container: str | None) -> list[Document]:
    """Open a path, a stream, a frame or an object; several documents for several files."""
    if not isinstance(source, str | PathLike):
        source = as_pandas(source)
    if isinstance(source, pd.DataFrame):
        return [from_pandas(source)]
    paths = isinstance(source, list | tuple) and source and isinstance(source[0], str | PathLike)
    if isinstance(source, Mapping | list) and not paths:
        return [parse_value(source, "The export", "export")]
    return [open_document(file, container) for file in find_files(source)]


def _choose_array(documents: list[Document], question: str | None) -> list[Document]:
    """Choose one of several arrays in an archive; other documents are returned unchanged."""
    if len(documents) < 2 or not all(isinstance(document, Matrix) for document in documents):
        return documents
    stems = [document.stem for document in documents]
    names = stems if len(set(stems)) == len(stems) else [document.name for document in documents]
    by_name = dict(zip(names, documents, strict=True))
    return [by_name[choose_question(question, by_name, documents[0].name, "array")]]


def _guess_format(document: Document, options: ReadOptions) -> Format[Any]:
    """Guess the format of a document; a table of no known format counts as long.

    This way an error about a missing column lists those that exist.
    """
    if isinstance(document, Table) and "*" in (options.worker or ""):
        return wide.FORMAT
    named = options.worker or options.asked
    refused = () if options.worker and options.asked else REFUSED
    possible = [form for form in FORMATS if not (form is wide.FORMAT and named)]
    form = recognize_format(document, [*refused, *possible])
    if form is not None:
        return form
    if isinstance(document, Table):
        return long.FORMAT
    raise FormatError(
        explain(
            f"{document.name} is not of a known format.",
            expected="a table, {task: {worker: label}}, or the export of a labeling tool",
            fix=f"name the format: {', '.join(BY_NAME)}",
        )
    )


def _parse_and_build(
    documents: list[Document],
    form: Format[Any],
    options: ReadOptions = DEFAULTS,
    declared: Declared | None = None,
    repeats: str = "all",
) -> Annotations:
    """Parse documents of a known format, and build the annotations."""
    table = join_tables([_parse(document, form, options) for document in documents], form.name)
    table = replace(table, notes=(*table.notes, *_note_same_files(documents, table.notes)))
    return build_annotations(table, options, declared or {}, repeats, documents[0].name)


def _note_same_files(documents: list[Document], notes: tuple[str, ...]) -> tuple[str, ...]:
    """Note files that name the same worker."""
    if not any(note.startswith("worker from") and "file name" in note for note in notes):
        return ()
    stems = [document.stem for document in documents]
    same = [document.name for document in documents if stems.count(document.stem) > 1]
    return (f"files that name the same worker: {listing(same)}",) if same else ()


def _parse(document: Document, form: Format[Any], options: ReadOptions) -> LongTable:
    """Parse a document to a long table; a parser's failure is an error about the file."""
    try:
        table = form.parse(document, options)
    except CrowdwiseError:
        raise
    except MALFORMED as error:
        raise FormatError(
            explain(
                f"{document.name} cannot be read as {form.name}.",
                first=f"{type(error).__name__}: {error}".splitlines()[0],
                expected=form.about,
                fix="name another format, or the columns: task=, worker=, label=",
            )
        ) from error
    if not len(table.frame):
        raise FormatError(
            explain(
                f"{document.name} has no annotations.",
                first="; ".join(table.notes),
                expected=f"at least one row ({form.about})",
                fix="check that it is the right file, and that labels are not all empty",
            )
        )
    return replace(table, notes=(*table.notes, *document.notes))
