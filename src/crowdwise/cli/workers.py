"""Assess every worker, and flag those who need a second look.

crowdwise workers votes.csv
crowdwise workers votes.csv -o workers.csv
crowdwise workers votes.csv --gold-file truth.csv --min-labels 20
"""

import time
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from crowdwise.cli.numbers import finite, natural
from crowdwise.cli.options import (
    add_input_options,
    add_method_options,
    choose_method,
    read_input,
)
from crowdwise.cli.outcome import say
from crowdwise.cli.tables import (
    add_confidence_option,
    add_output_options,
    align,
    between,
    number,
    write_table,
)
from crowdwise.errors import plural

if TYPE_CHECKING:
    import pandas as pd

MOST_ROWS = 50  # on a terminal


def add_arguments(parser: ArgumentParser) -> None:
    add_input_options(parser)
    add_method_options(parser)
    add_output_options(parser, aligned=True)
    group = parser.add_argument_group("flags")
    group.add_argument(
        "--min-labels",
        type=natural,
        default=10,
        metavar="N",
        help="workers with fewer labels are not assessed (default: %(default)s)",
    )
    group.add_argument(
        "--max-skill",
        type=finite,
        default=0.3,
        metavar="X",
        help="skill below which a worker may be answering at random (default: %(default)s)",
    )
    add_confidence_option(group)


def run(args: Namespace) -> int:
    from crowdwise.evaluate import worker_quality

    model = choose_method(args)
    annotations = read_input(args)
    start = time.perf_counter()
    gold = annotations.gold_labels
    model.fit(annotations, gold)
    quality = worker_quality(
        annotations,
        model,
        gold,
        confidence=args.confidence,
        min_labels=args.min_labels,
        max_skill=args.max_skill,
    )
    write_table(quality.reset_index(), args, show)
    seconds = time.perf_counter() - start
    say(args, f"{summarize(quality)} ({seconds:.1f} s)")
    return 0


def show(quality: "pd.DataFrame") -> str:
    """Show the main columns, flagged workers first, then those with most labels."""
    order = quality.assign(fine=quality["flag"] == "")
    order = order.sort_values(["fine", "flag", "n_labels"], ascending=[True, True, False])
    rows = [["worker", "labels", "accuracy", "", "agreement", "skill", "", "flag"]]
    for _, row in order.head(MOST_ROWS).iterrows():
        rows.append(
            [
                str(row["worker"]),
                f"{row['n_labels']:,}",
                number(row["accuracy"], 2),
                between(row["accuracy_low"], row["accuracy_high"], 2),
                number(row["agreement"], 2),
                number(row["skill"], 2),
                between(row["skill_low"], row["skill_high"], 2),
                row["flag"],
            ]
        )
    text = align(rows, right={1, 2, 4, 5})
    left = len(quality) - MOST_ROWS
    return text if left <= 0 else f"{text}\n… and {left:,} more; -o FILE writes all of them"


def summarize(quality: "pd.DataFrame") -> str:
    """Count the workers with each flag."""
    counts = quality["flag"].value_counts()
    parts = [f"{counts[flag]:,} {flag!r}" for flag in counts.index if flag]
    return f"{plural(len(quality), 'worker')}: " + (", ".join(parts) or "no flags")
