"""Charts as SVG: a few shapes on two scales, coloured by classes of the style sheet."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from crowdwise.report.page.html import Markup, clean, shortened, tag

WIDTH = 480
LETTER, WIDE_LETTER = 6.6, 8.4  # pixels of a letter, about
MARKS = 8  # kinds of marks, each of its own colour and shape


@dataclass(frozen=True)
class Scale:
    """Values to pixels."""

    low: float
    high: float
    start: float
    stop: float

    def __call__(self, value: float) -> float:
        width = self.high - self.low or 1.0
        at = self.start + (value - self.low) / width * (self.stop - self.start)
        return round(float(at), 1)


def ticks(low: float, high: float, most: int = 6, least: float = 0.0) -> list[float]:
    """Round values between two others, at least so far apart."""
    span = max(high - low, 1e-9)
    step = 10.0 ** np.floor(np.log10(span / most))
    step = next((step * k for k in (1, 2, 5, 10) if span / (step * k) <= most), step * 10)
    step = max(step, least)
    first = np.ceil(low / step - 1e-9) * step
    # Adding zero makes a negative zero a plain one.
    return [round(float(v), 10) + 0.0 for v in np.arange(first, high + step * 1e-6, step)]


def drawing(height: float, *shapes: object, label: str, width: int = WIDTH) -> Markup:
    """A picture that fits any width; ``label`` is what a screen reader says."""
    return tag(
        "svg",
        *shapes,
        view_box=f"0 0 {width} {round(height)}",
        role="img",
        aria_label=label,
        tabindex=0,
        class_="wide" if width > WIDTH else None,
    )


def words(x: float, y: float, text: str, class_: str = "", most: int = 40) -> Markup:
    """Text at a place."""
    return tag("text", shortened(clean(text), most), x=round(x, 1), y=round(y, 1), class_=class_)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Markup:
    """A straight line."""
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def mark(x: float, y: float, kind: int, tip: str, radius: float = 4.5, more: str = "") -> Markup:
    """A point: kinds differ by colour and by shape, so that either is enough."""
    kind %= MARKS
    attributes = {"class_": f"mark s{kind} {more}".strip(), "data_tip": tip}
    if kind % 4 == 0:
        return tag("circle", cx=x, cy=y, r=radius, **attributes)
    return tag("path", d=_outline(kind % 4, x, y, radius), **attributes)


def _outline(kind: int, x: float, y: float, radius: float) -> str:
    """A square, a triangle or a diamond of about the same area as the circle."""
    r = round(radius * (0.9, 0.9, 1.3, 1.25)[kind], 1)
    if kind == 1:
        return f"M{x - r:g} {y - r:g}h{2 * r:g}v{2 * r:g}h{-2 * r:g}z"
    if kind == 2:
        return f"M{x:g} {y - r:g}l{r:g} {1.7 * r:g}h{-2 * r:g}z"
    return f"M{x:g} {y - r:g}l{r:g} {r:g}l{-r:g} {r:g}l{-r:g} {-r:g}z"


def x_axis(
    scale: Scale, top: float, bottom: float, written: Callable[[float], str], title: str = ""
) -> list[Markup]:
    """Grid lines, their values, and what they are."""
    shapes = []
    for value in ticks(scale.low, scale.high):
        x = scale(value)
        shapes.append(line(x, top, x, bottom, "grid"))
        shapes.append(words(x, bottom + 16, written(value), "tick middle"))
    if title:
        middle = (scale.start + scale.stop) / 2
        shapes.append(words(middle, bottom + 34, title, "axis middle", most=70))
    return shapes


def y_axis(
    scale: Scale, left: float, right: float, written: Callable[[float], str], least: float = 0.0
) -> list[Markup]:
    """Grid lines and their values, at least so far apart."""
    shapes = []
    for value in ticks(scale.low, scale.high, 5, least):
        y = scale(value)
        shapes.append(line(left, y, right, y, "grid"))
        shapes.append(words(left - 6, y + 4, written(value), "tick end"))
    return shapes


def margin(texts: Sequence[str], most: int) -> int:
    """Room for the longest of some texts, in pixels."""
    return round(max((extent(text, most) for text in texts), default=0)) + 14


def extent(text: str, most: int) -> float:
    """About how wide a text is; capitals and digits are wider than the rest."""
    shown = shortened(clean(text), most)
    n_wide = sum(letter.isupper() or letter.isdigit() or ord(letter) > 0x2E80 for letter in shown)
    return n_wide * WIDE_LETTER + (len(shown) - n_wide) * LETTER
