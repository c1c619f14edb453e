"""Tour the package on a simulated classroom, and write a report.

crowdwise demo
crowdwise demo -o tour --seed 3
crowdwise demo --json
"""

import sys
import time
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from crowdwise.cli.numbers import seed
from crowdwise.cli.outcome import say
from crowdwise.cli.tables import align, between, number

if TYPE_CHECKING:
    import pandas as pd


def add_arguments(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("writing")
    group.add_argument(
        "-o",
        "--output",
        metavar="FOLDER",
        default="demo",
        help="write files here (default: %(default)s)",
    )
    group.add_argument("--json", action="store_true", help="print JSON, for programs")
    parser.add_argument(
        "--seed", type=seed, default=0, metavar="N", help="random seed (default: %(default)s)"
    )


def run(args: Namespace) -> int:
    from crowdwise.demo import demo
    from crowdwise.io.write import write_labels

    start = time.perf_counter()
    table = demo(
        args.output,
        random_state=args.seed,
        say=lambda text: say(args, f"[{time.perf_counter() - start:5.1f} s] {text}"),
    )
    if args.json:
        write_labels(sys.stdout, table, "json")
        return 0
    print(show(table))
    print(NEXT.format(folder=args.output))
    return 0


def show(table: "pd.DataFrame") -> str:
    """Show what was labeled, by which method, and how much of it is right."""
    head = ["", "method", "accuracy", "95% interval", "balanced", "minority recall", "seconds"]
    rows, last = [head], ""
    for _, row in table.iterrows():
        what = row["labels of"]
        rows.append(
            [
                "" if what == last else what,
                row["method"],
                number(row["accuracy"]),
                between(row["accuracy_low"], row["accuracy_high"], 2),
                number(row["balanced_accuracy"]),
                number(row["minority_recall"]),
                number(row["seconds"], 1),
            ]
        )
        last = what
    return align(rows, right={2, 4, 5, 6})


NEXT = """
Open {folder}/report.html in a browser. With your own files:
  crowdwise report {folder}/votes.csv --truth {folder}/truth.csv -o report.html
  crowdwise aggregate {folder}/votes.csv -o labels.csv
  crowdwise fit {folder}/votes.csv --features {folder}/features.csv -o model.crowdwise"""
