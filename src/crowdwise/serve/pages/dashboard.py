"""The dashboard: current progress, cost, forecast, contested tasks and workers."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from crowdwise.errors import plural
from crowdwise.report.page import words
from crowdwise.report.page.charts import Curve, bar_chart, line_chart
from crowdwise.serve import state
from crowdwise.serve.board import Board
from crowdwise.serve.service import Service

MOST_TASKS = 12
MOST_WORKERS = 50
MOST_BARS = 24
# Bar widths, in seconds, of the chart of labels over time, with name and format of its time axis.
STEPS = (
    (60, "minute", "%H:%M"),
    (600, "ten minutes", "%H:%M"),
    (3_600, "hour", "%d %b %H:%M"),
    (86_400, "day", "%d %b"),
)


@cache
def environment() -> Environment:
    """Set up our templates and those of the report; all text is escaped."""
    loader = ChoiceLoader(
        [PackageLoader("crowdwise.serve.pages"), PackageLoader("crowdwise.report.page")]
    )
    made = Environment(
        loader=loader,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    for word in (words.share, words.number, words.shares_between):
        made.filters[word.__name__] = word
    made.filters |= {"count": "{:,}".format, "plural": plural, "name": show_name, "money": money}
    return made


def money(amount: float) -> str:
    """Write an amount, with cents if there are any."""
    return f"{amount:,.2f}".removesuffix(".00")


def draw_dashboard(service: Service) -> str:
    """Render the content of the dashboard as HTML."""
    board = service.board
    summary, tasks = state.summarize(service), state.task_frame(service)
    workers = state.worker_frame(service)
    contested = find_contested(tasks)
    return (
        environment()
        .get_template("dashboard_parts.html.j2")
        .render(
            summary=summary,
            settings=board.settings,
            forecast=draw_forecast(service.observer.plan.forecast),
            pace=draw_pace(board),
            contested=[show_contested(service, row) for row in state.to_records(contested)],
            n_contested=int(((tasks["labels"] > 1) & ~tasks["done"]).sum()),
            workers=state.to_records(workers.head(MOST_WORKERS)),
            n_workers=len(workers),
        )
    )


def find_contested(tasks: pd.DataFrame) -> pd.DataFrame:
    """Find the open tasks with several labels whose answer is least certain."""
    several = tasks[(tasks["labels"] > 1) & ~tasks["done"]]
    return several.sort_values("confidence", kind="stable").head(MOST_TASKS)


def show_contested(service: Service, row: dict[str, Any]) -> dict[str, Any]:
    """Describe a contested task, with the number of labels of each class."""
    found = state.show_task(service, service.board.tasks.number[row["task"]])
    votes: dict[str, int] = {}
    for label in found["labels"].values():
        votes[label] = votes.get(label, 0) + 1
    ordered = sorted(votes.items(), key=lambda pair: -pair[1])
    text = str(found["content"].get("text", ""))
    return row | {"votes": ordered, "text": words.shorten(words.clean(text), 90)}


def draw_forecast(forecast: pd.DataFrame | None) -> Markup | None:
    """Draw the expected accuracy of all labels by further cost."""
    if forecast is None or not len(forecast):
        return None
    columns = {name: forecast[name].tolist() for name in ("cost", "accuracy", "low", "high")}
    curve = Curve(
        "expected accuracy",
        columns["cost"],
        columns["accuracy"],
        0,
        columns["low"],
        columns["high"],
    )
    label = f"Expected accuracy, from {words.share(curve.y[0], 1)} to {words.share(curve.y[-1], 1)}"
    written = lambda value: words.share(value, 1)  # noqa: E731
    cost = lambda value: f"{value:,.6g}"  # noqa: E731
    return line_chart([curve], label, "further cost", written, x_written=cost)


def draw_pace(board: Board) -> Markup | None:
    """Draw the number of labels over time."""
    with board.lock:
        at = np.array(board.at)
    if len(at) < 2:
        return None
    end = float(at.max())
    span = end - float(at.min())
    step, unit, form = next((one for one in STEPS if span <= MOST_BARS * one[0]), STEPS[-1])
    last = int(end // step)
    first = max(int(at.min() // step), last - MOST_BARS + 1)
    place = (at // step).astype(np.int64) - first
    counts = np.bincount(place[place >= 0], minlength=last - first + 1)
    times = pd.to_datetime((first + np.arange(len(counts))) * step, unit="s")
    label = f"Labels over time: {plural(int(counts[-1]), 'label')} in the last bar"
    names = [time.strftime(form) for time in times]
    return bar_chart(names, counts.tolist(), "labels", label, f"{unit}, UTC")


def show_name(value: str, most: int = 60) -> Markup:
    """Write a name so that every browser can show it."""
    return words.name(words.clean(value), most)
