"""Google Forms: the sheet of responses, one row per worker and one column per task."""

import re
from fnmatch import fnmatchcase

from crowdwise.annotations import Annotations
from crowdwise.errors import FormatError, explain, listing
from crowdwise.io.build import LongTable
from crowdwise.io.document import ReadOptions, Table, to_records
from crowdwise.io.formats.collect import Collector
from crowdwise.io.formats.wide import warn_odd_columns
from crowdwise.io.recognize import REQUIRED, Format, normalize_name, recognize_columns

# Google's name for the first column in some languages.
TIMES = ("Timestamp", "Zeitstempel", "Horodateur", "Marca temporal", "Informazioni cronologiche",
         "Carimbo de data/hora", "Tijdstempel", "Sygnatura czasowa", "Отметка времени",
         "タイムスタンプ", "时间戳记")  # fmt: skip
WORKERS = ("emailaddress", "username", "email", "name", "yourname", "worker", "workerid")
looks_like_time = re.compile(r"\d{1,4}[/.-]\d{1,2}[/.-]\d{1,4},? \d{1,2}:\d\d(:\d\d)?.*").fullmatch
looks_like_address = re.compile(r"\s*[^@\s]+@[^@\s]+\.[^@\s]+\s*").fullmatch
looks_like_score = re.compile(r"[\d.,]+ / [\d.,]+").fullmatch


def matches(document: Table) -> bool:
    """Return whether the first column has the times at which a form was submitted."""
    columns = list(document.columns)
    if len(columns) < 2 or columns[0] not in TIMES:
        return False
    long = set(REQUIRED) <= recognize_columns(columns[1:], {}).keys()
    times = [str(row[columns[0]]) for row in document.sample if row.get(columns[0]) is not None]
    return not long and bool(times) and all(map(looks_like_time, times))


def parse(document: Table, options: ReadOptions) -> LongTable:
    """Return one row per nonempty answer; ``task`` may be a pattern for the questions."""
    columns = list(document.columns)
    worker = options.worker or _find_worker(columns) or _find_addresses(document, columns[1:])
    others = [name for name in columns if name not in (columns[0], worker)]
    aside = [name for name in others if _is_score(document, name)]
    tasks = [name for name in others if name not in aside]
    if options.task:
        aside += [name for name in tasks if not fnmatchcase(name, options.task)]
        tasks = [name for name in tasks if name not in aside]
    if not tasks:
        _refuse_no_tasks(document, options)
    frame = document.frame([*tasks, columns[0], *([worker] if worker else [])])
    rows = Collector(document.name)
    for number, row in enumerate(to_records(frame, list(frame.columns)), start=1):
        who = number if worker is None else row[worker]
        for task in [task for task in tasks if row[task] is not None]:
            rows.add(task, who, row[task], row[columns[0]])
    notes = [f"task from {len(tasks):,} columns: {listing(tasks)}"]
    notes += [f"columns that are not tasks: {listing(aside)}"] if aside else []
    whence = "the row number" if worker is None else f"column {worker!r}"
    untyped = ("worker", "label") if document.untyped else ()
    long = rows.to_long(*notes, f"worker from {whence}", untyped=untyped)
    if not options.task:
        built = Annotations.from_frame(long.frame[list(REQUIRED)].dropna(), missing=None)
        warn_odd_columns(built, document.name, "task")
    return long


def _find_worker(columns: list[str]) -> str | None:
    by_plain = {normalize_name(name): name for name in reversed(columns[1:])}
    return next((by_plain[word] for word in WORKERS if word in by_plain), None)


def _find_addresses(table: Table, columns: list[str]) -> str | None:
    """Find a column of e-mail addresses only, whatever its name."""
    for name in columns:
        cells = [str(row[name]) for row in table.sample if row.get(name) is not None]
        if cells and all(map(looks_like_address, cells)):
            return name
    return None


def _is_score(table: Table, name: str) -> bool:
    """Return whether a column of a quiz has points or feedback given by the form itself."""
    if name.endswith((" [Score]", " [Feedback]")):
        return True
    cells = [str(row[name]) for row in table.sample if row.get(name) is not None]
    return bool(cells) and all(map(looks_like_score, cells))


def _refuse_no_tasks(table: Table, options: ReadOptions) -> None:
    raise FormatError(
        explain(
            f"{table.name} is a sheet of Google Forms without a column for a task.",
            found=", ".join(table.columns),
            expected=f"columns like {options.task!r}" if options.task else "a column per task",
            fix="name the task columns: task='Image *'",
        )
    )


FORMAT = Format(
    "google_forms", __doc__, Table, parse, marks=tuple({name} for name in TIMES), matches=matches
)
