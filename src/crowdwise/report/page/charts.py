"""The kinds of charts in a report."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from crowdwise.report.page.svg import (
    LETTER,
    LINE,
    WIDTH,
    Scale,
    drawing,
    extent,
    margin,
    mark,
    words,
    x_axis,
    y_axis,
)
from crowdwise.report.page.words import shorten
from crowdwise.typing import Array, Floats

ROW, NAME_LETTERS = 24, 20
HEAD_LETTERS, SIDE_LETTERS = 14, 16  # maximum length of names beside shaded cells
WIDEST_BAR = 64
SHADE = 0.06, 0.5  # opacity of the faintest and strongest cell with a number on it
Written = Callable[[float], str]

BAR = Markup('<rect x="{}" y="{}" width="{}" height="{}" class="mark s0" data-tip="{}"/>')
CELL = Markup(
    '<rect x="{}" y="{}" width="{}" height="{}" rx="2" fill-opacity="{}" class="{}" data-tip="{}"/>'
)
PLATE = Markup('<rect x="1" y="1" width="{}" height="{}" rx="6" class="plate"/>')
TURNED = Markup('<text transform="translate({:.1f} {:.1f}) rotate(-45)" class="tick">{}</text>')
BAND = Markup('<polygon points="{}" class="band k{}"/>')
STROKE = Markup('<polyline points="{}" class="stroke k{}"/>')
KEY = Markup("<g>{}{}</g>")


@dataclass(frozen=True)
class IntervalRow:
    """A number with its interval, and the text beside it."""

    name: str
    value: float
    low: float
    high: float
    text: str  # shown at the right edge
    kind: int = 0


def bar_chart(
    names: Sequence[str], values: Sequence[float], what: str, label: str, axis: str = ""
) -> Markup:
    """Draw vertical bars, one per name; ``axis`` says what the names are, by default ``what``."""
    height, left, bottom = 210, 48, 170
    scale = Scale(0, max(*values, 1), bottom, 12)
    step = (WIDTH - left - 8) / max(len(values), 1)
    every = max(math.ceil(max(len(name) for name in names) * LETTER / max(step - 2, 1)), 1)
    shapes = [*y_axis(scale, left, WIDTH - 8, lambda v: f"{v:,.0f}", 1)]
    for place, (name, value) in enumerate(zip(names, values, strict=True)):
        middle, broad = left + step * (place + 0.5), min(step * 0.8, WIDEST_BAR)
        top = scale(value)
        left_edge, tall = round(middle - broad / 2, 1), round(bottom - top, 1)
        tip = f"{name} {what}: {value:,.0f}"
        shapes.append(BAR.format(left_edge, top, round(broad, 1), tall, tip))
        if place % every == 0:
            shapes.append(words(middle, bottom + 16, name, "tick middle"))
    shapes.append(words((left + WIDTH) / 2, bottom + 34, axis or what, "axis middle"))
    return drawing(height, shapes, label)


def interval_chart(
    rows: Sequence[IntervalRow],
    label: str,
    written: Written,
    bounds: tuple[float, float] | None = None,
    title: str = "",
) -> Markup:
    """Draw one row per number: its position on a common scale, and its interval."""
    left = margin([row.name for row in rows], NAME_LETTERS)
    right = WIDTH - margin([row.text for row in rows], 24)
    low, high = bounds or pad([*_all(rows)])
    top, bottom = 6.0, 6.0 + ROW * len(rows)
    scale = Scale(low, high, left + 8, right - 8)
    shapes = [*x_axis(scale, top, bottom, written, title)]
    for place, row in enumerate(rows):
        y = top + ROW * (place + 0.5)
        shapes.append(words(left - 4, y + 4, row.name, "end", most=NAME_LETTERS))
        shapes.append(words(right + 4, y + 4, row.text, "tick", most=24))
        if not math.isfinite(row.value):
            continue
        if math.isfinite(row.low) and math.isfinite(row.high):
            ends = scale(max(row.low, low)), scale(min(row.high, high))
            shapes.append(LINE.format(ends[0], y, ends[1], y, f"whisker k{row.kind}"))
        tip = f"{row.name}: {row.text}"
        shapes.append(mark(scale(min(max(row.value, low), high)), y, row.kind, tip))
    return drawing(bottom + (42 if title else 24), shapes, label)


def pad(values: Sequence[float]) -> tuple[float, float]:
    """Return bounds slightly wider than the values."""
    known = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
    low, high = min(known), max(known)
    room = 0.06 * (high - low) or 0.05
    return low - room, high + room


def heat_chart(
    cells: Floats,
    names: Sequence[str],
    columns: Sequence[str],
    label: str,
    written: Written,
    tips: Callable[[int, int], str],
    *,
    width: int = WIDTH,
) -> Markup:
    """Draw a table of shaded cells: blue above zero, orange below, darker with distance."""
    left = margin(names, SIDE_LETTERS)
    room, longest = width - left - 4, max(extent(name, HEAD_LETTERS) for name in columns)
    step = min(room / len(columns), 84)
    if 18 <= step < longest + 4:  # rotated names extend to the right
        step = min((room - 0.72 * longest) / (len(columns) - 0.5), 84)
    tall = max(min(step, 28), 12 if len(names) > 30 else 18)
    numbered = step >= 30  # numbers fit
    head = _head_height(longest, step)
    shapes = []
    if head >= 20:
        shapes = [_column_name(k, n, left, step, head) for k, n in enumerate(columns)]
    small = "tick end" if tall >= 16 else "tick end tiny"
    for i, row_name in enumerate(names):
        y = head + tall * i
        shapes.append(words(left - 6, y + tall / 2 + 4, row_name, small, most=SIDE_LETTERS))
        for j in range(len(columns)):
            x, value = round(left + step * j, 1), float(cells[i, j])
            shapes.append(_cell(x, round(y, 1), step, tall, value, tips(i, j), numbered))
            if numbered and math.isfinite(value):
                shapes.append(words(x + step / 2, y + tall / 2 + 4, written(value), "cell"))
    return drawing(head + tall * len(names) + 6, shapes, label, width)


def _head_height(longest: float, step: float) -> float:
    if step < 18:
        return 4  # names do not fit; the rows show the same ones
    return 20 if longest <= step - 4 else longest * 0.72 + 20


def _column_name(place: int, name: str, left: float, step: float, head: float) -> Markup:
    x = left + step * (place + 0.5)
    if head <= 20:
        return words(x, head - 6, name, "tick middle", most=HEAD_LETTERS)
    return TURNED.format(x, head - 6, shorten(name, HEAD_LETTERS))


def _cell(
    x: float, y: float, step: float, tall: float, value: float, tip: str, numbered: bool
) -> Markup:
    known = math.isfinite(value)
    faint, strong = SHADE if numbered else (0.06, 1.0)  # numbers must stay readable
    shade = faint + (strong - faint) * min(abs(value), 1.0) if known else 0.0
    look = "mark none" if not known else "mark s0" if value >= 0 else "mark s1"
    size = round(step - 1.5, 1), round(tall - 1.5, 1)
    return CELL.format(x, y, *size, round(shade, 2) if known else 1, look, tip)


def scatter_chart(
    x: Floats,
    y: Floats,
    kinds: Sequence[int],
    tips: Sequence[str],
    label: str,
    *,
    sizes: Floats | None = None,
    faint: Array | None = None,
    width: int = WIDTH,
    height: int = 350,
) -> Markup:
    """Draw points on a plane without scales: only distances matter."""
    across = Scale(0, 1, 14, width - 14)
    down = Scale(0, 1, height - 14, 14)
    shapes = [PLATE.format(width - 2, height - 2)]
    for place, (kind, tip) in enumerate(zip(kinds, tips, strict=True)):
        radius = 4.0 if sizes is None else round(float(sizes[place]), 1)
        more = "faint" if faint is not None and faint[place] else "solid"
        shapes.append(mark(across(x[place]), down(y[place]), kind, tip, radius, f"dot {more}"))
    return drawing(height, shapes, label, width)


@dataclass(frozen=True)
class Curve:
    """A line of a chart, with an optional band around it."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    kind: int
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None


