"""The command line: one file a command, no logic.

A command is a module here and a name in ``COMMANDS``. Its docstring is its help: the first
line says what it does, the rest are examples. It has ``add_arguments(parser)`` and
``run(args)``, and is imported only when it is asked for.
"""

import ast
import pkgutil
import sys
from argparse import SUPPRESS, ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NoReturn

from crowdwise import __version__
from crowdwise.cli.outcome import run_safely, stopped
from crowdwise.errors import explain

COMMANDS = (
    "demo",
    "aggregate",
    "workers",
    "agreement",
    "report",
    "convert",
    "datasets",
    "simulate",
    "methods",
    "bench",
    "fit",
    "predict",
    "embed",
    "compare",
    "completion",
)
ABOUT = "Learn from labels that disagree."
EXAMPLES = """examples:
  crowdwise demo                                 all of it, on a simulated classroom
  crowdwise report votes.csv -o report.html      a page about your labels, to send around
  crowdwise aggregate votes.csv -o labels.csv    one label per task
  crowdwise workers votes.csv                    who is good, who is not
  crowdwise agreement votes.csv                  do workers agree at all?
  crowdwise aggregate --help                     more about a command"""


class Formatter(RawDescriptionHelpFormatter):
    """Leaves examples as they were written, and flags room to stand beside their help."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30)
        self._action_max_length = 16  # or long names of commands stand on a line of their own


class Parser(ArgumentParser):
    """Argparse with errors in our form."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"crowdwise: {explain(message + '.', fix=f'see {self.prog} --help')}\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status: 0, 1 for an error, 2 for wrong usage."""
    try:  # around all of it: what a command imports takes most of its first second
        return _main(sys.argv[1:] if argv is None else list(argv))
    except KeyboardInterrupt:
        return stopped()


def _main(words: list[str]) -> int:
    chosen = next((word for word in words if not word.startswith("-")), None)
    parser = build_parser(chosen)
    try:
        args = parser.parse_args(words)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 0
    if args.command is None:
        parser.print_help(sys.stderr)
        return 2
    return run_safely(command(args.command).run, args)


def build_parser(chosen: str | None) -> Parser:
    """A parser that knows every command by name, and only the chosen one in full."""
    parser = Parser(
        prog="crowdwise",
        description=ABOUT,
        epilog=EXAMPLES,
        parents=[common_options()],
        formatter_class=Formatter,
    )
    parser.add_argument("--version", action="version", version=f"crowdwise {__version__}")
    parser.set_defaults(verbose=False, quiet=False, debug=False)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)
    for name in COMMANDS:
        first, _, rest = docstring(name).partition("\n")
        examples = "\n".join(f"  {line}" for line in rest.strip().splitlines())
        sub = commands.add_parser(
            name,
            help=first.rstrip(".").lower(),
            description=first,
            epilog=f"examples:\n{examples}",
            parents=[common_options()],
            formatter_class=Formatter,
            conflict_handler="resolve",  # a command may have its own --quiet
        )
        if name == chosen:
            command(name).add_arguments(sub)
    return parser


def common_options() -> Parser:
    """Flags that every command takes, before or after its name."""
    common = Parser(add_help=False, argument_default=SUPPRESS)
    group = common.add_argument_group("talking")
    group.add_argument("--verbose", action="store_true", help="show every step on the way")
    group.add_argument("--quiet", action="store_true", help="say nothing but errors")
    group.add_argument("--debug", action="store_true", help="show where an error comes from")
    return common


def command(name: str) -> Any:
    """The module of a command."""
    return import_module(f"crowdwise.cli.{name}")


def docstring(name: str) -> str:
    """The docstring of a command, without importing it and all that it needs."""
    source = pkgutil.get_data("crowdwise.cli", f"{name}.py") or b""
    return ast.get_docstring(ast.parse(source)) or ""
