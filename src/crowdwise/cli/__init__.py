"""The command line: one file per command, no logic.

A command is a module here and a name in ``COMMANDS``. Its docstring is its help: the first
line says what it does, the rest are examples. It defines ``add_arguments(parser)`` and
``run(args)``, and is imported only when needed.
"""

import ast
import pkgutil
import re
import sys
from argparse import SUPPRESS, ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Any, NoReturn

from crowdwise import __version__
from crowdwise.cli.outcome import Stopped, report_interrupt, run_safely
from crowdwise.errors import explain

COMMANDS = (
    "demo",
    "aggregate",
    "workers",
    "agreement",
    "judges",
    "report",
    "plan",
    "serve",
    "connect",
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
  crowdwise demo                                 a tour, on a simulated classroom
  crowdwise report votes.csv -o report.html      a page about your labels to share
  crowdwise aggregate votes.csv -o labels.csv    one label per task
  crowdwise workers votes.csv                    how good each worker is
  crowdwise agreement votes.csv                  how much workers agree
  crowdwise judges scores.csv --gold gold.csv    what a panel of LLM judges is worth
  crowdwise aggregate --help                     more about a command"""


class Formatter(RawDescriptionHelpFormatter):
    """Keeps examples as they are, and leaves room for long flags."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30)
        self._action_max_length = 16  # otherwise long command names get their own line


class Parser(ArgumentParser):
    """An argument parser whose errors look like all others."""

    def error(self, message: str) -> NoReturn:
        choice = re.search(r"invalid choice: '(.*?)' .choose from (.*).", message)
        names = re.findall(r"[\w-]+", choice[2]) if choice else []
        self.refuse(message, get_close_matches(choice[1], names, n=1) if choice else ())

    def refuse(self, message: str, meant: Sequence[str] = ()) -> NoReturn:
        """Exit with an error, and with what may have been meant."""
        fix = f"did you mean {' or '.join(meant)}? See" if meant else "see"
        text = explain(f"{message}.", fix=f"{fix} {self.prog} --help")  # safe to print
        self.exit(2, f"crowdwise: {text}\n")

    def refuse_rest(self, rest: Sequence[str]) -> None:
        """Exit with an error if words are left over that no argument takes."""
        if rest:
            known = re.findall(r"(?<!\S)--[a-z-]+", self.format_help())
            meant = [near for word in rest for near in get_close_matches(word, known, n=1)]
            self.refuse(f"unknown argument: {' '.join(rest)}", meant)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status: 0, 1 for an error, 2 for wrong usage."""
    try:  # around everything: imports take most of a command's first second
        return _main(sys.argv[1:] if argv is None else list(argv))
    except (KeyboardInterrupt, Stopped):
        return report_interrupt()


def _main(words: list[str]) -> int:
    parser = build_parser([word for word in words if not word.startswith("-")][:1])
    try:
        args, rest = parser.parse_known_args(words)
        args.parser.refuse_rest(rest)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 0
    if args.command is None:
        parser.print_help(sys.stderr)
        return 2
    return run_safely(command(args.command).run, args)


def build_parser(chosen: Sequence[str]) -> Parser:
    """Make a parser that knows every command by name, and the chosen ones in full."""
    parser = Parser(
        prog="crowdwise",
        description=ABOUT,
        epilog=EXAMPLES,
        parents=[common_options()],
        formatter_class=Formatter,
    )
    parser.add_argument("--version", action="version", version=f"crowdwise {__version__}")
    parser.set_defaults(verbose=False, quiet=False, debug=False, parser=parser)
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
        sub.set_defaults(parser=sub)
        if name in chosen:
            command(name).add_arguments(sub)
    return parser


def common_options() -> Parser:
    """Make the flags of every command, given before or after its name."""
    common = Parser(add_help=False, argument_default=SUPPRESS)
    group = common.add_argument_group("verbosity")
    group.add_argument("-v", "--verbose", action="store_true", help="show every step")
    group.add_argument("-q", "--quiet", action="store_true", help="show errors only")
    group.add_argument("--debug", action="store_true", help="show the traceback of an error")
    return common


def command(name: str) -> Any:
    """Import the module of a command."""
    return import_module(f"crowdwise.cli.{name}")


def docstring(name: str) -> str:
    """Read a command's docstring without importing the command."""
    source = pkgutil.get_data("crowdwise.cli", f"{name}.py") or b""
    return ast.get_docstring(ast.parse(source)) or ""
