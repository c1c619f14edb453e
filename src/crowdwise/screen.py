"""Text that is safe to print: names from a file must not control a terminal, or hide in it."""

import io
import unicodedata
from typing import TextIO

HARMFUL = ("Cc", "Cf", "Cs", "Zl", "Zp")  # control, direction and no width, halves, line ends
BLANK = "\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0"  # invisible letters


def printable(text: str, keep: str = "\n\t") -> str:
    r"""Return the text with invisible characters written out, as in ``\u001b``.

    These move the cursor, set a color or a title, change the direction of writing or take no
    width. JSON stays the same JSON.

    Parameters
    ----------
    text : str
        The text to print.
    keep : str
        Characters to keep: line ends and tabs, unless the text is a cell of a table.

    Examples
    --------
    >>> print(printable("ann\x1b[2J\u202e"))
    ann\u001b[2J\u202e
    """
    if text.isprintable() and not any(sign in text for sign in BLANK):
        return text
    return "".join(
        sign
        if sign in keep or (unicodedata.category(sign) not in HARMFUL and sign not in BLANK)
        else _write_out(sign)
        for sign in text
    )


def _write_out(sign: str) -> str:
    units = sign.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))


class Screen(io.TextIOBase):
    """A terminal that only receives printable text."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        self.stream.write(printable(text))
        return len(text)

    def flush(self) -> None:
        self.stream.flush()

    def isatty(self) -> bool:
        return self.stream.isatty()

    def fileno(self) -> int:
        return self.stream.fileno()
