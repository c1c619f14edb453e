"""Files that a command reads and writes: what it reads must still be there afterwards."""

from argparse import Namespace
from pathlib import Path

from crowdwise.errors import ParameterError, explain

# What flags and arguments are called that name files to read, and files to write.
READ = ("annotations", "features", "gold", "gold_file", "truth", "model")
WRITTEN = ("output", "saved")


def refuse_overwriting(args: Namespace) -> None:
    """Refuse to write a file that the command reads; ``convert`` may change one in place."""
    given = {name: _path(value) for name, value in vars(args).items()}
    if args.command == "convert":
        given["annotations"] = None
    inputs = [path for name in READ if (path := given.get(name)) is not None]
    for target in filter(None, map(given.get, WRITTEN)):
        if target.is_file() and any(_reads(path, target) for path in inputs):
            raise ParameterError(
                explain(
                    f"{target} would be overwritten by its own result.",
                    expected="an output that is none of the inputs",
                    fix="write to another file",
                )
            )


def refuse_screen(path: str | None, what: str) -> None:
    """Refuse the screen for what is no text."""
    if path == "-":
        raise ParameterError(explain(f"{what} cannot go to the screen.", fix="name a file"))


def _path(value: object) -> Path | None:
    """A path that leads somewhere; None for the screen, and for all else that was given."""
    if not isinstance(value, str) or value == "-":
        return None
    path = Path(value).expanduser()
    return path if path.exists() else None


def _reads(path: Path, file: Path) -> bool:
    """Whether reading a path reads the file: it is the file, or the folder that holds it."""
    return file.samefile(path) or (path.is_dir() and file.parent.samefile(path))
