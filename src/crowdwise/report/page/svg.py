"""Charts as SVG: a few shapes on two scales, colored by classes of the style sheet.

Text and attributes are escaped by markupsafe, when they are inserted into the markup.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from crowdwise.report.page.words import shorten

WIDTH = 480
LETTER, WIDE_LETTER = 6.6, 8.4  # approximate width of a letter in pixels
MARKS = 8  # kinds of marks, each with its own color and shape

DRAWING = Markup(
    '<svg viewBox="0 0 {} {}" role="img" aria-label="{}" tabindex="0" class="{}">{}</svg>'
)
TEXT = Markup('<text x="{}" y="{}" class="{}">{}</text>')
LINE = Markup('<line x1="{}" y1="{}" x2="{}" y2="{}" class="{}"/>')
CIRCLE = Markup('<circle cx="{}" cy="{}" r="{}" class="{}" data-tip="{}"/>')
PATH = Markup('<path d="{}" class="{}" data-tip="{}"/>')


@dataclass(frozen=True)
class Scale:
    """A linear scale from values to pixels."""

    low: float
    high: float
    start: float
    stop: float

    def __call__(self, value: float) -> float:
        width = self.high - self.low or 1.0
        at = self.start + (value - self.low) / width * (self.stop - self.start)
        return round(float(at), 1)


def ticks(low: float, high: float, most: int = 6, least: float = 0.0) -> list[float]:
    """Return round values in a range, at least ``least`` apart."""
    span = max(high - low, 1e-9)
    step = 10.0 ** np.floor(np.log10(span / most))
    step = next((step * k for k in (1, 2, 5, 10) if span / (step * k) <= most), step * 10)
    step = max(step, least)
    first = np.ceil(low / step - 1e-9) * step
    # Adding zero turns a negative zero into a plain one.
    return [round(float(v), 10) + 0.0 for v in np.arange(first, high + step * 1e-6, step)]


def drawing(height: float, shapes: Iterable[Markup], label: str, width: int = WIDTH) -> Markup:
    """Draw a picture that fits any width; ``label`` is what a screen reader reads out."""
    size = "wide" if width > WIDTH else ""
    return DRAWING.format(width, round(height), label, size, Markup("").join(shapes))


def words(x: float, y: float, text: str, class_: str = "", most: int = 40) -> Markup:
    """Draw text at a position."""
    return TEXT.format(round(x, 1), round(y, 1), class_, shorten(text, most))


def mark(x: float, y: float, kind: int, tip: str, radius: float = 4.5, more: str = "") -> Markup:
    """Draw a point: kinds differ by both color and shape, so either is enough."""
    kind %= MARKS
    look = f"mark s{kind} {more}".strip()
    if kind % 4 == 0:
        return CIRCLE.format(x, y, radius, look, tip)
    return PATH.format(_outline(kind % 4, x, y, radius), look, tip)


def _outline(kind: int, x: float, y: float, radius: float) -> str:
    """Return a square, triangle or diamond with about the area of the circle."""
    r = round(radius * (0.9, 0.9, 1.3, 1.25)[kind], 1)
    if kind == 1:
        return f"M{x - r:g} {y - r:g}h{2 * r:g}v{2 * r:g}h{-2 * r:g}z"
    if kind == 2:
        return f"M{x:g} {y - r:g}l{r:g} {1.7 * r:g}h{-2 * r:g}z"
    return f"M{x:g} {y - r:g}l{r:g} {r:g}l{-r:g} {r:g}l{-r:g} {-r:g}z"


def x_axis(
    scale: Scale, top: float, bottom: float, written: Callable[[float], str], title: str = ""
) -> list[Markup]:
    """Draw grid lines, their values, and a title."""
    shapes = []
    for value in ticks(scale.low, scale.high):
        x = scale(value)
        shapes.append(LINE.format(x, top, x, bottom, "grid"))
        shapes.append(words(x, bottom + 16, written(value), "tick middle"))
    if title:
        middle = (scale.start + scale.stop) / 2
        shapes.append(words(middle, bottom + 34, title, "axis middle", most=70))
    return shapes


def y_axis(
    scale: Scale, left: float, right: float, written: Callable[[float], str], least: float = 0.0
) -> list[Markup]:
    """Draw grid lines and their values, at least ``least`` apart."""
    shapes = []
    for value in ticks(scale.low, scale.high, 5, least):
        y = scale(value)
        shapes.append(LINE.format(left, y, right, y, "grid"))
        shapes.append(words(left - 6, y + 4, written(value), "tick end"))
    return shapes


def margin(texts: Sequence[str], most: int) -> int:
    """Return the width of the longest of some texts, in pixels."""
    return round(max((extent(text, most) for text in texts), default=0)) + 14


def extent(text: str, most: int) -> float:
    """Estimate how wide a text is; capitals and digits are wider than other letters."""
    shown = shorten(text, most)
    n_wide = sum(letter.isupper() or letter.isdigit() or ord(letter) > 0x2E80 for letter in shown)
    return n_wide * WIDE_LETTER + (len(shown) - n_wide) * LETTER
