"""What was measured, from the files in benchmarks/results: nothing here is typed by hand."""

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results"


@cache
def stored(name: str) -> dict[str, Any]:
    """One result file, or nothing where it has not been made."""
    file = RESULTS / f"{name}.json"
    try:
        return json.loads(file.read_text()) if file.exists() else {}
    except ValueError as error:
        raise ValueError(f"{file} is not JSON: {error}") from error


def tables() -> list[str]:
    """Names of all results that have a page."""
    return sorted(file.stem for file in RESULTS.glob("*.md"))


def title_of(name: str) -> str:
    return (RESULTS / f"{name}.md").read_text().partition("\n")[0].lstrip("# ")


def table(header: Sequence[str], rows: Sequence[Sequence[Any]], *, text: int = 1) -> str:
    """A Markdown table whose first columns are text and whose others are numbers."""
    rule = "|---" * text + "|---:" * (len(header) - text) + "|"
    lines = ["| " + " | ".join(header) + " |", rule]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows]) + "\n"


def made(name: str) -> str:
    """Where figures come from."""
    about = stored(name).get("about", {})
    if not about:
        return ""
    return (
        f"From [{title_of(name)}](../../benchmarks/results/{name}.md), "
        f"made by `{about['command']}` on {about['date']}."
    )


def index(*, full: bool = False) -> str:
    """Every committed table and what made it; in full, also how it compares and when it ran."""
    rows = []
    for name in tables():
        about = stored(name).get("about", {})
        link = f"[{title_of(name)}](../benchmarks/results/{name}.md)"
        row = [link, f"`{about.get('command', '')}`"]
        rows.append([*row, about.get("date", ""), compared(name)] if full else row)
    head = ["table", "made by"]
    return table([*head, "on", "against published"] if full else head, rows, text=2)


def column(name: str, chosen: str, metrics: Sequence[str]) -> str:
    """Ours and the published figures of one column, a line for each method."""
    found = {
        (line["row"], line["metric"]): line
        for line in stored(name).get("summary", [])
        if line["column"] == chosen
    }
    rows = []
    for method in dict.fromkeys(row for row, _ in found):
        cells = [method]
        for metric in metrics:
            line = found[method, metric]
            error, published = line.get("error"), line.get("published")
            ours = f"{line['mean']:.3f}" + (f" ± {error:.3f}" if error else "")
            cells += [ours, "" if published is None else f"{published:.3f}"]
        rows.append(cells)
    return table(["method", *(part for metric in metrics for part in (metric, "published"))], rows)


def compared(name: str) -> str:
    """How many figures of a table are better, level or worse than published ones."""
    marks = [line.get("mark") for line in stored(name).get("summary", [])]
    counts = {word: marks.count(word) for word in ("better", "level", "worse")}
    return ", ".join(f"{n} {word}" for word, n in counts.items()) if any(counts.values()) else ""


def figures() -> set[float]:
    """Every number in the committed files, for a check that no page has another."""
    found: set[float] = set()
    for name in sorted(file.stem for file in RESULTS.glob("*.json")):
        todo: list[Any] = [stored(name)]
        while todo:
            one = todo.pop()
            if isinstance(one, dict):
                todo += one.values()
            elif isinstance(one, list):
                todo += one
            elif isinstance(one, float):
                found.add(abs(one))
    return found
