"""Numbers and names for people to read."""

import math
import re
from dataclasses import fields, is_dataclass, replace
from typing import Any

from markupsafe import Markup

CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffe\uffff]")
NAME = Markup("<bdi>{}</bdi>")  # isolated from the direction of the surrounding text

DASH = "\u2013"


def share(value: float, digits: int = 0) -> str:
    """Format ``0.25`` as ``25%``; NaN as a dash."""
    return DASH if not math.isfinite(value) else f"{value:.{digits}%}"


def number(value: float, digits: int = 2) -> str:
    """Format a number with few digits; NaN as a dash."""
    return DASH if not math.isfinite(value) else f"{value:.{digits}f}".replace("-", "\u2212")


def between(low: float, high: float, digits: int = 2) -> str:
    """Format an interval such as ``0.25 to 0.31``; empty if there is none."""
    known = math.isfinite(low) and math.isfinite(high)
    return f"{number(low, digits)} to {number(high, digits)}" if known else ""


def shares_between(low: float, high: float, digits: int = 0) -> str:
    """Format an interval such as ``25% to 31%``; empty if there is none."""
    known = math.isfinite(low) and math.isfinite(high)
    return f"{share(low, digits)} to {share(high, digits)}" if known else ""


def duration(seconds: float, unit: str = "s") -> str:
    """Format a duration; a plain number if the unit is unknown."""
    if not math.isfinite(seconds):
        return DASH
    if not unit:
        return f"{seconds:g}"
    for size, word in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {word}"
    return f"{seconds:.1f} s"


def name(value: str, most: int = 60) -> Markup:
    """Format a name from the data, in full or shortened in the middle."""
    return NAME.format(shorten(value, most))


def shorten(text: str, most: int) -> str:
    """Return the text, or only its beginning and end if it is too long."""
    if len(text) <= most:
        return text
    tail = most // 3
    return f"{text[: most - tail - 1]}…{text[-tail:]}"


def clean(text: str) -> str:
    """Remove characters that not every browser and XML reader accepts."""
    return CONTROL.sub("\ufffd", text.encode("utf-8", "replace").decode("utf-8"))


def clean_facts(value: Any) -> Any:
    """Clean all text in the facts, once for the whole page."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list | tuple):
        return type(value)(clean_facts(one) for one in value)
    if isinstance(value, dict):
        return {key: clean_facts(one) for key, one in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return replace(
            value, **{f.name: clean_facts(getattr(value, f.name)) for f in fields(value)}
        )
    return value
