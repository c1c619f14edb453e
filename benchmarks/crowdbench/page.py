"""A table's results as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from crowdbench.table import Table

SIGNS = {"better": "▲", "level": "=", "worse": "▼", "cannot tell": "cannot tell"}
NOT_BLIND = "†"
LEGEND = (
    "Ours is the mean ± standard error over {runs} runs, then the published figure, the "
    "difference, and ▲ better, = level or ▼ worse than published (by more than the 95 % interval "
    "of the difference; a figure published without an error counts as one run, as variable as "
    "ours). Where that interval is wider than five points, or unknown "
    "after a single run, nobody can tell."
)
STAND_IN = "not the paper's data, so its figures are for orientation only"


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
        names = list(table.columns) if table.overall is True else table.overall
        among = summary[summary["column"].isin(names)]
        title = "all columns" if table.overall is True else ", ".join(names)
        parts += [f"**Over {title}**", overall_table(among, table.metrics[0], table.losses)]
    for column, lines in summary.groupby("column", sort=False):
        parts.append(f"**{column}**" + _about(table, str(column)))
        parts.append(column_table(table, lines, int(runs)))
    if pairs:
        parts += ["**Paired over seeds**", pairs_table(pairs, blind_names(summary))]
    parts += [f"- {note}" for note in (*table.notes, *absences(table), *what_was_seen(summary))]
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
    shown = [m for m in (*table.metrics, *table.losses) if m in set(lines["metric"])]
    known = {m for m in shown if lines.loc[lines["metric"] == m, "published"].notna().any()}
    header = ["method"]
    for metric in shown:
        header += [metric, "published", "difference", ""] if metric in known else [metric]
    rows = []
    for row, values in lines.groupby("row", sort=False):
        by_metric = {line["metric"]: line for _, line in values.iterrows()}
        cells = [marked(str(row), values["not_blind"].iloc[0])]
        for metric in shown:
            cells += cells_of(by_metric.get(metric), published=metric in known, usual=usual)
        rows.append([*cells, f"{values['seconds'].iloc[0]:.1f}"])
    for row, missing in table.absent.items():
        theirs = missing.published.get(str(lines["column"].iloc[0]), {})
        if theirs:
            cells = [row]
            for metric in shown:
                value = f"{theirs[metric].value:.4g}" if metric in theirs else ""
                cells += ["-", value, "", ""] if metric in known else ["-"]
            rows.append([*cells, "-"])
    return markdown_table([*header, "seconds"], rows)


def marked(row: str, not_blind: Any) -> str:
    """A row's name, with a mark if test results had been seen before its settings were fixed."""
    return f"{row} {NOT_BLIND}" if isinstance(not_blind, str) and not_blind else row


def blind_names(summary: pd.DataFrame) -> dict[tuple[str, str], str]:
    """How each row of each column is named."""
    return {
        (line["row"], line["column"]): marked(line["row"], line["not_blind"])
        for _, line in summary.iterrows()
    }


def what_was_seen(summary: pd.DataFrame) -> list[str]:
    """What the marks mean, each reason once, with where it applies."""
    seen: dict[str, dict[str, None]] = {}
    for _, line in summary.iterrows():
        if isinstance(line["not_blind"], str) and line["not_blind"]:
            seen.setdefault(line["not_blind"], {})[line["column"]] = None
    return [f"{NOT_BLIND} Not blind on {', '.join(on)}: {why}" for why, on in seen.items()]


def absences(table: Table) -> list[str]:
    """Why rows of the paper are missing."""
    return [f"{row} was not run: {missing.reason}" for row, missing in table.absent.items()]


def overall_table(summary: pd.DataFrame, metric: str, losses: Sequence[str] = ()) -> str:
    """Mean and rank over the columns of the rows that have all runs of them, best first.

    The last lines compare the best single row with the best row of each column.
    """
    lines = summary[summary["metric"] == metric]
    seen = lines.dropna(subset="not_blind").set_index("row")["not_blind"].to_dict()
    wide = over_columns(summary, metric)
    common = wide.loc[:, wide.notna().all()]
    if common.empty:
        return "No method has all runs on all of them yet."
    rank = common.rank(axis=1, ascending=False).mean()
    lost = [over_columns(summary, loss).mean() for loss in losses]
    seconds = lines.groupby("row")["seconds"].sum()
    means = common.mean().sort_values(ascending=False)
    rows = [
        [
            marked(str(row), seen.get(row)),
            *(f"{one[row]:.4f}" for one in (means, *lost)),
            f"{rank[row]:.1f}",
            f"{seconds[row]:.1f}",
        ]
        for row in means.index
    ]
    best, blank = common.max(axis=1).mean(), [""] * (len(lost) + 2)
    rows.append(["best row of each column", f"{best:.4f}", *blank])
    rows.append(["gap to the best single row", f"{best - means.iloc[0]:.4f}", *blank])
    header = ["method", f"mean {metric}, {len(common)} columns", *losses, "mean rank"]
    others = sorted(set(lines["row"]) - set(common))
    note = f"\n\nWith fewer columns or runs: {', '.join(others)}." if others else ""
    return markdown_table([*header, "seconds in all"], rows) + note


def over_columns(summary: pd.DataFrame, metric: str) -> pd.DataFrame:
    """The means of a metric, column x row, of rows that have as many runs as any."""
    lines = summary[summary["metric"] == metric]
    most = lines.groupby("column")["runs"].transform("max")
    whole = lines[(lines["runs"] == most) | (lines["runs"] == 1) & lines["error"].notna()]
    return whole.pivot(index="column", columns="row", values="mean")


def cells_of(line: Any, *, published: bool, usual: int) -> list[str]:
    """A figure with its error, and beside it the published one."""
    if line is None or pd.isna(line["mean"]):
        return ["-", "", "", ""] if published else ["-"]
    error = f" ± {line['error']:.4f}" if line["runs"] > 1 else ""
    error += " (1 run)" if pd.isna(line["error"]) else ""
    error += f" ({line['runs']} runs)" if 1 < line["runs"] < usual else ""
    ours = f"{line['mean']:.4f}{error}"
    if not published:
        return [ours]
    if pd.isna(line["published"]):
        return [ours, "", "", ""]
    error = "" if pd.isna(line["published_error"]) else f" ± {line['published_error']:.3f}"
    theirs = f"{line['published']:.4g}{error}"
    if line["mark"] not in SIGNS:  # of a stand-in
        return [ours, theirs, "", ""]
    return [ours, theirs, f"{line['difference']:+.4f}", SIGNS[line["mark"]]]


def pairs_table(pairs: Sequence[Mapping[str, Any]], names: Mapping[tuple[str, str], str]) -> str:
    """Which of two methods is better, seed by seed."""
    rows = [
        [
            " - ".join(names.get((p[one], p["column"]), p[one]) for one in ("first", "second")),
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
    chosen = table.columns[column]
    known = any(row.published.get(column) for row in table.rows.values())
    text = "; ".join(filter(None, [chosen.about, STAND_IN if chosen.stand_in and known else ""]))
    return f": {text}" if text else ""
