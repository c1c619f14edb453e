"""Numbers that flags take: what is out of range is refused before any work, in one way."""

from argparse import ArgumentTypeError
from collections.abc import Callable
from math import nan

MOST = 10**9  # of any count; larger numbers do not occur, and much larger ones overflow
FAR = 1e15  # beyond any amount of money or score; from there on a sum loses single units


def whole(low: int, high: int = MOST) -> Callable[[str], int]:
    """Make a type for flags: a whole number between these limits, which are allowed."""

    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = low - 1
        if not low <= value <= high:
            words = f"from {low} to {high}" if high < MOST else f"of {low} or more"
            raise ArgumentTypeError(f"{text!r} is not a whole number {words}")
        return value

    return parse


def real(low: float = -FAR, high: float = FAR, *, ends: bool = True) -> Callable[[str], float]:
    """Make a type for flags: a number between these limits, which may be allowed or not."""

    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = nan
        if not (low <= value <= high if ends else low < value < high):
            words = f" from {low:g} to {high:g}" if ends else f" above {low:g} and below {high:g}"
            if high == FAR and not value > high:  # an end that nobody needs to know
                words = f" of {low:g} or more" if low > -FAR else ""
            raise ArgumentTypeError(f"{text!r} is not a number{words}")
        return value

    return parse


count, natural = whole(1), whole(0)
seed, port = whole(0, 2**32 - 1), whole(0, 2**16 - 1)
finite, amount, share, level = real(), real(0), real(0, 1), real(0, 1, ends=False)
