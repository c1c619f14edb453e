"""Means over seeds, with their errors, beside the published figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from crowdbench.table import Published, Table

Runs = Mapping[tuple[str, str, int], Mapping[str, Any]]
LEVEL = 0.975  # of the two-sided interval of 95 %
WIDE = 0.05  # an interval of the difference that is wider says little


def summarize(table: Table, runs: Runs) -> pd.DataFrame:
    """One line per row, column and metric that has runs.

    ``error`` is the standard error of the mean over seeds; NaN if what varies ran once. ``mark``
    compares with the published figure: better or worse by more than the 95 % interval of the
    difference (Student's t, since seeds are few), else level, or "cannot tell" where that
    interval is wider than five points or unknown. A figure published without an error is taken
    as a single run, as variable as ours. On a stand-in nothing is compared. ``not_blind`` says
    what had been seen before the settings were fixed.
    """
    lines = []
    for column in table.columns:
        for row in table.rows:
            found = [
                run for (r, c, _), run in runs.items() if (r, c) == (row, column) and _ran(run)
            ]
            for metric in found[0]["figures"] if found else ():
                values = np.array([run["figures"][metric] for run in found], dtype=float)
                known = table.published(row, column, metric)
                figures = _figures(values, known, compare=not table.columns[column].stand_in)
                if len(found) == 1 and table.needs_seeds(row, column):
                    figures["error"] = float("nan")
                    figures |= {"mark": "cannot tell"} if "mark" in figures else {}
                seconds = np.mean([run["seconds"] for run in found])
                peak = max(run["peak_mb"] for run in found)
                place = {"column": column, "row": row, "metric": metric}
                costs = {"seconds": seconds, "peak_mb": peak}
                seen = {"not_blind": table.not_blind(row, column) or None}
                lines.append({**place, **figures, **costs, **seen})
    columns = ["column", "row", "metric", "mean", "error", "deviation", "runs", "published"]
    columns += ["published_error", "difference", "mark", "seconds", "peak_mb", "not_blind"]
    return pd.DataFrame(lines, columns=columns)


def _ran(run: Mapping[str, Any]) -> bool:
    return "figures" in run


def _figures(
    values: np.ndarray[Any, Any], known: Published | None, *, compare: bool
) -> dict[str, Any]:
    values = values[~np.isnan(values)]
    n = len(values)
    mean = float(values.mean()) if n else float("nan")
    deviation = float(values.std(ddof=1)) if n > 1 else 0.0
    found: dict[str, Any] = {
        "mean": mean,
        "error": deviation / np.sqrt(max(n, 1)),
        "deviation": deviation,
        "runs": n,
    }
    if known is None:
        return found
    theirs = {"published": known.value, "published_error": known.error}
    if not compare:
        return {**found, **theirs}
    return {**found, **theirs, "difference": mean - known.value, "mark": mark(found, known)}


def mark(ours: Mapping[str, float], known: Published) -> str:
    """Better, level or worse than published; or "cannot tell"."""
    theirs = ours["deviation"] if known.error is None else known.error
    rounding = 5e-5 if known.error is None else 5e-4
    error = float(np.hypot(ours["error"], theirs)) + rounding
    n = ours["runs"]
    reach = error * float(stats.t.ppf(LEVEL, n - 1) if n > 1 else stats.norm.ppf(LEVEL))
    difference = ours["mean"] - known.value
    if abs(difference) <= reach:
        return "cannot tell" if 2 * reach > WIDE else "level"
    return "better" if difference > 0 else "worse"


def compare_pairs(table: Table, runs: Runs) -> list[dict[str, Any]]:
    """The table's comparisons, by a paired t-test over the seeds both rows ran."""
    lines = []
    for column in table.columns:
        for first, second in table.pairs:
            for metric in table.metrics[:2]:  # the headline ones
                gap = _gaps(runs, column, (first, second), metric)
                if len(gap) < 2:
                    continue
                still = bool(np.allclose(gap, gap[0]))
                p = float(gap[0] == 0) if still else float(stats.ttest_1samp(gap, 0.0).pvalue)
                place = {"column": column, "first": first, "second": second, "metric": metric}
                error = float(gap.std(ddof=1) / np.sqrt(len(gap)))
                sizes = {"mean": float(gap.mean()), "error": error, "runs": len(gap)}
                lines.append({**place, **sizes, "p": p})
    return lines


def _gaps(
    runs: Runs, column: str, rows: tuple[str, str], metric: str
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """First minus second, seed by seed; a row that ran once stands for every seed."""
    by_seed = [
        {
            seed: run["figures"][metric]
            for (r, c, seed), run in runs.items()
            if (r, c) == (row, column) and _ran(run) and run["figures"].get(metric) is not None
        }
        for row in rows
    ]
    for one, other in (by_seed, by_seed[::-1]):
        if set(one) == {0}:
            one.update(dict.fromkeys(other, one[0]))
    shared = sorted(set(by_seed[0]) & set(by_seed[1]))
    gap = np.array([by_seed[0][s] - by_seed[1][s] for s in shared], dtype=float)
    return gap[~np.isnan(gap)]
