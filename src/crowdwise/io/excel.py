"""Excel workbooks with one sheet that is not empty."""

from __future__ import annotations

import io
import warnings

import numpy as np
import pandas as pd

from crowdwise.errors import FormatError, MissingExtraError, explain, listing
from crowdwise.io.document import File, FrameTable

ERRORS = ("#N/A", "#REF!", "#VALUE!", "#DIV/0!", "#NAME?", "#NULL!", "#NUM!")
Sheet = list[tuple[object, ...]]


def parse_excel(file: File) -> FrameTable:
    """Read the typed cells of a workbook's only sheet; the first row names the columns."""
    sheets = _read_sheets(file)
    filled = {name: rows for name, rows in sheets.items() if rows}
    if len(filled) != 1:
        raise FormatError(
            explain(
                f"{file.name} is a workbook with {len(filled) or 'no'} sheets that are not empty.",
                found=listing(list(filled)) if filled else "",
                expected="one sheet, with a row of names on top",
                fix="save the sheet with the annotations as CSV, or delete the others",
            )
        )
    (rows,) = filled.values()
    _refuse_errors(rows, file.name)
    width = max(k + 1 for row in rows for k, cell in enumerate(row) if cell is not None)
    grid = np.empty((len(rows), width), dtype=object)
    for number, row in enumerate(rows):
        grid[number, : len(row[:width])] = row[:width]
    names = ["" if cell is None else str(cell).strip() for cell in grid[0]]
    return FrameTable(pd.DataFrame(grid[1:], columns=names), file.name, file.stem)


def _refuse_errors(rows: Sheet, where: str) -> None:
    for number, row in enumerate(rows, start=1):
        wrong = [cell for cell in row if cell in ERRORS]
        if wrong:
            raise FormatError(
                explain(
                    f"{where} has a cell whose formula failed.",
                    first=f"row {number:,}, not counting empty rows: {wrong[0]}",
                    expected="values, or nothing",
                    fix="correct the formula, or clear the cell",
                )
            )


def _read_sheets(file: File) -> dict[str, Sheet]:
    """Read the rows of each sheet, without empty ones."""
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise MissingExtraError.of(f"Reading {file.name}", "openpyxl", "excel") from None
    try:
        with warnings.catch_warnings(action="ignore"):  # about styles and validation
            data = file.read()
            books = [
                load_workbook(io.BytesIO(data), read_only=True, data_only=only)
                for only in (True, False)
            ]
            sheets, formulas = (
                {own.title: list(own.iter_rows(values_only=True)) for own in book.worksheets}
                for book in books
            )
    except Exception as error:  # damage can cause any error
        raise FormatError(
            explain(
                f"{file.name} cannot be read.",
                first=(str(error) or type(error).__name__).splitlines()[0],
                expected="a complete Excel workbook (.xlsx)",
                fix="save it again, or as CSV",
            )
        ) from error
    for name, rows in sheets.items():
        _refuse_unsaved(rows, formulas[name], f"{file.name}, sheet {name!r},")
    return {name: list(filter(_has_cells, rows)) for name, rows in sheets.items()}


def _refuse_unsaved(values: Sheet, formulas: Sheet, where: str) -> None:
    """Refuse formulas without a value, as written by programs that do not compute them."""
    for number, (row, written) in enumerate(zip(values, formulas, strict=False), start=1):
        for value, formula in zip(row, written, strict=False):
            if value is None and formula is not None:
                raise FormatError(
                    explain(
                        f"{where} has a formula without its result.",
                        first=f"row {number:,}: {formula}",
                        expected="values, or formulas that Excel has computed",
                        fix="open the workbook in Excel and save it, or save it as CSV",
                    )
                )


def _has_cells(row: tuple[object, ...]) -> bool:
    return any(cell is not None for cell in row)
