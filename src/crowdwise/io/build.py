"""Build: from the long table that every format becomes, to annotations."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from crowdwise.annotations import Annotations
from crowdwise.annotations.frames import refuse_absent, shorten_columns, to_floats
from crowdwise.annotations.grouping import TAKEN, Aside, count_aside, join_notes, note_words
from crowdwise.annotations.names import is_whole
from crowdwise.annotations.order import as_numbers
from crowdwise.errors import AnnotationError, explain, listing
from crowdwise.io.document import ReadOptions, Table
from crowdwise.io.values import (
    Cell,
    blank_words,
    encode_column,
    encode_values,
    map_values,
    note_names,
    parse_numbers,
)
from crowdwise.typing import Array, Names

NAMES = {"tasks": "task", "workers": "worker", "classes": "label"}
ROLES = ("task", "worker", "label", "gold")
MOST_STEPS = 20  # of a scale with fractions


@dataclass(frozen=True)
class LongTable:
    """One row per annotation: columns task, worker, label; weight, time and gold if known."""

    frame: pd.DataFrame
    notes: tuple[str, ...] = ()
    untyped: tuple[str, ...] = ()  # columns whose text may be whole numbers
    names: Mapping[str, Names] = field(default_factory=dict)  # tasks and workers in their own order
    soft: dict[Hashable, str] | None = None  # column of each class's probability
    guessed: bool = False  # whether columns were identified by their names alone
    added: int = 0  # rows that are not records of the file
    about: pd.DataFrame | None = None  # facts about workers, by name
    source: str = ""  # whose outputs are judged: tasks of other sources are different tasks

    @classmethod
    def from_columns(
        cls,
        table: Table,
        roles: Mapping[str, str],
        notes: tuple[str, ...] = (),
        **computed: pd.Series,
    ) -> LongTable:
        """Take the columns of these roles, plus columns computed from others."""
        columns = {role: name for role, name in roles.items() if role not in computed}
        refuse_absent(columns, table.columns, table.name)
        for role in ("task", "worker", "label"):
            if role not in columns and role not in computed:
                fix = f"name it: {role}='…' in Python, --{role} … in a shell; or another format"
                found = shorten_columns(list(map(str, table.columns)))
                raise AnnotationError.missing_column(role, where=table.name, found=found, fix=fix)
        frame = table.frame(list(columns.values()))
        cells = {role: frame[name] for role, name in columns.items()} | computed
        worth = {r: n for r, n in columns.items() if n != r or r in ("weight", "time", "gold")}
        taken = (f"{role} from column {name!r}" for role, name in worth.items())
        long = cls(pd.DataFrame(cells), (*taken, *notes), ROLES if table.untyped else ())
        if not table.untyped:
            return long
        headers = _find_headers(long.frame, columns)
        if headers.any():
            long = long.drop_rows(headers, "rows that repeat the header")
            kept = {role: encode_values(long.frame[role].astype(object)) for role in long.frame}
            long = replace(long, frame=pd.DataFrame(kept))
        return long

    @classmethod
    def from_annotations(
        cls, annotations: Annotations, notes: tuple[str, ...] = (), *, scale: bool = False
    ) -> LongTable:
        """Convert annotations back to a long table, including tasks and workers without labels.

        ``scale`` says that the order of the classes is meaningful and must be kept.
        """
        columns = {
            "task": (annotations.task, annotations.tasks, False),
            "worker": (annotations.worker, annotations.workers, False),
            "label": (annotations.label, annotations.classes, scale),
        }
        frame = pd.DataFrame(
            {
                role: pd.Categorical.from_codes(
                    codes, pd.Index(names, tupleize_cols=False), ordered=ordered
                )
                for role, (codes, names, ordered) in columns.items()
            }
        )
        declared = {"tasks": annotations.tasks, "workers": annotations.workers}
        return cls(frame, notes, names=declared)

    def name_source(self) -> LongTable:
        """Return the table with the source added to the names of tasks."""
        named = map_values(self.frame["task"], lambda task: f"{self.source} {task}")
        return replace(self, frame=self.frame.assign(task=named))

    def drop_rows(self, rows: Array, what: str) -> LongTable:
        """Drop these rows, with a note that says how many there were."""
        if not rows.any():
            return self
        note = Aside(f"{what} left out", int(rows.sum()))
        kept = self.frame.loc[~rows].reset_index(drop=True)
        return replace(self, frame=kept, notes=(*self.notes, note))


def _find_headers(frame: pd.DataFrame, columns: Mapping[str, str]) -> Array:
    """Find rows that repeat the column names, as when files were concatenated."""
    names = {role: columns[role] for role in ROLES[:3] if role in columns}
    found = np.full(len(frame), len(names) > 1)
    kinds = {role: frame[role].dtype for role in names}
    few = sorted(names, key=lambda role: len(getattr(kinds[role], "categories", frame)))
    for role in few:  # usually a look at few texts is enough
        name, kind = names[role], kinds[role]
        if isinstance(kind, pd.CategoricalDtype) and name not in kind.categories:
            return np.zeros(len(frame), dtype=bool)
        if found.any():
            found &= (frame[role] == name).fillna(False).to_numpy(bool)
    return found


def build_annotations(
    long: LongTable, options: ReadOptions, names: Mapping[str, Names], repeats: str, where: str
) -> Annotations:
    """Give the columns their types, drop missing values, and encode the rest."""
    long = _blank_words(_refuse_lists(long, where), options.words)
    long = _drop_missing(_drop_blank_rows(_parse_types(long)), options.missing)
    long = _parse_times(long, where, asked=options.time is not None)
    long = _check_gold(long, asked=options.gold is not None)
    frame, declared = long.frame, {**long.names, **names}
    for key, known in names.items():
        if long.soft is None or key != "classes":
            frame = frame.assign(**{NAMES[key]: _spell_as_declared(frame[NAMES[key]], known)})
    optional = {role: role for role in ("weight", "time", "gold", "score") if role in frame}
    built = Annotations.from_frame(
        frame,
        weight=optional.get("weight"),
        time=optional.get("time"),
        gold=optional.get("gold"),
        score=optional.get("score"),
        soft=long.soft,
        tasks=declared.get("tasks"),
        workers=declared.get("workers"),
        classes=declared.get("classes"),
        repeats=repeats,
        missing=None,  # missing values are marked already
        where=where,
        notes=long.notes,
    )
    if long.about is not None:
        about = long.about.set_axis(long.about.index.map(str))
        about = about[about.index.isin([str(name) for name in built.workers.tolist()])]
        built = built.with_workers(about) if len(about) else built
    return _account(built, long, repeats)


def _account(built: Annotations, long: LongTable, repeats: str) -> Annotations:
    """Add notes on records that are not annotations, unless they are noted already."""
    notes = (*_note_alone(long), *_note_scores(built))
    if repeats == "all" and built.n_repeats:
        notes += (f"annotations of a task by a worker who had labeled it: {built.n_repeats:,}",)
    if repeats != "all":
        records = len(long.frame) - long.added + count_aside(long.notes)
        left = records - built.n_annotations - count_aside((*built.notes, *notes))
        notes += (Aside("repeated annotations left out", left),) if left else ()
    return replace(built, notes=join_notes((*built.notes, *notes)))


def _note_alone(long: LongTable) -> tuple[str, ...]:
    n = int(_find_alone(long.frame).sum()) - long.added if "gold" in long.frame else 0
    return (Aside("rows with a truth alone", n),) if n else ()


def _note_scores(built: Annotations) -> tuple[str, ...]:
    """Note labels that look like scores, of which each value is a class."""
    classes = built.classes
    values = as_numbers(classes) if len(classes) > MOST_STEPS else None
    if built.soft is not None or values is None or (values == values.round()).all():
        return ()
    return (
        f"labels are {len(classes):,} different numbers, such as {listing(classes, 1)}, "
        "and each is a class: if they are scores, see crowdwise judges",
    )


def _find_alone(frame: pd.DataFrame) -> Array:
    """Find rows that only give the truth of a task."""
    empty = frame["worker"].isna() & frame["label"].isna() & frame["gold"].notna()
    return empty.to_numpy(bool)


def join_tables(tables: list[LongTable], format: str) -> LongTable:
    """Join several files of one format into one table, with notes that say so."""
    if len({table.source for table in tables}) > 1:
        tables = [table.name_source() for table in tables]
    first = tables[0]
    notes = join_notes(note for table in tables for note in table.notes)
    opening = f"read as {format}"
    if len(tables) == 1:
        return replace(first, notes=(opening, *notes))
    roles = list(dict.fromkeys(role for table in tables for role in table.frame))
    absent = [role for role in roles if any(role not in table.frame for table in tables)]
    if "weight" in absent:  # a truth or a time may be missing, a weight may not
        roles.remove("weight")
        notes += ("weight left out: not in every file",)
    cells = {r: [x for table in tables for x in _take_cells(table, r)] for r in roles}
    frame = pd.DataFrame({role: encode_values(values, role) for role, values in cells.items()})
    names = {
        key: list(dict.fromkeys(name for table in tables for name in table.names[key]))
        for key in first.names
    }
    notes = (f"{opening}, {len(tables)} files", *notes)
    added = sum(table.added for table in tables)
    facts = [table.about for table in tables if table.about is not None]
    about = pd.concat(facts) if facts else None
    if about is not None:
        about = about[~about.index.duplicated()]
    return replace(first, frame=frame, notes=notes, names=names, added=added, about=about)


def _take_cells(table: LongTable, role: str) -> Iterable[Cell]:
    frame = table.frame
    return frame[role].astype(object) if role in frame else [None] * len(frame)


def _refuse_lists(long: LongTable, where: str) -> LongTable:
    """Refuse lists and dicts in cells."""
    cells = {r: encode_column(c, r, where) for r, c in long.frame.items() if c.dtype == object}
    return replace(long, frame=long.frame.assign(**cells))


def _blank_words(long: LongTable, words: frozenset[str]) -> LongTable:
    """Replace labels and truths that are words for a missing value."""
    frame = long.frame
    notes = (*long.notes, *(note for role in ROLES[:2] for note in note_names(frame[role], role)))
    for role, what in (("label", "labels"), ("gold", "truths")):
        if role in frame:
            own = frame[role]
            own = encode_column(own) if pd.api.types.is_string_dtype(own.dtype) else own
            column, found = blank_words(own, words)
            frame, notes = frame.assign(**{role: column}), (*notes, *note_words(found, what))
    return replace(long, frame=frame, notes=notes)


def _parse_types(long: LongTable) -> LongTable:
    """Convert text to integers if a whole column allows it; labels and gold together."""
    frame, names = long.frame.copy(deep=False), dict(long.names)
    for key, role in (("tasks", "task"), ("workers", "worker")):
        if role in long.untyped and key in names:
            frame[role], own = parse_numbers(frame[role], pd.Series(names[key], dtype=object))
            names[key] = own.tolist()
        elif role in long.untyped:
            frame[role] = parse_numbers(frame[role])[0]
    if "label" in long.untyped:
        both = [role for role in ("label", "gold") if role in frame]
        for role, column in zip(both, parse_numbers(*(frame[role] for role in both)), strict=True):
            frame[role] = column
    return replace(long, frame=frame, names=names)


def _drop_blank_rows(long: LongTable) -> LongTable:
    blank = long.frame[["task", "worker", "label"]].isna().all(axis=1).to_numpy(bool)
    return long.drop_rows(blank, "blank rows")


def _drop_missing(long: LongTable, missing: Cell) -> LongTable:
    if isinstance(missing, str):  # "auto": empty cells and words, which are marked already
        return long
    found: set[Cell] = set()
    label = map_values(
        long.frame["label"], lambda name: found.add(name) if name in missing else name
    )
    notes = (*long.notes, *_note_unused(long, missing, found))
    return replace(long, frame=long.frame.assign(label=label), notes=notes)


def _note_unused(long: LongTable, missing: Cell, found: set[Cell]) -> tuple[str, ...]:
    """Note texts that were given as missing and do not occur, since they may be misspelled."""
    taken = " ".join(note for note in long.notes if TAKEN in note)  # blanked before
    texts = {value.strip() for value in missing if isinstance(value, str)} - {""}
    if "label" not in long.untyped:  # numbers in a matrix are left out when it is made
        texts = {text for text in texts if not is_whole(text)}
    unused = sorted(text for text in texts if repr(text) not in taken and text not in found)
    return (f"given as missing, but no label: {listing(unused)}",) if unused else ()


def _parse_times(long: LongTable, where: str, *, asked: bool) -> LongTable:
    if "time" not in long.frame:
        return long
    column = long.frame["time"]
    times = to_floats(column)
    if times is None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # such as an unknown time zone
            try:
                times = _to_times(encode_column(column))
            except (ValueError, TypeError, OverflowError, Warning) as error:
                return _drop_times(long, where, error, asked)
    return replace(long, frame=long.frame.assign(time=times))


def _to_times(column: pd.Series) -> pd.Series:
    distinct = pd.to_datetime(pd.Series(column.cat.categories), utc=True, format="mixed")
    codes = column.cat.codes.to_numpy()
    return pd.Series(distinct.reindex(codes).to_numpy(), index=column.index)


def _drop_times(long: LongTable, where: str, error: Exception, asked: bool) -> LongTable:
    if asked:
        raise AnnotationError(
            explain(
                f"{where} has times that cannot be read.",
                first=str(error).splitlines()[0],
                expected="numbers, or dates such as 2024-05-31T12:00:00",
                fix="name another column, or leave time out",
            )
        ) from None
    note = "times left out: they cannot be read"
    return replace(long, frame=long.frame.drop(columns="time"), notes=(*long.notes, note))


def _check_gold(long: LongTable, *, asked: bool) -> LongTable:
    """Leave out gold that was not asked for, unless it is one label per task and in use."""
    if asked or "gold" not in long.frame:
        return long
    known = long.frame.loc[long.frame["gold"].notna(), ["task", "gold"]].astype(object)
    clash = known.drop_duplicates().duplicated("task").any()
    in_use = long.frame["label"].dropna().isin(known["gold"].unique()).any() or not long.guessed
    if len(known) and not clash and in_use:
        return long
    why = "more than one for a task" if clash else "no worker gave these labels"
    notes = (*long.notes, f"gold left out: {why}") if len(known) else long.notes
    notes += _note_alone(long)
    kept = long.frame.loc[~_find_alone(long.frame)].reset_index(drop=True)
    return replace(long, frame=kept.drop(columns="gold"), notes=notes, added=0)


def _spell_as_declared(column: pd.Series, names: Names) -> pd.Series:
    """Return values as the caller writes them: 1 for "1", or "1" for 1."""
    known = list(names)
    by_text = {str(name): name for name in known}
    exact = set(known)
    return map_values(column, lambda own: own if own in exact else by_text.get(str(own), own))
