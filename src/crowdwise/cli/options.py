"""Flags shared by every command that reads annotations."""

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from crowdwise.annotations import Annotations
from crowdwise.io.formats import FORMATS
from crowdwise.io.gold import add_gold_file
from crowdwise.io.reader import read
from crowdwise.io.values import parse_names

REPEATS = ("all", "first", "last", "majority")
COLUMNS = ("task", "worker", "label", "weight", "time", "gold")


def add_input_options(parser: ArgumentParser) -> None:
    """Add the file to read, and the flags that say how to read it."""
    parser.add_argument("annotations", help="file or folder of annotations; - is standard input")
    group = parser.add_argument_group("reading", "All of this is recognised; a flag overrules it.")
    names = [form.name for form in FORMATS]
    group.add_argument("--format", choices=names, metavar="NAME", help=", ".join(names))
    for role in COLUMNS:
        more = ", or a file as --gold-file" if role == "gold" else ""
        text = f"column that holds the {role}{more}"
        group.add_argument(f"--{role}", metavar="COLUMN", help=text)
    group.add_argument("--question", metavar="NAME", help="which question of a tool's export")
    group.add_argument("--gold-file", metavar="FILE", help="table of task and true label")
    group.add_argument("--classes", metavar="A,B,…", help="all labels there are, in this order")
    group.add_argument("--missing", metavar="VALUE", help="label that means no label")
    group.add_argument(
        "--repeats",
        choices=REPEATS,
        default="all",
        help="what to keep when a worker labels a task more than once (default: %(default)s)",
    )
    group.add_argument("--rejected", action="store_true", help="take rejected annotations too")


def read_input(args: Namespace) -> Annotations:
    """Read what the flags name; say on standard error what was taken for what."""
    source: Any = sys.stdin.buffer if args.annotations == "-" else args.annotations
    options = {name: getattr(args, name) for name in (*COLUMNS, "question", "repeats", "rejected")}
    if args.classes is not None:
        options["classes"] = parse_names(args.classes.split(","))
    if args.missing is not None:
        options["missing"] = args.missing
    if args.gold_file is None and args.gold is not None and Path(args.gold).is_file():
        args.gold_file, options["gold"] = args.gold, None
    annotations = read(source, args.format, **options)
    if args.gold_file is not None:
        annotations = add_gold_file(annotations, args.gold_file)
    if not getattr(args, "quiet", False):
        _tell(annotations)
    return annotations


def _tell(annotations: Annotations) -> None:
    for note in (str(annotations).strip("<>"), *annotations.notes):
        print(note, file=sys.stderr)
    if annotations.n_repeats:
        print(
            f"{annotations.n_repeats:,} annotations repeat a worker on a task and all count; "
            "--repeats first, last or majority keeps one",
            file=sys.stderr,
        )
