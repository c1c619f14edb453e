"""A bar on standard error while files are fetched; quiet unless somebody is looking."""

import sys
from time import monotonic
from types import TracebackType
from typing import Self

WIDTH = 30
PAUSE = 0.1  # seconds between two drawings


class Progress:
    """Show how many bytes of a download have come.

    Parameters
    ----------
    what : str
        What is being fetched.
    total : int
        How many bytes are expected.
    show : bool or None
        Whether to draw; None means only if standard error is a terminal.
    """

    def __init__(self, what: str, total: int, show: bool | None = None) -> None:
        self.what = what
        self.total = total
        self.done = 0
        self._show = sys.stderr.isatty() if show is None else show
        self._drawn = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if self._show:
            self._draw()
            sys.stderr.write("\n")
            sys.stderr.flush()

    def add(self, n_bytes: int) -> None:
        """Count bytes that came; a negative number takes back what came in vain."""
        self.done += n_bytes
        if self._show and monotonic() - self._drawn > PAUSE:
            self._draw()

    def _draw(self) -> None:
        share = min(self.done / max(self.total, 1), 1.0)
        bar = "#" * round(WIDTH * share)
        amount = f"{megabytes(self.done)} of {megabytes(self.total)}"
        sys.stderr.write(f"\r{self.what} [{bar:<{WIDTH}}] {amount}")
        sys.stderr.flush()
        self._drawn = monotonic()


def megabytes(n_bytes: int) -> str:
    """A size to read."""
    return f"{n_bytes / 1e6:,.1f} MB" if n_bytes >= 100_000 else f"{n_bytes / 1e3:,.1f} kB"
