"""Tables, printed or in a file."""

import shutil
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from math import isnan
from typing import TYPE_CHECKING, Any

from crowdwise.cli.numbers import level
from crowdwise.screen import printable

if TYPE_CHECKING:
    from argparse import _ArgumentGroup

    import pandas as pd


def add_output_options(parser: ArgumentParser, *, aligned: bool = False) -> None:
    """Add the flags that say where a table goes."""
    group = parser.add_argument_group("writing")
    group.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="write to .csv, .tsv, .json, .jsonl or .parquet, also .gz (default: standard output)",
    )
    group.add_argument("--json", action="store_true", help="print JSON, for programs")
    parser.set_defaults(writes_table=True)
    if aligned:
        text = "print aligned columns, even to a pipe"
        group.add_argument("--table", action="store_true", help=text)


def add_confidence_option(group: "_ArgumentGroup") -> None:
    """Add the flag that sets the confidence level of intervals."""
    group.add_argument(
        "--confidence",
        type=level,
        default=0.95,
        metavar="P",
        help="confidence level of the intervals (default: %(default)s)",
    )


def write_table(
    frame: "pd.DataFrame", args: Namespace, aligned: Callable[[Any], str] | None = None
) -> None:
    """Write a table to the output file if there is one, else to standard output.

    On a terminal, ``aligned`` formats the table; in a pipe it is CSV, or JSON if asked for.
    """
    from crowdwise.io.write import write_labels

    if args.output is not None and args.output != "-":
        write_labels(args.output, frame)
    elif args.json:
        write_labels(sys.stdout, frame, "json")
    elif aligned is not None and (args.table or sys.stdout.isatty()):
        print(printable(aligned(frame)))
    else:
        write_labels(sys.stdout, frame, "csv")


def align(rows: list[list[str]], right: set[int]) -> str:
    """Align rows of text in columns; the columns in ``right`` are flush right."""
    rows = [[printable(cell, keep="") for cell in row] for row in rows]
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(width) if k in right else cell.ljust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def number(value: float, digits: int = 3) -> str:
    """Format a number with few digits, NaN as a dash."""
    return "-" if isnan(value) else f"{value:.{digits}f}"


def between(low: float, high: float, digits: int = 3) -> str:
    """Format an interval with few digits, empty if there is none."""
    return "" if isnan(low) else f"{low:.{digits}f} to {high:.{digits}f}"


def width() -> int:
    """Return how many characters fit on a line."""
    return min(shutil.get_terminal_size((100, 24)).columns, 120)
