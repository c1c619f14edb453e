"""Measure how much workers agree, and explain the figures.

crowdwise agreement votes.csv
crowdwise agreement ratings.csv --level ordinal --classes bad,fair,good
crowdwise agreement votes.csv --seed 1 -o agreement.json
"""

import textwrap
import time
from argparse import ArgumentParser, Namespace
from functools import partial
from typing import TYPE_CHECKING

from crowdwise.cli.numbers import seed, whole
from crowdwise.cli.options import add_input_options, read_input
from crowdwise.cli.outcome import say
from crowdwise.cli.tables import (
    add_confidence_option,
    add_output_options,
    align,
    between,
    number,
    width,
    write_table,
)
from crowdwise.errors import AnnotationError, explain

if TYPE_CHECKING:
    import pandas as pd

LEVELS = ("nominal", "ordinal", "interval", "ratio")


def add_arguments(parser: ArgumentParser) -> None:
    add_input_options(parser)
    add_output_options(parser, aligned=True)
    group = parser.add_argument_group("measuring")
    group.add_argument(
        "--level",
        choices=LEVELS,
        default="nominal",
        help="whether labels are names, ranks, numbers, or numbers with a true zero "
        "(default: %(default)s)",
    )
    add_confidence_option(group)
    group.add_argument(
        "--resamples",
        type=whole(0, 1_000_000),
        default=1000,
        metavar="N",
        help="bootstrap resamples for the intervals; 0 for none (default: %(default)s)",
    )
    group.add_argument("--seed", type=seed, default=0, metavar="N", help="random seed")


def run(args: Namespace) -> int:
    from crowdwise.evaluate import agreement

    annotations = read_input(args)
    if not annotations.n_annotations:
        what = "There are no annotations."
        raise AnnotationError(
            explain(
                what,
                expected="at least one with a label",
                fix="check that it is the right file, and that its labels are not all empty",
            )
        )
    start = time.perf_counter()
    table = agreement(
        annotations,
        level=args.level,
        n_resamples=args.resamples,
        confidence=args.confidence,
        random_state=args.seed,
    )
    write_table(table.reset_index(), args, partial(show, confidence=args.confidence))
    say(args, f"agreement measured in {time.perf_counter() - start:.1f} s")
    return 0


def show(table: "pd.DataFrame", confidence: float) -> str:
    """Show each figure with its meaning below it."""
    head = ["measure", "value", f"{confidence:.0%} interval", "tasks"]
    rows = [
        [row.measure, number(row.value), between(row.low, row.high), f"{row.n_tasks:,}"]
        for row in table.itertuples()
    ]
    lines = align([head, *rows], right={1, 3}).splitlines()
    wrap = partial(textwrap.fill, width=width(), initial_indent="  ", subsequent_indent="  ")
    texts = [
        f"{line}\n{wrap(text)}" for line, text in zip(lines[1:], table["reading"], strict=True)
    ]
    return "\n".join([lines[0], *texts])