def line_chart(
    curves: Sequence[Curve],
    label: str,
    title: str,
    written: Written,
    *,
    at: float | None = None,
    x_written: Written = lambda v: f"{v:g}",
) -> Markup:
    """Draw lines over a common x axis; ``at`` marks the current value."""
    height, left, top, bottom = 292, 52, 14, 214
    xs = [value for curve in curves for value in curve.x]
    ys = [v for c in curves for part in (c.y, c.low or (), c.high or ()) for v in part]
    low, high = pad(ys)
    across = Scale(min(xs), max(*xs, min(xs) + 1e-9), left + 10, WIDTH - 14)
    down = Scale(max(low, 0) if low > -0.2 else low, min(high, 1.0), bottom, top)
    shapes = [
        *y_axis(down, left, WIDTH - 8, written),
        *x_axis(across, bottom, bottom, x_written, title),
    ]
    if at is not None:
        x = across(min(max(at, across.low), across.high))
        shapes += [LINE.format(x, top, x, bottom, "now"), words(x + 5, top + 8, "now", "tick")]
    for curve in curves:
        shapes += _one_curve(curve, across, down, written)
    if len(curves) == 1:
        return drawing(height - 34, shapes, label)
    shapes += [_key(place, curve, height - 10) for place, curve in enumerate(curves)]
    return drawing(height, shapes, label)


def _one_curve(curve: Curve, across: Scale, down: Scale, written: Written) -> list[Markup]:
    places = [k for k, value in enumerate(curve.y) if math.isfinite(value)]
    shapes = []
    if curve.low is not None and curve.high is not None:
        upper = [f"{across(curve.x[k])},{down(min(curve.high[k], down.high))}" for k in places]
        lower = [f"{across(curve.x[k])},{down(max(curve.low[k], down.low))}" for k in places]
        points = " ".join([*upper, *reversed(lower)])
        shapes.append(BAND.format(points, curve.kind))
    points = " ".join(f"{across(curve.x[k])},{down(curve.y[k])}" for k in places)
    shapes.append(STROKE.format(points, curve.kind))
    for k in places:
        tip = f"{curve.name}, {curve.x[k]:g}: {written(curve.y[k])}"
        shapes.append(mark(across(curve.x[k]), down(curve.y[k]), curve.kind, tip, 3.5))
    return shapes


def _key(place: int, curve: Curve, y: float) -> Markup:
    x = 52 + place * 145
    return KEY.format(mark(x, y - 4, curve.kind, curve.name), words(x + 9, y, curve.name, "tick"))


def _all(rows: Sequence[IntervalRow]) -> Floats:
    return np.array([v for row in rows for v in (row.value, row.low, row.high)])
