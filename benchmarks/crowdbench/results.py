"""The results of a table's runs: saved in one JSON file, shown as Markdown."""

from __future__ import annotations

import inspect
import json
import os
import platform
import sys
import time
from collections import Counter
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pandas as pd

from crowdbench.page import page
from crowdbench.plain import OFF
from crowdbench.summary import compare_pairs, summarize
from crowdbench.table import Table
from crowdwise.errors import FormatError, explain
from crowdwise.io.atomic import replace_file

PACKAGES = ("crowdwise", "numpy", "scipy", "scikit-learn", "pandas", "torch")
SECONDS = 10.0  # between two saves of unfinished work


class Results:
    """The runs of one table, on disk and in memory.

    A run is reused only if the method's settings are still the same: when they change, its old
    runs are dropped.
    """

    def __init__(
        self, table: Table, folder: Path, *, command: str = "", again: bool = False
    ) -> None:
        self.table, self.folder, self.command = table, folder, command
        self.file = folder / f"{table.name}.json"
        self.settings = {
            f"{row} on {column}": settings(table.rows[row].make(column))
            for row, column in table.cells()
        }
        self.runs: dict[tuple[str, str, int], dict[str, Any]] = {}
        self.has_figures = True  # whether any of the cells that were asked for could be run
        self._saved = time.monotonic()
        if self.file.exists() and not again:
            self._read()
        self._resumed = bool(self.runs)

    def has(self, row: str, column: str, seed: int) -> bool:
        found = self.runs.get((row, column, seed))
        return found is not None and "skipped" not in found

    def add(self, row: str, column: str, seed: int, found: dict[str, Any]) -> None:
        self.runs[row, column, seed] = {**found, "on": machine()}
        if time.monotonic() - self._saved > SECONDS:
            self.write()

    def summary(self) -> pd.DataFrame:
        """Mean, standard error and the published figure, one line per row, column and metric."""
        return summarize(self.table, self.runs)

    def write(self) -> None:
        """Save all runs, the page, and the figure where the table has one."""
        self._saved = time.monotonic()
        self.folder.mkdir(parents=True, exist_ok=True)
        about, summary = self.about(), self.summary()
        content = {
            "about": about,
            "settings": {place: self.settings[place] for place in self._places()},
            "summary": json.loads(summary.to_json(orient="records")),
            "pairs": compare_pairs(self.table, self.runs),
            "runs": [
                {"row": row, "column": column, "seed": seed, **found}
                for (row, column, seed), found in sorted(self.runs.items())
            ],
        }
        with replace_file(self.file) as out:
            out.write(line_by_line(content))
        with replace_file(self.file.with_suffix(".md")) as out:
            out.write(page(self.table, summary, content["pairs"], self.skipped(), about))
        if self.table.figure is not None and len(summary):
            with replace_file(self.file.with_suffix(".svg"), binary=True) as out:
                self.table.figure(summary, out)

    def about(self) -> dict[str, Any]:
        """The command, versions and machine that produced the figures."""
        whole = f"crowdwise bench {self.table.name}"  # what makes all of it from scratch
        return {
            "command": self.command if self.command and not self._resumed else whole,
            "date": datetime.now(UTC).strftime("%Y-%m-%d"),
            "python": platform.python_version(),
            "versions": {name: v for name in PACKAGES if (v := _version(name))},
            "machine": machine(),
            "runs": dict(Counter(run.get("on", "unknown") for run in self.runs.values())),
        }

    def skipped(self) -> dict[str, str]:
        """Why some cells are empty."""
        return {
            f"{row} on {column}": found["skipped"]
            for (row, column, _), found in sorted(self.runs.items())
            if "skipped" in found
        }

    def _read(self) -> None:
        try:
            stored = json.loads(self.file.read_text(encoding="utf-8"))
            runs, made_with = stored["runs"], stored["settings"]
        except (ValueError, KeyError, TypeError) as error:
            raise FormatError(
                explain(
                    f"{self.file} does not hold the runs of a table.",
                    first=str(error),
                    fix="move the file away, or start over with --again",
                )
            ) from error
        for run in runs:
            row, column, seed = run.pop("row"), run.pop("column"), run.pop("seed")
            place = f"{row} on {column}"
            if place in self.settings and made_with.get(place) == self.settings[place]:
                self.runs[row, column, seed] = run

    def _places(self) -> list[str]:
        return list(dict.fromkeys(f"{row} on {column}" for row, column, _ in sorted(self.runs)))


def line_by_line(content: dict[str, Any]) -> str:
    """JSON with one line per entry, so that diffs are readable."""
    parts = []
    for name, part in content.items():
        keyed = isinstance(part, dict)
        entries = [
            f"{json.dumps(key)}: {_compact(value)}" if keyed else _compact(value)
            for key, value in (part.items() if keyed else enumerate(part))
        ]
        opening, closing = "{}" if keyed else "[]"
        parts.append(f"{json.dumps(name)}: {opening}\n" + ",\n".join(entries) + f"\n{closing}")
    return "{" + ",\n".join(parts) + "}\n"


def _compact(value: Any) -> str:
    return json.dumps(_rounded(value), allow_nan=False)


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(one) for name, one in value.items()}
    return round(value, 6) if isinstance(value, float) else value


def settings(model: Any) -> str:
    """An estimator's non-default parameters, as text that is the same in every run.

    What is switched off is not mentioned.
    """
    if not hasattr(model, "get_params"):
        return type(model).__name__
    usual = inspect.signature(type(model)).parameters
    changed = {
        name: text
        for name, value in sorted(model.get_params(deep=False).items())
        if (text := _describe(value)) != _describe(usual[name].default)
        and not (name in OFF and value == OFF[name])
    }
    inside = ", ".join(f"{name}={text}" for name, text in changed.items())
    return f"{type(model).__name__}({inside})"


def _describe(value: Any) -> str:
    if hasattr(value, "get_params") and not isinstance(value, type):
        return settings(value)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_describe, value)) + "]"
    if callable(value):
        return getattr(value, "__name__", type(value).__name__)
    return repr(value)


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def machine() -> str:
    """The machine, as far as it matters for figures and times."""
    torch = _version("torch")
    software = f"Python {platform.python_version()}" + (f", torch {torch}" if torch else "")
    return f"{platform.machine()}, {os.cpu_count()} cores{_accelerator()} ({software})"


def _accelerator() -> str:
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return ""
    return f", {torch.cuda.get_device_name()}"
