"""Show all of it at work on a simulated classroom, and write a report.

crowdwise demo
crowdwise demo -o tour --seed 3
crowdwise demo --json
"""

import sys
import time
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from crowdwise.cli.outcome import say

if TYPE_CHECKING:
    import pandas as pd


def add_arguments(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("writing")
    group.add_argument(
        "-o", "--output", metavar="FOLDER", default="demo", help="(default: %(default)s)"
    )
    group.add_argument("--json", action="store_true", help="JSON on the screen, for machines")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="(default: %(default)s)")


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
    print(aligned(table))
    print(NEXT.format(folder=args.output))
    return 0


def aligned(table: "pd.DataFrame") -> str:
    """What was labelled, by whom, and how much of it is right."""
    from crowdwise.cli.tables import between, columns_of, number

    head = ["", "method", "right", "95% interval", "balanced", "rarest class found", "seconds"]
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
                number(row["rare_recall"]),
                number(row["seconds"], 1),
            ]
        )
        last = what
    return columns_of(rows, right={2, 4, 5, 6})


NEXT = """
Open {folder}/report.html in a browser. With files of your own:
  crowdwise report {folder}/votes.csv --truth {folder}/truth.csv -o report.html
  crowdwise aggregate {folder}/votes.csv -o labels.csv
  crowdwise fit {folder}/votes.csv --features {folder}/features.csv -o model.crowdwise"""
