"""List the methods of truth inference, or explain one of them.

crowdwise methods
crowdwise methods DawidSkene
"""

import inspect
from argparse import ArgumentParser, Namespace
from typing import Any

from crowdwise.cli.method import find_method
from crowdwise.cli.tables import columns_of


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="method to explain in full")


def run(args: Namespace) -> int:
    from crowdwise import aggregate

    if args.name is not None:
        print(explained(find_method(args.name)))
        return 0
    lines = [[name, first_line(getattr(aggregate, name))] for name in aggregate.__all__]
    print(columns_of(lines, right=set()))
    return 0


def first_line(method: Any) -> str:
    """What a method does, in one line."""
    return (inspect.getdoc(method) or "").partition("\n")[0]


def explained(method: Any) -> str:
    """A method's name, parameters with their defaults, and whole documentation."""
    return f"{method.__name__}{inspect.signature(method)}\n\n{inspect.getdoc(method)}"
