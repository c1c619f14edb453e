"""Numbers and names as people read them."""

import math
import re
from dataclasses import fields, is_dataclass, replace
from typing import Any

from markupsafe import Markup

CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffe\uffff]")
NAME = Markup("<bdi>{}</bdi>")  # kept apart from the direction of the text around it

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


def name(value: str, most: int = 60) -> Markup:
    """A name from the data, in full or its beginning and end."""
    return NAME.format(shorten(value, most))


def shorten(text: str, most: int) -> str:
    """The text, or its beginning and end where it is too long."""
    if len(text) <= most:
        return text
    tail = most // 3
    return f"{text[: most - tail - 1]}…{text[-tail:]}"


def clean(text: str) -> str:
    """Text that every browser and every XML reader takes."""
    return CONTROL.sub("\ufffd", text.encode("utf-8", "replace").decode("utf-8"))


def clean_facts(value: Any) -> Any:
    """The facts with all text cleaned, once for everything on the page."""
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
