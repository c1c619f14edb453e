"""Completion for shells, made from the parsers of the commands."""

import argparse
from argparse import Action, ArgumentParser
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from crowdwise.cli.method import KINDS, names_of

METHOD_KINDS = {"fit": "learn", "embed": "embed"}  # of a command's --method; else "aggregate"


@dataclass(frozen=True)
class Flag:
    """A flag, and what may follow it."""

    names: tuple[str, ...]
    about: str
    words: tuple[str, ...] = ()  # values to choose from
    alone: bool = False  # whether nothing follows; else a file or any text does


@dataclass(frozen=True)
class Command:
    """A command, the words that may follow it, and its flags."""

    name: str
    about: str
    flags: tuple[Flag, ...]
    words: tuple[str, ...] = ()


def describe() -> list[Command]:
    """Every command, as its parser has it."""
    from crowdwise.cli import COMMANDS, build_parser

    found = []
    for name in COMMANDS:
        parser = _commands(build_parser(name)).choices[name]
        flags = tuple(_flags(name, parser))
        about = (parser.description or "").rstrip(".").lower()
        found.append(Command(name, about, flags, tuple(_words(name, parser))))
    return found


def _commands(parser: ArgumentParser) -> "argparse._SubParsersAction[ArgumentParser]":
    return next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction))


def _flags(command: str, parser: ArgumentParser) -> Iterator[Flag]:
    for action in parser._actions:
        if action.option_strings:
            about = (action.help or "").partition(" (default")[0].replace("%%", "%")
            words = _choices(command, action)
            yield Flag(tuple(action.option_strings), about, words, action.nargs == 0)


def _choices(command: str, action: Action) -> tuple[str, ...]:
    if action.dest in ("method", "methods"):
        kinds = tuple(KINDS) if action.dest == "methods" else (_kind(command),)
        return tuple(name for kind in kinds for name in names_of(kind))
    return tuple(map(str, action.choices or ()))


def _kind(command: str) -> str:
    return METHOD_KINDS.get(command, "aggregate")


def _words(command: str, parser: ArgumentParser) -> Iterator[str]:
    """What may stand where a command's own words do, other than files."""
    for action in parser._actions:
        if not action.option_strings:
            yield from map(str, action.choices or ())
    if command == "methods":
        yield from (name for kind in KINDS for name in names_of(kind))


def bash(commands: Sequence[Command]) -> str:
    """Completion for bash; files where it offers nothing."""
    return posix(commands, BASH_HEAD, 'COMPREPLY=($(compgen -W "$offers" -- "$cur"))', BASH_TAIL)


def zsh(commands: Sequence[Command]) -> str:
    """Completion for zsh."""
    offer = 'if [[ -n "$offers" ]]; then compadd -- ${=offers}; else _files; fi'
    return posix(commands, ZSH_HEAD, offer, ZSH_TAIL)


def posix(commands: Sequence[Command], head: str, offer: str, tail: str) -> str:
    """A function that finds the command, looks at the flag before, and offers what may follow."""
    names = [command.name for command in commands]
    first = " ".join([*names, "--help", "--version"])
    lines = [
        head,
        f'        case "$word" in {"|".join(names)}) command="$word"; break ;; esac',
        "    done",
        '    case "$command $prev" in',
        *(line for command in commands for line in _after_flags(command, offer)),
        "    esac",
        '    case "$command" in',
        f'        "") offers="{first}" ;;',
        *map(_after_command, commands),
        "    esac",
        f"    {offer}",
        tail,
    ]
    return "\n".join(lines)


def _after_flags(command: Command, offer: str) -> Iterator[str]:
    """What may follow each flag that takes a value: words of its own, or a file."""
    by_words: dict[str, list[str]] = {}
    for flag in command.flags:
        if not flag.alone:
            told = [f'"{command.name} {name}"' for name in flag.names]
            by_words.setdefault(" ".join(flag.words), []).extend(told)
    for words, flags in by_words.items():
        yield f'        {"|".join(flags)}) offers="{words}"; {offer}; return ;;'


def _after_command(command: Command) -> str:
    """The flags of a command after a dash; else its words, or a file."""
    flags = " ".join(name for flag in command.flags for name in flag.names)
    words = " ".join(command.words)
    return (
        f'        {command.name}) if [[ "$cur" == -* ]]; then offers="{flags}"; '
        f'else offers="{words}"; fi ;;'
    )


def fish(commands: Sequence[Command]) -> str:
    """Completion for fish."""
    lines = ["complete -c crowdwise -n __fish_use_subcommand -l help -l version"]
    for command in commands:
        here = f"complete -c crowdwise -n '__fish_seen_subcommand_from {command.name}'"
        first = f"complete -c crowdwise -n __fish_use_subcommand -f -a {command.name}"
        lines.append(f"{first} -d {_quoted(command.about)}")
        if command.words:
            lines.append(f"{here} -f -a {_quoted(' '.join(command.words))}")
        for flag in command.flags:
            names = [f"-l {n[2:]}" if n.startswith("--") else f"-s {n[1:]}" for n in flag.names]
            value = f"-x -a {_quoted(' '.join(flag.words))}" if flag.words else "-r"
            parts = [here, *names, *([] if flag.alone else [value]), "-d", _quoted(flag.about)]
            lines.append(" ".join(parts))
    return "\n".join(lines)


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


BASH_HEAD = """_crowdwise() {
    local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}"
    local command="" word offers=""
    if [[ "$cur" == "=" ]]; then cur=""; fi
    if [[ "$prev" == "=" ]]; then prev="${COMP_WORDS[COMP_CWORD-2]}"; fi
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do"""
BASH_TAIL = """}
complete -o default -o bashdefault -F _crowdwise crowdwise"""
ZSH_HEAD = """#compdef crowdwise
_crowdwise() {
    local cur="${words[CURRENT]}" prev="${words[CURRENT-1]}" command="" word offers=""
    for word in "${(@)words[2,CURRENT-1]}"; do"""
ZSH_TAIL = """}
compdef _crowdwise crowdwise"""
SHELLS: dict[str, Callable[[Sequence[Command]], str]] = {"bash": bash, "zsh": zsh, "fish": fish}
