"""List the methods of a kind, or explain one of them.

crowdwise methods
crowdwise methods --kind learn
crowdwise methods DawidSkene
"""

import inspect
from argparse import ArgumentParser, Namespace
from typing import Any

from crowdwise.cli.method import KINDS, find_method, names_of
from crowdwise.cli.tables import columns_of


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="method to explain in full")
    parser.add_argument(
        "--kind",
        choices=KINDS,
        default="aggregate",
        help="from labels alone, classifiers from features, or embeddings (default: %(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="JSON, for machines")


def run(args: Namespace) -> int:
    if args.name is not None:
        methods = [find_method(args.name, tuple(KINDS))]
    else:
        methods = [find_method(name, (args.kind,)) for name in names_of(args.kind)]
    if args.json:
        import json

        facts = [{"name": m.__name__, "about": first_line(m)} for m in methods]
        print(json.dumps(facts, indent=1))
    elif args.name is not None:
        print(explained(methods[0]))
    else:
        print(columns_of([[m.__name__, first_line(m)] for m in methods], right=set()))
    return 0


def first_line(method: Any) -> str:
    """What a method does, in one line."""
    return (inspect.getdoc(method) or "").partition("\n")[0]


def explained(method: Any) -> str:
    """A method's name, parameters with their defaults, and whole documentation."""
    return f"{method.__name__}{inspect.signature(method)}\n\n{inspect.getdoc(method)}"
