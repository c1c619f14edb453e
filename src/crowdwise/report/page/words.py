"""Numbers as people read them."""

import math

DASH = "\u2013"


def share(value: float, digits: int = 0) -> str:
    """``0.25`` as ``25%``; a dash where there is no number."""
    return DASH if not math.isfinite(value) else f"{value:.{digits}%}"


def number(value: float, digits: int = 2) -> str:
    """A number in few digits; a dash where there is none."""
    return DASH if not math.isfinite(value) else f"{value:.{digits}f}".replace("-", "\u2212")


def between(low: float, high: float, digits: int = 2) -> str:
    """``0.25 to 0.31``; empty where there is no interval."""
    known = math.isfinite(low) and math.isfinite(high)
    return f"{number(low, digits)} to {number(high, digits)}" if known else ""


def shares_between(low: float, high: float, digits: int = 0) -> str:
    """``25% to 31%``; empty where there is no interval."""
    known = math.isfinite(low) and math.isfinite(high)
    return f"{share(low, digits)} to {share(high, digits)}" if known else ""


def duration(seconds: float, unit: str = "s") -> str:
    """A time as people say it; a plain number where the unit is not known."""
    if not math.isfinite(seconds):
        return DASH
    if not unit:
        return f"{seconds:g}"
    for size, word in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {word}"
    return f"{seconds:.1f} s"
