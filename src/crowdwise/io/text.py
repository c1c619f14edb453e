"""Delimited text: CSV, TSV and the like."""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from itertools import islice

import numpy as np
import pandas as pd
from pandas.errors import ParserError, ParserWarning

from crowdwise.annotations.names import unguard
from crowdwise.errors import FormatError, explain, listing, plural
from crowdwise.io.cells import encode_cells
from crowdwise.io.document import SAMPLE, File, Record, Table, explain_read_errors, not_utf8
from crowdwise.typing import Array, Ints

DELIMITERS = ",\t;|"
LONGEST = 1 << 26  # bytes in a line
HEAD = 1 << 18  # bytes read to find the header and to sample the rows
ROWS = 1_000_000  # rows parsed at a time by pandas
BIG = 1 << 24  # bytes from which the compiled loops parse
NO_NUMBER = ["", "NA", "N/A", "NaN", "nan", "null", "None"]  # cells of missing numbers


class TextTable(Table):
    """A delimited file; its header is read at once, its columns on request.

    If ``delimiter`` is not in the header, another one is chosen.
    Only empty cells are missing here; the reader decides whether a label "NA" is.
    """

    untyped = True

    def __init__(self, file: File, delimiter: str | None = None) -> None:
        super().__init__(file.name, file.stem)
        self.file = file
        whole = _read_head(file)
        lines = max(whole.count("\n"), 1)
        self.n_rows = int(file.size / max(len(whole.encode()), 1) * lines)  # an estimate
        text = whole.lstrip("\r\n")
        likely = delimiter if delimiter and delimiter in text.split("\n", 1)[0] else None
        self.delimiter = likely or _guess_delimiter(text)
        rows = _split_cells(text, self.delimiter)
        self.columns = unguard([name.strip() for name in rows[0]])
        self._rows = rows[1:]
        self._refuse_ragged()

    @cached_property
    def sample(self) -> list[Record]:
        places = range(len(self.columns))
        cells = [unguard([row[k] if k < len(row) else "" for row in self._rows]) for k in places]
        rows = zip(*cells, strict=True)
        return [dict(zip(self.columns, [cell or None for cell in r], strict=True)) for r in rows]

    def frame(self, columns: list[str]) -> pd.DataFrame:
        self.refuse_duplicates(columns)
        place = {name: number for number, name in enumerate(self.columns)}
        wanted = {name: place[name] for name in columns}
        self.refuse_too_many(self.n_rows, columns)
        if self.file.size >= BIG and (parsed := self._with_loops(wanted)) is not None:
            return self._unguard(parsed)
        return self._unguard(self._with_pandas(wanted))

    def numbers(self, columns: list[str], name: str | None = None) -> pd.DataFrame:
        """Read columns that are all numbers as such, and column ``name`` as text."""
        wanted = columns if name is None else [name, *columns]
        self.refuse_duplicates(wanted)
        self.refuse_too_many(self.n_rows, wanted)
        place = {own: number for number, own in enumerate(self.columns)}
        with (
            explain_read_errors(self.name),
            _explain_errors(self),
            self.file.open_shown() as handle,
        ):
            frame = pd.read_csv(
                handle,
                sep=self.delimiter,
                header=0,
                names=range(len(self.columns)),
                index_col=False,
                usecols=[place[own] for own in wanted],
                dtype={} if name is None else {place[name]: str},
                keep_default_na=False,
                na_values={place[own]: NO_NUMBER if own != name else [""] for own in wanted},
                encoding="utf-8-sig",
                low_memory=False,
            )
        frame = frame.rename(columns=dict(enumerate(self.columns)))[wanted]
        return frame if name is None else frame.assign(**{name: unguard(frame[name].tolist())})

    def records(self) -> list[Record]:
        whole = self._with_pandas({str(k): k for k in range(len(self.columns))})
        frame = self._unguard(whole).astype(object)
        rows = frame.where(frame.notna(), None).to_numpy()
        return [dict(zip(self.columns, row, strict=True)) for row in rows.tolist()]

    def _unguard(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Remove the apostrophes that keep spreadsheets from running names as formulas."""
        for name, column in frame.items():
            texts = column.cat.categories.tolist()
            if (plain := unguard(texts)) is texts:
                continue
            changed = [own for own, text in zip(plain, texts, strict=True) if own != text]
            if changed:
                names = pd.Index(plain, dtype=object)
                frame[name] = column.cat.rename_categories(names)
                note = f"apostrophes removed from names such as {changed[0]!r}"
                self.notes = (*self.notes, note)
        return frame

    def _refuse_ragged(self) -> None:
        for number, row in enumerate(self._rows, start=1):
            if any(row[len(self.columns) :]):
                raise _ragged_error(self, f"row {number} has {len(row)} cells")

    def _with_pandas(self, wanted: dict[str, int]) -> pd.DataFrame:
        """Parse with pandas, some rows at a time, keeping each distinct text once."""
        parts: dict[str, list[tuple[Ints, Array]]] = {name: [] for name in wanted}
        with (
            explain_read_errors(self.name),
            _explain_errors(self),
            self.file.open_shown() as handle,
        ):
            chunks = pd.read_csv(
                handle,
                sep=self.delimiter,
                header=0,
                names=range(len(self.columns)),
                index_col=False,
                dtype=object,
                keep_default_na=False,
                na_values=[""],
                encoding="utf-8-sig",
                chunksize=ROWS,
                low_memory=False,
            )
            for chunk in chunks:
                for name, place in wanted.items():
                    parts[name].append(pd.factorize(chunk[place].to_numpy()))
        return pd.DataFrame({name: _merge_pieces(part) for name, part in parts.items()})

    def _with_loops(self, wanted: dict[str, int]) -> pd.DataFrame | None:
        """Parse with the compiled loops, on all cores; None where they cannot."""
        places = list(wanted.values())
        columns = encode_cells(self.file, self.delimiter, len(self.columns), places)
        return None if columns is None else pd.DataFrame(dict(zip(wanted, columns, strict=True)))


def _to_categorical(codes: Ints, texts: Array) -> pd.Categorical:
    return pd.Categorical.from_codes(codes, categories=pd.Index(texts, dtype=object))


def _merge_pieces(parts: list[tuple[Ints, Array]]) -> pd.Categorical:
    """Combine the codes and texts of several pieces into one column."""
    place, texts = pd.factorize(np.concatenate([own for _, own in parts]))
    pieces = np.split(place, np.cumsum([len(own) for _, own in parts])[:-1])
    codes = [np.append(new, -1)[old] for new, (old, _) in zip(pieces, parts, strict=True)]
    return _to_categorical(np.concatenate(codes), texts)


def _read_head(file: File) -> str:
    """Read the header and as many lines as fit into the first bytes."""
    with explain_read_errors(file.name), file.open() as handle:
        head = handle.read(HEAD)
        head += handle.readline(LONGEST) if len(head) == HEAD else b""  # no partial line
    if len(head) == HEAD + LONGEST and not head.endswith(b"\n"):
        raise FormatError(
            explain(
                f"A line of {file.name} has more than {LONGEST:,} bytes.",
                expected="a table",
                fix="check the file: it may have lost its line breaks",
            )
        )
    try:
        return head.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise not_utf8(file.name, error) from None


def _split_cells(text: str, delimiter: str) -> list[list[str]]:
    """Split the first rows that are not blank, including the header."""
    usual = csv.field_size_limit(max(len(text), csv.field_size_limit()))  # a cell may be long
    rows = (row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if row)
    try:
        found = list(islice(rows, SAMPLE + 1))
    finally:
        csv.field_size_limit(usual)
    return found[:-1] if len(text) >= HEAD and 2 < len(found) <= SAMPLE else found


def _guess_delimiter(text: str) -> str:
    """Choose the one that splits the header into most columns; a comma if none does."""
    return max(DELIMITERS, key=lambda mark: len(_split_cells(text, mark)[0]))


@contextmanager
def _explain_errors(table: TextTable) -> Iterator[None]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ParserWarning)  # a delimiter at the end of each row
            yield
    except UnicodeDecodeError as error:
        raise not_utf8(table.name, error) from None
    except ParserError as error:
        first = str(error).strip().removeprefix("Error tokenizing data. ")
        raise _ragged_error(table, first) from None


def _ragged_error(table: TextTable, first: str) -> FormatError:
    fix = "correct that row, or write the file again with quotes"
    if len(table.columns) == 1:
        fix = "remove what stands above the line that names the columns"
    return FormatError(
        explain(
            f"{table.name} has a row that does not match its "
            f"{plural(len(table.columns), 'column')}.",
            first=first,
            found=f"columns {listing(table.columns, 3)}",
            expected=f"one cell per column, quotes around text with {table.delimiter!r} in it",
            fix=fix,
        )
    )
