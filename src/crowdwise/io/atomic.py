"""Files that are written whole or not at all."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from crowdwise.errors import FileError, explain


@contextmanager
def replace_file(path: str | Path, *, binary: bool = False) -> Iterator[IO[Any]]:
    """Open a temporary file next to ``path``, and move it there once it is complete.

    If anything goes wrong before that, ``path`` is unchanged and the temporary file is
    removed.
    """
    target = Path(path).expanduser()
    with _explain_write_errors(target):
        target = target.resolve()  # follow links to the file itself
        if target.is_dir():
            raise IsADirectoryError(None, "a folder has this name")
        options: dict[str, Any] = {"mode": "wb"} if binary else _TEXT
        if target.exists() and not target.is_file():  # a pipe or a device: nothing to keep
            with target.open(**options) as direct:
                yield direct
            return
        mode = target.stat().st_mode if target.exists() else None
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as beside:
            unfinished = Path(beside) / target.name
            with unfinished.open(**options) as file:
                yield file
            if mode is not None:
                unfinished.chmod(mode)
            unfinished.replace(target)


@contextmanager
def replace_files(folder: Path) -> Iterator[Path]:
    """Make a temporary folder in ``folder``, whose files move there once all are written."""
    inside = tempfile.TemporaryDirectory
    with _explain_write_errors(folder), inside(dir=folder, prefix=".unfinished.") as beside:
        yield Path(beside)
        for file in sorted(Path(beside).iterdir()):
            file.replace(folder / file.name)


def refuse_unwritable(path: str | Path) -> None:
    """Refuse a path that cannot be written, before the work for it is done."""
    target = Path(path).expanduser()
    with _explain_write_errors(target):
        if target.is_dir():
            raise IsADirectoryError(None, "a folder has this name")
        if not target.parent.is_dir():
            raise FileNotFoundError(None, f"there is no folder {target.parent}")


_TEXT = {"mode": "w", "encoding": "utf-8", "newline": ""}


@contextmanager
def _explain_write_errors(path: Path) -> Iterator[None]:
    """Turn errors of the operating system into a :class:`FileError`."""
    try:
        yield
    except FileError:
        raise
    except OSError as error:
        raise FileError(
            explain(
                f"{path} cannot be written.",
                first=error.strerror or str(error),
                expected="a folder that exists, has space left, and that this user may write to",
                fix="create the folder, free some space, or choose another path",
            )
        ) from error
