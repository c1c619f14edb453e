"""Files that a command reads and writes: what it reads must still be there afterwards."""

from argparse import Namespace
from pathlib import Path

from crowdwise.errors import ParameterError, explain

# What flags and arguments are called that name files to read, and files to write.
READ = ("annotations", "features", "gold", "gold_file", "truth", "model")
WRITTEN = ("output", "saved")


def refuse_overwriting(args: Namespace) -> None:
    """Refuse to write a file that the command reads; ``convert`` may change one in place."""
    read = [name for name in READ if (args.command, name) != ("convert", "annotations")]
    inputs = [path for name in read if (path := _path(getattr(args, name, None))) is not None]
    for target in (_path(getattr(args, name, None)) for name in WRITTEN):
        if target is not None and target.is_file() and any(_reads(p, target) for p in inputs):
            raise ParameterError(
                explain(
                    f"{target} is read here, and would be overwritten.",
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
    try:
        path = Path(value).expanduser()
        return path if path.exists() else None
    except (OSError, RuntimeError, ValueError):  # too long for a name, or nobody's home
        return None


def _reads(path: Path, file: Path) -> bool:
    """Whether reading a path reads the file: it is the file, or a folder it is read from."""
    from crowdwise.io.files import is_readable

    inside = path.is_dir() and file.parent.samefile(path)
    return file.samefile(path) or (inside and is_readable(file.name.removesuffix(".gz")))
