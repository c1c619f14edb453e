"""Files named by a command: what is read is never overwritten."""

import os
import stat
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO

from crowdwise.errors import ParameterError, explain

# Flags and arguments that name input files, and output files.
READ = (
    *("annotations", "features", "gold", "gold_file", "truth", "model", "workers", "prices"),
    *("project", "images", "certificate", "private_key", "replay", "labels", "token_file"),
)
WRITTEN = ("output", "saved", "audit", "checkpoint")
Identity = tuple[int, int]  # device and inode of a file, whatever its name


def refuse_overwriting(args: Namespace) -> None:
    """Refuse to overwrite any input, under any name, or to write two results to one file."""
    read = set(_inputs(args))
    if read and not read.isdisjoint(_stream(sys.stdout)):
        _refuse("Standard output")
    written: set[Path] = set()
    for name in WRITTEN:
        if (target := _path(getattr(args, name, None))) is None:
            continue
        if not read.isdisjoint(_file(target)):
            _refuse(str(target))
        _refuse_in_folders(target, args)
        if target in written:
            what = f"{target} would be written twice."
            raise ParameterError(explain(what, fix="name another file for one of the results"))
        written.add(target)


def refuse_output(args: Namespace) -> None:
    """Refuse a table's path that cannot be written, before the work for it is done."""
    from crowdwise.io.atomic import refuse_unwritable
    from crowdwise.io.write import refuse_other_tables

    on_spark = getattr(args, "engine", None) == "spark"  # which writes a folder
    if getattr(args, "writes_table", False) and args.output not in (None, "-") and not on_spark:
        refuse_other_tables(args.output)
        refuse_unwritable(args.output)


def refuse_screen(path: str | None, what: str) -> None:
    """Refuse to print binary data."""
    if path == "-":
        raise ParameterError(explain(f"{what} cannot be printed.", fix="write it to a file"))


def _refuse(target: str) -> None:
    raise ParameterError(
        explain(
            f"{target} is an input, and would be overwritten.",
            expected="an output that is not one of the inputs",
            fix="write to another file",
        )
    )


def _refuse_in_folders(target: Path, args: Namespace) -> None:
    """Refuse a result that would be read with a folder next time."""
    from crowdwise.io.open import list_folder

    for folder in filter(None, (_path(getattr(args, name, None)) for name in READ)):
        with suppress(OSError):
            if folder.is_dir() and list_folder(folder, target) != list_folder(folder):
                raise ParameterError(
                    explain(
                        f"{target} would be read with the other files of {folder} from then on.",
                        expected="an output that is not among the inputs",
                        fix="write to another folder",
                    )
                )


def _inputs(args: Namespace) -> Iterator[Identity]:
    """Yield every input file, including those in folders, and standard input."""
    from crowdwise.io.open import list_folder

    for name in READ:
        value = getattr(args, name, None)
        if value == "-":
            yield from _stream(sys.stdin)
        elif (path := _path(value)) is not None:
            with suppress(OSError):  # an unreadable folder: reading it gives the error
                for file in list_folder(path) if path.is_dir() else [path]:
                    yield from _file(file)


def _path(value: object) -> Path | None:
    """Return a path without links; None for a standard stream or an impossible path."""
    if not isinstance(value, str | Path) or str(value) in ("", "-"):
        return None
    try:
        return Path(value).expanduser().resolve()
    except (OSError, RuntimeError, ValueError):  # too long, or the home of an unknown user
        return None


def _file(path: Path) -> list[Identity]:
    """Return the identity of a regular file, nothing for anything else."""
    with suppress(OSError):
        return _identify(path.stat())
    return []


def _stream(stream: IO[str] | None) -> list[Identity]:
    """Return the identity of the regular file behind a standard stream, if there is one."""
    with suppress(OSError, ValueError, AttributeError):  # no stream, or not one of the system's
        return _identify(os.fstat(stream.fileno()))  # type: ignore[union-attr]
    return []


def _identify(about: os.stat_result) -> list[Identity]:
    return [(about.st_dev, about.st_ino)] if stat.S_ISREG(about.st_mode) else []
