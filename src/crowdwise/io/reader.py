"""Files in: whatever a labeling tool exports, as annotations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from crowdwise.annotations.frames import as_narwhals, take_series
from crowdwise.annotations.table import Annotations
from crowdwise.errors import CrowdwiseError, FormatError, ParameterError, explain
from crowdwise.io.clean import build
from crowdwise.io.containers import CONTAINERS, from_value, open_content
from crowdwise.io.content import Content, Long, Matrix, Options, Table
from crowdwise.io.files import find_files
from crowdwise.io.formats import FORMATS, Format
from crowdwise.io.formats._rows import choose
from crowdwise.io.formats.wide import may_be_wide
from crowdwise.io.index import with_index
from crowdwise.io.recognize import REQUIRED
from crowdwise.io.values import as_whole, coded, is_whole

# What a parser raises on content that only looks like its format.
MALFORMED = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


def read(
    path: Any,
    format: str | None = None,
    *,
    task: str | None = None,
    worker: str | None = None,
    label: str | None = None,
    weight: str | None = None,
    time: str | None = None,
    gold: str | None = None,
    question: str | None = None,
    missing: Any = "auto",
    rejected: bool = False,
    repeats: str = "all",
    tasks: Any = None,
    workers: Any = None,
    classes: Any = None,
) -> Annotations:
    """Read annotations from a file of any known format.

    What is in the file, and which column plays which part, is recognised; ``notes`` of the
    result say what was taken for what, and what was left out. Whatever is given here
    overrules that.

    In CSV and TSV only an empty cell is missing, in JSON only ``null``: "NA" and "None" are
    labels. A column of a text file holds integers if every value in it is a whole number
    without leading zeros (``7`` or ``7.0``), otherwise text. JSON and Parquet keep their types.

    Parameters
    ----------
    path : path, list of paths, binary stream, frame, or what json.loads returns
        A file, plain, gzip or zip; or a folder of files of one format, whose rows are put
        together. An export that is in memory already is taken as it is.
    format : str, optional
        A name in ``crowdwise.io.formats.FORMATS``, or a kind of file: csv, tsv, json, jsonl,
        parquet, npy.
    task, worker, label, weight, time, gold : str, optional
        Names of the columns, or fields such as ``meta.id`` of JSON records. In a wide table
        a pattern such as ``worker="rater_*"`` names the columns of workers.
    question : str, optional
        Which question to read, where an export has several.
    missing : value or list of values, default="auto"
        Labels that mean "no label". In a wide table, -1 does by default.
    rejected : bool, default=False
        Also take what the platform rejected (MTurk, Toloka) or calls tainted (Appen).
    repeats : {"all", "first", "last", "majority"}, default="all"
        What to keep when a worker labels a task more than once.
    tasks, workers, classes : array-like, optional
        All names, in the order wanted; any other name is refused.
    """
    options = Options(
        task, worker, label, weight, time, gold, question, _missing(missing), rejected
    )
    layout, container = _named(format)
    contents = _one_array(_contents(path, container), question)
    chosen = layout or _recognised(contents[0], options) or _usual(contents[0])
    names = {"tasks": tasks, "workers": workers, "classes": classes}
    given = {key: value for key, value in names.items() if value is not None}
    return _built(contents, chosen, options, given, repeats)


def read_frame(frame: Any) -> Annotations:
    """Take a frame for what a file with its columns would be, or else for a wide table.

    Unlike in a file, a first column whose name does not say so is not the tasks': those have
    a place in a frame, its index.
    """
    whole = _as_pandas(frame)
    content, forms = with_index(whole), {form.name: form for form in FORMATS}
    wide = forms.pop("wide")
    if set(REQUIRED) <= set(content.columns):
        return _built([content], forms["long"], Options(), {}, "all")
    form = next((form for form in forms.values() if _looks_like(form, content)), None)
    if form is None:
        content = with_index(whole, always=True)
        form = wide if may_be_wide(content) else forms["long"]
    return _built([content], form, Options(), {}, "all")


def _built(
    contents: list[Content], form: Format, options: Options, given: Mapping[str, Any], repeats: str
) -> Annotations:
    """The annotations of content whose format is known."""
    long = _together([_parsed(content, form, options) for content in contents], form)
    return build(long, options, given, repeats, contents[0].name)


def _named(format: str | None) -> tuple[Format | None, str | None]:
    """The layout or the kind of file that a name means."""
    if format is None:
        return None, None
    plain = format.lower().replace("-", "_").replace(" ", "_")
    layouts = {form.name: form for form in FORMATS}
    if plain not in {*layouts, *CONTAINERS}:
        known = ", ".join([*layouts, *CONTAINERS])
        raise ParameterError(explain(f"format={format!r} is unknown.", expected=known))
    return layouts.get(plain), plain if plain in CONTAINERS else None


def _missing(missing: Any) -> Any:
    """The values that mean "no label", text for numbers included; "auto" as it is."""
    if isinstance(missing, str) and missing == "auto":
        return missing
    values = list(missing) if isinstance(missing, list | tuple | set) else [missing]
    return values + [as_whole(value) for value in values if is_whole(value)]


def _contents(source: Any, container: str | None) -> list[Content]:
    """What a path, a stream, a frame or an object holds; several for several files."""
    source = _as_pandas(source)
    if isinstance(source, pd.DataFrame):
        return [with_index(source)]
    paths = isinstance(source, list | tuple) and source and isinstance(source[0], str | Path)
    if isinstance(source, Mapping | list) and not paths:
        return [from_value(source, "The export", "export")]
    return [open_content(file, container) for file in find_files(source)]


def _as_pandas(source: Any) -> Any:
    """A frame of any make as a pandas frame; anything else as it is."""
    if isinstance(source, pd.DataFrame):
        return source
    frame = as_narwhals(source)  # of polars or Arrow, else perhaps of Hugging Face
    if frame is not None:
        return pd.DataFrame({name: take_series(frame, name) for name in frame.columns})
    return source.to_pandas() if hasattr(source, "to_pandas") else source


def _one_array(contents: list[Content], question: str | None) -> list[Content]:
    """One of several arrays in an archive; any other content as it is."""
    if len(contents) < 2 or not all(isinstance(content, Matrix) for content in contents):
        return contents
    by_stem = {content.stem: content for content in contents}
    return [by_stem[choose(question, by_stem, contents[0].name, "array")]]


def _recognised(content: Content, options: Options) -> Format | None:
    """The first format that the content looks like, if there is one."""
    if isinstance(content, Table) and "*" in (options.worker or ""):
        return _named("wide")[0]
    named = options.worker or options.asked
    for form in FORMATS:
        if not (form.name == "wide" and named) and _looks_like(form, content):
            return form
    return None


def _usual(content: Content) -> Format:
    """What a table that looks like no format is taken for, so that errors name its columns."""
    if isinstance(content, Table):
        return next(form for form in FORMATS if form.name == "long")
    raise FormatError(
        explain(
            f"{content.name} is of no known format.",
            expected="a table, {task: {worker: label}}, or the export of a labeling tool",
            fix=f"name the format: {', '.join(form.name for form in FORMATS)}",
        )
    )


def _looks_like(form: Format, content: Content) -> bool:
    try:
        return form.matches(content)
    except MALFORMED:
        return False


def _parsed(content: Content, form: Format, options: Options) -> Long:
    """The content as a long table; whatever trips a parser up is an error about the file."""
    try:
        long = form.parse(content, options)
    except CrowdwiseError:
        raise
    except MALFORMED as error:
        raise FormatError(
            explain(
                f"{content.name} cannot be read as {form.name}.",
                first=f"{type(error).__name__}: {error}".splitlines()[0],
                expected=form.about,
                fix="name another format, or the columns: task=, worker=, label=",
            )
        ) from error
    if not len(long.frame):
        raise FormatError(
            explain(
                f"{content.name} has no annotations.",
                first="; ".join(long.notes),
                expected=f"at least one row ({form.about})",
            )
        )
    return long


def _together(longs: list[Long], form: Format) -> Long:
    """The rows of several files as one table."""
    first = longs[0]
    notes = tuple(dict.fromkeys(note for long in longs for note in long.notes))
    opening = f"read as {form.name}"
    if len(longs) == 1:
        return replace(first, notes=(opening, *notes))
    roles = [role for role in first.frame if all(role in long.frame for long in longs)]
    cells = {r: [x for long in longs for x in long.frame[r].astype(object)] for r in roles}
    frame = pd.DataFrame({role: coded(values, role) for role, values in cells.items()})
    names = {
        key: list(dict.fromkeys(name for long in longs for name in long.names[key]))
        for key in first.names
    }
    notes = (f"{opening}, {len(longs)} files", *notes)
    return replace(first, frame=frame, notes=notes, names=names)
