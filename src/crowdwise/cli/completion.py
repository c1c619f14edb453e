"""Print a script that completes commands, flags and names in your shell.

crowdwise completion bash > ~/.local/share/bash-completion/completions/crowdwise
crowdwise completion zsh > ~/.zfunc/_crowdwise    # a folder in your fpath
crowdwise completion fish > ~/.config/fish/completions/crowdwise.fish
"""

from argparse import Action, ArgumentParser, Namespace
from collections.abc import Iterator

from crowdwise.cli.options import KINDS, method_names

SHELLS = ("bash", "zsh", "tcsh", "fish", "powershell")
FILES = ("annotations", "features", "model", "output")  # arguments that name files


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="shell that will use the script")


def run(args: Namespace) -> int:
    import shtab

    from crowdwise.cli import COMMANDS, build_parser

    parser = build_parser(COMMANDS)
    for command, action in _actions(parser):
        if action.metavar == "FOLDER":
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]  # shtab's interface
        elif action.metavar == "FILE" or action.dest in FILES:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
        elif action.choices is None:
            action.choices = _words(command, action)
    print(shtab.complete(parser, args.shell))
    return 0


def _actions(parser: ArgumentParser, command: str = "") -> Iterator[tuple[str, Action]]:
    """Yield every flag and argument, with the command it belongs to."""
    for action in parser._actions:
        choices = action.choices
        if isinstance(choices, dict) and all(
            isinstance(c, ArgumentParser) for c in choices.values()
        ):
            for name, inner in choices.items():
                yield from _actions(inner, command or name)
        else:
            yield command, action


def _words(command: str, action: Action) -> list[str] | None:
    """Return the names to offer where the parser itself accepts any text."""
    if action.dest == "method":
        return next(names for kind in KINDS if action.default in (names := method_names(kind)))
    if action.dest == "methods" or (command, action.dest) == ("methods", "name"):
        return [name for kind in KINDS for name in method_names(kind)]
    if command == "datasets" and action.dest in ("name", "names"):
        from crowdwise import datasets

        return datasets.names()
    if command == "simulate" and action.dest == "set":
        from crowdwise.simulate import SETS

        return list(SETS)
    return None
