"""Convert annotations from any known format to another.

crowdwise convert export.json votes.csv --question sentiment
crowdwise convert votes.csv votes.parquet
crowdwise convert votes.csv - --to nested > answers.json
"""

import sys
from argparse import ArgumentParser, Namespace

from crowdwise.cli.files import refuse_screen
from crowdwise.cli.options import add_input_options, read_input
from crowdwise.cli.outcome import say
from crowdwise.errors import plural


def add_arguments(parser: ArgumentParser) -> None:
    from crowdwise.io.write import WRITERS

    add_input_options(parser)
    text = "file to write, with an extension that decides the kind; - for standard output"
    parser.add_argument("output", help=text)
    parser.add_argument(
        "--to", choices=WRITERS, metavar="KIND", help=f"kind to write: {', '.join(WRITERS)}"
    )


def run(args: Namespace) -> int:
    from crowdwise.io.write import BINARY, write_annotations

    if args.to in BINARY and sys.stdout.isatty():
        refuse_screen(args.output, f"A file of the kind {args.to}")
    annotations = read_input(args)
    target = sys.stdout if args.output == "-" else args.output
    write_annotations(target, annotations, args.to)
    say(args, f"{plural(annotations.n_annotations, 'annotation')} written")
    return 0
