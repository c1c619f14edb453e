"""Rerun a published table and show our figures beside the paper's.

crowdwise bench --list
crowdwise bench speelfc-table2
crowdwise bench lia-table2 --redundancy 2,5,10 --seeds 5
crowdwise bench lia-table2 --with mypackage:MyMethod
crowdwise bench all --quick
"""

import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Protocol

from crowdwise.cli.numbers import count
from crowdwise.cli.outcome import say
from crowdwise.errors import FileError, explain

HARNESS = "crowdbench"  # a package in the folder benchmarks/ of the repository, not in the wheel


class TableLike(Protocol):
    """The parts of a table that the flags need: the names of its rows and columns."""

    @property
    def rows(self) -> Mapping[str, object]: ...

    @property
    def columns(self) -> Mapping[str, object]: ...


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("tables", metavar="TABLE", nargs="*", help="tables to run, or all")
    parser.add_argument("--list", action="store_true", help="list the tables")
    group = parser.add_argument_group("choosing")
    group.add_argument("--rows", metavar="A,B,…", help="only these methods")
    group.add_argument("--columns", metavar="A,B,…", help="only these data sets")
    group.add_argument(
        "--redundancy", metavar="2,5,…", help="only columns with this many labels per task"
    )
    group.add_argument(
        "--with",
        dest="others",
        metavar="PKG:CLASS",
        action="append",
        default=[],
        help="another estimator, as an extra row; may be repeated",
    )
    group.add_argument("--seeds", type=count, metavar="N", help="runs per figure")
    group.add_argument(
        "--quick", action="store_true", help="few seeds: a quick check, not a result"
    )
    group = parser.add_argument_group("running")
    group.add_argument("--jobs", type=count, default=2, help="parallel runs (default: 2)")
    group.add_argument("--again", action="store_true", help="discard earlier runs")
    group.add_argument(
        "-o",
        "--output",
        metavar="FOLDER",
        default="bench-results",
        help="folder for results; runs found there are not repeated (default: %(default)s)",
    )


def run(args: Namespace) -> int:
    bench = harness()

    if args.list or not args.tables:
        for name in bench.names():
            print(f"{name:<24} {bench.table(name).title}")
        return 0
    empty = []
    for name in bench.names() if args.tables == ["all"] else args.tables:
        start = time.monotonic()
        results = bench.run_table(
            name,
            args.output,
            rows=rows(bench.table(name), args),
            columns=columns(bench.table(name), args),
            seeds=args.seeds,
            quick=args.quick,
            others=args.others,
            jobs=args.jobs,
            again=args.again,
            command=command_of(name, args),
            tell=lambda text: say(args, text),
        )
        print(results.file.with_suffix(".md").read_text(encoding="utf-8"))
        say(args, f"{name}: {time.monotonic() - start:.0f} s; {results.file}")
        empty += [] if results.has_figures else [name]
    if empty:
        raise FileError(
            explain(
                f"no cell of {', '.join(empty)} has a figure.",
                expected="at least one figure of every table",
                fix="fetch the missing data, or choose other cells; the reasons are above",
            )
        )
    return 0


def harness() -> ModuleType:
    """Import the tables and their runner from the checkout around this folder or package."""
    here = [Path.cwd(), Path(__file__).resolve().parent]
    places = [folder / "benchmarks" for start in here for folder in (start, *start.parents)]
    found = next((place for place in places if (place / HARNESS / "__init__.py").is_file()), None)
    if found is None:
        raise FileError(
            explain(
                "the published tables are not installed with the package.",
                searched=" and ".join(map(str, here)) + ", and the folders above",
                expected=f"a checkout of the repository, with benchmarks/{HARNESS}",
                fix="clone the repository of crowdwise and run the command there",
            )
        )
    if str(found) not in sys.path:
        sys.path.insert(0, str(found))
    return import_module(HARNESS)


def rows(table: TableLike, args: Namespace) -> list[str] | None:
    """Return the rows that the flags choose, None for all; --with adds a class as a row."""
    classes = {spec.partition(":")[2]: spec for spec in args.others}
    chosen = split_names(args.rows, [*table.rows, *args.others, *classes])
    return chosen and [name if name in table.rows else classes.get(name, name) for name in chosen]


def columns(table: TableLike, args: Namespace) -> list[str] | None:
    """Return the columns that the flags choose, None for all."""
    chosen = split_names(args.columns, table.columns)
    if args.redundancy is None:
        return chosen
    kept = {f"R={number.strip()}" for number in args.redundancy.split(",")}
    return [name for name in chosen or table.columns if kept & set(name.split())]


def split_names(text: str | None, known: Iterable[str]) -> list[str] | None:
    """Split a comma-separated list of names; known names may contain commas themselves."""
    if text is None:
        return None
    found, rest = [], text.strip()
    while rest:
        fits = [name for name in known if rest == name or rest.startswith(f"{name},")]
        name = max(fits, key=len, default=rest.partition(",")[0].strip())
        found.append(name)
        rest = rest[len(name) :].lstrip(" ,")
    return found


def command_of(name: str, args: Namespace) -> str:
    """Return the command that reproduces the same figures."""
    flags = {
        "--rows": args.rows,
        "--columns": args.columns,
        "--redundancy": args.redundancy,
        "--seeds": args.seeds,
    }
    words = [f'{flag} "{value}"' for flag, value in flags.items() if value is not None]
    words += ["--quick"] if args.quick else []
    words += [f"--with {other}" for other in args.others]
    return " ".join(["crowdwise bench", name, *words])
