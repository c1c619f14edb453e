"""Progress of long work: a bar with total, rate and time left, if asked for.

Nothing is shown unless asked for, and nothing that is over within a second or two::

    with crowdwise.progress.shown():
        model.fit(votes)

The command line asks for it if standard error is a terminal.
"""

import io
import os
import sys
from collections.abc import Iterable, Iterator, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Any, BinaryIO, TextIO, TypeVar

from crowdwise.screen import printable

Step = TypeVar("Step")


@dataclass(frozen=True)
class Display:
    """Where bars are drawn, after how many seconds, and how often."""

    file: TextIO
    delay: float
    every: float


_display: ContextVar[Display | None] = ContextVar("crowdwise_progress", default=None)


@contextmanager
def shown(file: TextIO | None = None, *, delay: float = 1.5, every: float = 0.1) -> Iterator[None]:
    """Show the progress of long work inside.

    Parameters
    ----------
    file : text stream, optional
        Where to draw; standard error by default.
    delay : float, default=1.5
        Seconds after which a bar appears; shorter work has none.
    every : float, default=0.1
        Seconds between two drawings.

    Examples
    --------
    >>> from crowdwise import progress
    >>> from crowdwise.aggregate import DawidSkene
    >>> with progress.shown():
    ...     model = DawidSkene().fit({"q1": {"ann": "yes", "bob": "yes"}})
    """
    with _set(Display(sys.stderr if file is None else file, delay, every)):
        yield


@contextmanager
def hidden() -> Iterator[None]:
    """Show no progress inside, whatever the surrounding setting."""
    with _set(None):
        yield


@contextmanager
def _set(display: Display | None) -> Iterator[None]:
    token = _display.set(display)
    try:
        yield
    finally:
        _display.reset(token)


class Bar:
    """Counts what is done, without showing it."""

    done = 0

    def advance(self, n: int = 1) -> None:
        """Count ``n`` more; a negative number takes back work done in vain."""
        self.done += n

    def skip(self, n: int) -> None:
        """Expect ``n`` fewer than announced."""


class _Drawn(Bar):
    """Counts on a visible bar."""

    def __init__(self, drawn: Any) -> None:
        self.drawn = drawn

    def advance(self, n: int = 1) -> None:
        super().advance(n)
        self.drawn.update(n)

    def skip(self, n: int) -> None:
        self.drawn.total -= n


@contextmanager
def bar(what: str, total: int | None, unit: str = "step") -> Iterator[Bar]:
    """Make a bar to advance by hand; ``unit="B"`` counts bytes, in thousands."""
    display = _display.get()
    if display is None:
        yield Bar()
        return
    columns = _columns(display.file)
    with _tqdm()(
        desc=printable(what, keep=""),
        total=total,
        unit=unit,
        unit_scale=unit == "B",
        file=display.file,
        delay=display.delay,
        mininterval=display.every,
        miniters=1,
        leave=False,
        ncols=columns,
        dynamic_ncols=columns is None,
    ) as drawn:
        yield _Drawn(drawn)


def _columns(file: TextIO) -> int | None:
    """Return 80 for a terminal of unknown width, where tqdm would draw nothing."""
    try:
        return None if os.get_terminal_size(file.fileno()).columns else 80
    except (OSError, ValueError):  # not a terminal: left to tqdm
        return None


def track(
    steps: Iterable[Step], what: str, total: int | None = None, unit: str = "step"
) -> Iterable[Step]:
    """Count the steps while yielding them; ``total`` is their number, if known."""
    if _display.get() is None:
        return steps
    if total is None and isinstance(steps, Sized):
        total = len(steps)
    return _tracked(steps, what, total, unit)


def _tracked(steps: Iterable[Step], what: str, total: int | None, unit: str) -> Iterator[Step]:
    with bar(what, total, unit) as counted:
        for step in steps:
            yield step
            counted.advance()


@contextmanager
def reading(handle: BinaryIO, what: str, size: int) -> Iterator[BinaryIO]:
    """Open a file whose bytes are counted as they are read."""
    if _display.get() is None:
        yield handle
        return
    with bar(what, size, "B") as counted:
        yield io.BufferedReader(_Counted(handle, counted), 1 << 20)


class _Counted(io.RawIOBase):
    """A file that counts the bytes read from it."""

    def __init__(self, handle: BinaryIO, counted: Bar) -> None:
        self.handle, self.counted = handle, counted

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        block = self.handle.read(len(buffer))
        buffer[: len(block)] = block
        self.counted.advance(len(block))
        return len(block)


def write(text: str) -> None:
    """Write a line to standard error, above any bars."""
    text = printable(text)
    if _display.get() is None:
        sys.stderr.write(f"{text}\n")
    else:
        _tqdm().write(text, file=sys.stderr)


@cache
def _tqdm() -> Any:
    """Return the class that draws, which is loaded only when something is shown."""
    from tqdm import tqdm

    class Delayed(tqdm):
        """A bar that is not drawn before its delay is over, even around a line of text."""

        monitor_interval = 0  # no thread: every step checks the time

        def is_due(self) -> bool:
            return self.delay <= 0 or self._time() - self.start_t >= self.delay

        def display(self, *args: Any, **options: Any) -> bool:
            return self.is_due() and super().display(*args, **options)

        def clear(self, *args: Any, **options: Any) -> None:
            if self.is_due():
                super().clear(*args, **options)

    return Delayed
