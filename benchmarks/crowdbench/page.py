"""A table's results as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from crowdbench.table import Table

SIGNS = {"better": "▲", "level": "=", "worse": "▼"}
LEGEND = (
    "Ours is the mean ± standard error over {runs} runs, then the published figure, the "
    "difference, and ▲ better, = level or ▼ worse than published (by more than 1.96 standard "
    "errors of the difference; a figure published without an error counts as one run, as "
    "variable as ours)."
)


def page(
    table: Table,
    summary: pd.DataFrame,
    pairs: Sequence[Mapping[str, Any]],
    skipped: Mapping[str, str],
    about: Mapping[str, Any],
) -> str:
    """The whole page: what it is, a table for every column, comparisons, notes, provenance."""
    parts = [f"# {table.title}", f"{table.source} {table.about}".strip()]
    runs = summary["runs"].max() if len(summary) else 0
    if len(summary):
        parts.append(
            LEGEND.format(runs=runs)
            if summary["published"].notna().any()
            else f"Mean ± standard error over {runs} runs."
        )
    if table.overall and len(summary):
        parts += ["**Over all columns**", overall_table(summary, table.metrics[0])]
    for column, lines in summary.groupby("column", sort=False):
        parts.append(f"**{column}**" + _about(table, str(column)))
        parts.append(column_table(table, lines, int(runs)))
    if pairs:
        parts += ["**Paired over seeds**", pairs_table(pairs)]
    parts += [f"- {note}" for note in table.notes]
    ran = set(zip(summary["row"], summary["column"], strict=True))
    missing = [cell for cell in table.cells() if cell not in ran]
    if len(missing) > len(skipped):
        parts.append(f"Not run yet: {len(missing) - len(skipped)} of {len(table.cells())} cells.")
    if skipped:
        parts.append("Not run: " + "; ".join(f"{k} ({v})" for k, v in skipped.items()) + ".")
    return "\n\n".join([*parts, footer(about)]) + "\n"


def column_table(table: Table, lines: pd.DataFrame, usual: int) -> str:
    """One line per method: each metric beside the published figure, then seconds.

    A figure from fewer than ``usual`` runs has their number beside it.
    """
    shown = [m for m in table.metrics if m in set(lines["metric"])]
    known = {m for m in shown if lines.loc[lines["metric"] == m, "published"].notna().any()}
    header = ["method"]
    for metric in shown:
        header += [metric, "published", "difference", ""] if metric in known else [metric]
    rows = []
    for row, values in lines.groupby("row", sort=False):
        by_metric = {line["metric"]: line for _, line in values.iterrows()}
        cells = [str(row)]
        for metric in shown:
            cells += cells_of(by_metric.get(metric), published=metric in known, usual=usual)
        rows.append([*cells, f"{values['seconds'].iloc[0]:.1f}"])
    return markdown_table([*header, "seconds"], rows)


def overall_table(summary: pd.DataFrame, metric: str) -> str:
    """Mean and rank over the columns of the rows that have them all, best first.

    The last lines compare the best single row with the best row of each column.
    """
    lines = summary[summary["metric"] == metric]
    wide = lines.pivot(index="column", columns="row", values="mean")
    common = wide.loc[:, wide.notna().all()]
    rank = common.rank(axis=1, ascending=False).mean()
    seconds = lines.groupby("row")["seconds"].sum()
    means = common.mean().sort_values(ascending=False)
    rows = [
        [str(row), f"{mean:.4f}", f"{rank[row]:.1f}", f"{seconds[row]:.1f}"]
        for row, mean in means.items()
    ]
    best = common.max(axis=1).mean()
    rows.append(["best row of each column", f"{best:.4f}", "", ""])
    rows.append(["gap to the best single row", f"{best - means.iloc[0]:.4f}", "", ""])
    header = ["method", f"mean {metric}, {len(common)} columns", "mean rank", "seconds in all"]
    others = sorted(set(wide) - set(common))
    note = f"\n\nOnly on some columns: {', '.join(others)}." if others else ""
    return markdown_table(header, rows) + note


def cells_of(line: Any, *, published: bool, usual: int) -> list[str]:
    """A figure with its error, and beside it the published one."""
    if line is None or pd.isna(line["mean"]):
        return ["-", "", "", ""] if published else ["-"]
    error = f" ± {line['error']:.4f}" if line["runs"] > 1 else ""
    error += f" ({line['runs']} runs)" if 1 < line["runs"] < usual else ""
    ours = f"{line['mean']:.4f}{error}"
    if not published:
        return [ours]
    if pd.isna(line["published"]):
        return [ours, "", "", ""]
    theirs = "" if pd.isna(line["published_error"]) else f" ± {line['published_error']:.3f}"
    return [
        ours,
        f"{line['published']:.4g}{theirs}",
        f"{line['difference']:+.4f}",
        SIGNS[line["mark"]],
    ]


def pairs_table(pairs: Sequence[Mapping[str, Any]]) -> str:
    """Which of two methods is better, seed by seed."""
    rows = [
        [
            f"{p['first']} - {p['second']}",
            p["column"],
            p["metric"],
            f"{p['mean']:+.4f} ± {p['error']:.4f}",
            f"{p['p']:.3f}",
        ]
        for p in pairs
    ]
    return markdown_table(["difference", "column", "metric", "mean", "p"], rows)


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; the first column is text, the others are numbers."""
    lines = ["| " + " | ".join(header) + " |", "|---" + "|---:" * (len(header) - 1) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def footer(about: Mapping[str, Any]) -> str:
    """How these figures were made."""
    versions = ", ".join(f"{name} {number}" for name, number in about["versions"].items())
    runs = "; ".join(f"{count} runs on {place}" for place, count in about["runs"].items())
    return (
        f"Made by `{about['command']}`, last on {about['date']} with Python {about['python']}, "
        f"{versions}. {runs}."
    )


def _about(table: Table, column: str) -> str:
    text = table.columns[column].about
    return f": {text}" if text else ""
