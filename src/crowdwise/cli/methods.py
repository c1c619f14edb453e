"""List the methods of a kind, or explain one of them.

crowdwise methods
crowdwise methods --kind learn
crowdwise methods DawidSkene
"""

import inspect
from argparse import ArgumentParser, Namespace

from crowdwise.cli.options import KINDS, find_method, method_names
from crowdwise.cli.tables import align


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="method to explain")
    parser.add_argument(
        "--kind",
        choices=KINDS,
        default="aggregate",
        help="truth inference, classifiers, or embeddings (default: %(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")


def run(args: Namespace) -> int:
    if args.name is not None:
        methods = [find_method(args.name, tuple(KINDS))]
    else:
        methods = [find_method(name, (args.kind,)) for name in method_names(args.kind)]
    if args.json:
        import json

        facts = [{"name": m.__name__, "about": first_line(m)} for m in methods]
        print(json.dumps(facts, indent=1))
    elif args.name is not None:
        print(explain_method(methods[0]))
    else:
        print(align([[m.__name__, first_line(m)] for m in methods], right=set()))
    return 0


def first_line(method: type) -> str:
    """Return what a method does, in one line."""
    return (inspect.getdoc(method) or "").partition("\n")[0]


def explain_method(method: type) -> str:
    """Show a method's name, parameters with defaults, and documentation."""
    signature = inspect.signature(method)
    bare = [one.replace(annotation=one.empty) for one in signature.parameters.values()]
    usage = signature.replace(parameters=bare, return_annotation=signature.empty)
    return f"{method.__name__}{usage}\n\n{inspect.getdoc(method)}"
