"""What ``crowdwise bench`` found: method by method, and as a table to choose by."""

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from sitegen.measured import made, stored, table, tables, title_of

MAIN = re.compile(r"-table[12]$|labelme|mgc|medical")  # tables that a reader chooses by
MOST_COLUMNS = 4  # of a table that are listed one by one
PLAIN_TABLES = ("accuracy", "truth-inference")  # whose figures aggregators show set by set
MEASURES = ("accuracy", "balanced accuracy", "macro F1", "AUC")


def method_of(made_with: str, known: Sequence[str], embedders: Sequence[str]) -> str | None:
    """Which class made a figure: the embedder inside, or the outermost class if it is ours."""
    words = re.findall(r"\b(\w+)\(", made_with)
    inside = [word for word in words if word in embedders]
    return next(iter([*inside, *(word for word in words[:1] if word in known)]), None)


def bench_results(method: str, known: Sequence[str], embedders: Sequence[str]) -> str:
    """What ``crowdwise bench`` and the learners' comparison measured of a method."""
    parts = []
    for name in tables():
        lines = [
            line
            for made_with, line in figures_of(name)
            if method_of(made_with, known, embedders) == method
        ]
        parts += [of_bench(name, lines), of_comparison(name, method)]
    return "\n".join(part for part in parts if part)


@cache
def figures_of(name: str) -> list[tuple[str, dict[str, Any]]]:
    """The figures of a table that readers compare methods by, each with what made it."""
    places = stored(name).get("settings", {})
    return [
        (places.get(f"{line['row']} on {line['column']}", ""), line)
        for line in stored(name).get("summary", [])
        if shown(name, line)
    ]


def of_bench(name: str, lines: Sequence[dict[str, Any]]) -> str:
    """A method's figures in one table of ``crowdwise bench``."""
    rows = [
        [line["column"], line["row"], line["metric"], figure(line), published(line)]
        for line in lines
    ]
    head = ["data", "as", "measure", "here", "published"]
    return f"{table(head, rows, text=3)}\n{made(name)}\n" if rows else ""


def of_comparison(name: str, method: str) -> str:
    """A method's figures in a comparison of learners."""
    rows = [
        [row["method"], f"{row['accuracy']:.4f} ± {row['accuracy_se']:.4f}", row["n_seeds"]]
        for row in stored(name).get("rows", [])
        if "accuracy_se" in row and row["method"].split(",")[0] == method
    ]
    return f"{table(['as', 'test accuracy', 'seeds'], rows)}\n{made(name)}\n" if rows else ""


def shown(name: str, line: dict[str, Any]) -> bool:
    """Whether a figure is one that readers compare methods by."""
    if name in PLAIN_TABLES or name.endswith("-settings") or line["mean"] is None:
        return False
    return line["metric"] in MEASURES or line.get("published") is not None


def figure(line: dict[str, Any]) -> str:
    error = f" ± {line['error']:.4f}" if line["runs"] > 1 else ""
    return f"{line['mean']:.4f}{error}"


def published(line: dict[str, Any]) -> str:
    return "" if line.get("published") is None else f"{line['published']:.4g}"


def best_learners() -> str:
    """The decision table for features and labels: the best of every main table."""
    rows = []
    for name in filter(MAIN.search, tables()):
        for data, scores in learner_scores(name).items():
            order = sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))
            best = ", ".join(f"{row} {value:.3f}" for row, value in order[:3])
            plain = [value for row, value in order if re.match(r"(MV|Majority)\b", row)]
            link = f"[{title_of(name)}](../benchmarks/results/{name}.md)"
            where = f"{link}: {data}" if data else link
            rows.append([where, best, f"{plain[0]:.3f}" if plain else ""])
    if not rows:
        return "Not measured yet.\n"
    head = ["data", "best three, test accuracy", "best after majority vote"]
    return table(head, rows, text=2)


def learner_scores(name: str) -> dict[str, dict[str, float]]:
    """Accuracies of a table: data, then method. Many columns are taken together, as a mean."""
    found: dict[str, dict[str, float]] = {}
    for line in stored(name).get("summary", []):
        if line["metric"] == "accuracy" and line["mean"] is not None:
            found.setdefault(line["column"], {})[line["row"]] = line["mean"]
    for row in stored(name).get("rows", []):
        if "accuracy_se" in row:
            found.setdefault("", {})[row["method"]] = row["accuracy"]
    if len(found) <= MOST_COLUMNS:
        return found
    able = set.intersection(*(set(one) for one in found.values()))
    mean = {row: sum(one[row] for one in found.values()) / len(found) for row in able}
    return {f"mean of {len(found)}": mean}
