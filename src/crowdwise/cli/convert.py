"""Turn annotations of any known format into another one.

crowdwise convert export.json votes.csv --question sentiment
crowdwise convert votes.csv votes.parquet
crowdwise convert votes.csv - --to nested > answers.json
"""

import sys
from argparse import ArgumentParser, Namespace

from crowdwise.cli.options import add_input_options, read_input
from crowdwise.cli.outcome import say
from crowdwise.io.write import WRITERS, write_annotations


def add_arguments(parser: ArgumentParser) -> None:
    add_input_options(parser)
    parser.add_argument("output", help="file to write; its ending says the kind; - is the screen")
    parser.add_argument(
        "--to", choices=WRITERS, metavar="KIND", help=f"kind to write: {', '.join(WRITERS)}"
    )


def run(args: Namespace) -> int:
    annotations = read_input(args)
    target = sys.stdout if args.output == "-" else args.output
    write_annotations(target, annotations, args.to)
    say(args, f"{annotations.n_annotations:,} annotations written")
    return 0
