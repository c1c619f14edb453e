"""Measured results, from the files in benchmarks/results; no number is typed by hand."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parents[1] / "benchmarks" / "results"
CROWDS = "truth-inference"  # every aggregator on every real crowd
PLAIN = "MajorityVote"
MAIN = re.compile(r"-table[12]$|labelme|mgc|medical")  # tables to choose a learner by
NOT_BLIND = "†"
MOST_COLUMNS = 4  # of a table that are listed one by one
MEASURES = ("accuracy", "balanced accuracy", "macro F1", "AUC")
AIMS = [  # goal, measure, and whether higher is better
    ("most tasks right", "accuracy", True),
    ("all classes alike, rare ones included", "macro F1", True),
    ("the rarest class found", "minority F1", True),
    ("probabilities to act on", "log loss", False),
    ("calibrated confidence", "calibration error", False),
    ("a result at once", "seconds", False),
]


@cache
def stored(name: str) -> dict[str, Any]:
    """One result file, or nothing if there is none."""
    file = RESULTS / f"{name}.json"
    return json.loads(file.read_text()) if file.exists() else {}


def lines_of(name: str) -> list[dict[str, Any]]:
    """The figures of a table: row, column, metric, mean, error and so on."""
    return [line for line in stored(name).get("summary", []) if line["mean"] is not None]


def tables() -> list[str]:
    """Names of all results that have a page."""
    return sorted(file.stem for file in RESULTS.glob("*.md"))


def title_of(name: str) -> str:
    return (RESULTS / f"{name}.md").read_text().partition("\n")[0].lstrip("# ")


def link(name: str, up: str = "..") -> str:
    return f"[{title_of(name)}]({up}/benchmarks/results/{name}.md)"


def table(header: Sequence[str], rows: Sequence[Sequence[Any]], *, text: int = 1) -> str:
    """A Markdown table whose first columns are text and whose others are numbers."""
    rule = "|---" * text + "|---:" * (len(header) - text) + "|"
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in rows]
    return "\n".join(["| " + " | ".join(header) + " |", rule, *lines]) + "\n"


def body(name: str) -> str:
    """A committed table, without its heading."""
    file = RESULTS / f"{name}.md"
    return file.read_text().partition("\n\n")[2] if file.exists() else "Not measured yet.\n"


def index(*, full: bool = False) -> str:
    """Every table with its command; in full, also its date and how it compares."""
    rows = []
    for name in tables():
        about = stored(name).get("about", {})
        row = [link(name), f"`{about.get('command', '')}`"]
        rows.append([*row, about.get("date", ""), compared(name)] if full else row)
    head = ["table", "made by", *(["on", "against published"] if full else [])]
    return table(head, rows, text=2)


def compared(name: str) -> str:
    """How many figures of a table are better, level or worse than published ones."""
    marks = [line.get("mark") for line in stored(name).get("summary", [])]
    counts = {word: marks.count(word) for word in ("better", "level", "worse", "cannot tell")}
    return ", ".join(f"{n} {word}" for word, n in counts.items()) if any(counts.values()) else ""


def column(name: str, chosen: str, metrics: Sequence[str]) -> str:
    """Our figures and the published ones of one column, one line per method."""
    found = {
        (line["row"], line["metric"]): line for line in lines_of(name) if line["column"] == chosen
    }
    rows = []
    for method in dict.fromkeys(row for row, _ in found):
        lines = [found[method, metric] for metric in metrics]
        rows.append(
            [
                marked(method, lines),
                *(cell for line in lines for cell in (ours(line, 3), theirs(line, ".3f"))),
            ]
        )
    head = ["method", *(part for metric in metrics for part in (metric, "published"))]
    return table(head, rows) + what_was_seen(found.values())


def marked(method: str, lines: Iterable[dict[str, Any]]) -> str:
    """A row's name, with a mark if test results had been seen before its settings were fixed."""
    return f"{method} {NOT_BLIND}" if any(line.get("not_blind") for line in lines) else method


def what_was_seen(lines: Iterable[dict[str, Any]]) -> str:
    """What the marks mean, under a table."""
    reasons = dict.fromkeys(why for line in lines if (why := line.get("not_blind")))
    return "".join(f"\n{NOT_BLIND} Not blind: {why}\n" for why in reasons)


def ours(line: dict[str, Any], digits: int) -> str:
    error = line.get("error")
    spread = f" ± {error:.{digits}f}" if error and line["runs"] > 1 else ""
    return f"{line['mean']:.{digits}f}{spread}"


def theirs(line: dict[str, Any], form: str) -> str:
    return "" if line.get("published") is None else f"{line['published']:{form}}"


def source(name: str) -> str:
    """Where the numbers on a method's page come from."""
    about = stored(name).get("about", {})
    made = f", made by `{about['command']}` on {about['date']}." if about else "."
    return f"From {link(name, '../..')}{made}\n"


def by_set(measure: str = "accuracy") -> dict[str, dict[str, float]]:
    """A measure of every aggregator on every real crowd: set, then method."""
    found: dict[str, dict[str, float]] = {}
    metric, field = ("accuracy", "seconds") if measure == "seconds" else (measure, "mean")
    for line in stored(CROWDS).get("summary", []):
        if line["metric"] == metric and line[field] is not None:
            found.setdefault(line["column"], {})[line["row"]] = line[field]
    return found


def means(
    sets: Sequence[str] | None = None, measure: str = "accuracy", *, most: bool = True
) -> list[tuple[str, float]]:
    """Mean of a measure over sets, best first, of the methods that handle all of them."""
    values = by_set(measure)
    mean = mean_of([values[name] for name in (sets if sets is not None else values)])
    return sorted(mean.items(), key=lambda pair: (-pair[1] if most else pair[1], pair[0]))


def mean_of(scores: Sequence[dict[str, float]]) -> dict[str, float]:
    """Means by method, for the methods present in all."""
    able = set.intersection(*map(set, scores)) if scores else set()
    return {method: sum(one[method] for one in scores) / len(scores) for method in able}


def rank_in(values: dict[str, float], method: str) -> int:
    return 1 + sum(round(other, 6) > round(values[method], 6) for other in values.values())


def aggregator_results(name: str) -> str:
    """An aggregator's accuracy on every real crowd, its place there, and its mean."""
    values = {crowd: one for crowd, one in by_set().items() if name in one}
    if not values:
        return ""
    order = [method for method, _ in means()]
    head = ["crowd", "accuracy", "place", "majority vote", "best method"]
    rows = [
        [f"`{crowd}`", f"{one[name]:.3f}", f"{rank_in(one, name)} of {len(one)}",
         f"{one.get(PLAIN, float('nan')):.3f}", f"{max(one.values()):.3f}"]
        for crowd, one in values.items()
    ]  # fmt: skip
    mean = ""
    if name in order:
        place = f"place {order.index(name) + 1} of {len(order)}"
        mean = f"Mean accuracy {dict(means())[name]:.4f}, {place}.\n\n"
    return f"{mean}{table(head, rows)}\n{source(CROWDS)}"


def kinds_of_crowd() -> dict[str, list[str]]:
    """Real crowds by what a reader knows of a crowd before any method has run."""
    from crowdwise.datasets import info

    counts = {name: info(name).counts for name in by_set()}

    def where(holds: Callable[[dict[str, int]], bool]) -> list[str]:
        return [name for name, count in counts.items() if holds(count)]

    return {
        "any crowd": list(counts),
        "two classes": where(lambda c: c["classes"] == 2),
        "more than two classes": where(lambda c: c["classes"] > 2),
        "under 5 labels per task": where(lambda c: c["annotations"] < 5 * c["tasks"]),
        "10 or more labels per task": where(lambda c: c["annotations"] >= 10 * c["tasks"]),
        "under 60 labels per worker": where(lambda c: c["annotations"] < 60 * c["workers"]),
        "100 or more labels per worker": where(lambda c: c["annotations"] >= 100 * c["workers"]),
    }


def best_by_kind() -> str:
    """The decision table for labels alone."""
    rows = []
    for kind, sets in kinds_of_crowd().items():
        if order := means(sets):
            best = ", ".join(f"`{method}` {value:.3f}" for method, value in order[:3])
            rows.append([kind, best, f"{dict(order)[PLAIN]:.3f}", len(sets)])
    head = ["your crowd has", "best three on average, accuracy", "`MajorityVote`", "real crowds"]
    return table(head, rows, text=2)


def best_by_aim() -> str:
    """The same by goal."""
    rows = []
    for aim, measure, most in AIMS:
        if order := means(measure=measure, most=most):
            best = ", ".join(f"`{method}` {value:.3g}" for method, value in order[:3])
            rows.append([aim, measure, best, f"{dict(order)[PLAIN]:.3g}"])
    return table(["you want", "mean of", "best three", "`MajorityVote`"], rows, text=3)


def best_learners() -> str:
    """The decision table for features and labels: the best of every main table."""
    rows = []
    for name in filter(MAIN.search, tables()):
        for data, scores in learner_scores(name).items():
            order = sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))
            best = ", ".join(
                f"{marked(row, behind(name, row, data))} {value:.3f}" for row, value in order[:3]
            )
            plain = [f"{value:.3f}" for row, value in order if re.match(r"(MV|Majority)\b", row)]
            rows.append([f"{link(name)}: {data}", best, next(iter(plain), "")])
    head = ["data", "best three, test accuracy", "best after majority vote"]
    note = f"\n{NOT_BLIND} Not blind: test results had been seen before settings were fixed.\n"
    return table(head, rows, text=2) + note


def behind(name: str, row: str, data: str) -> list[dict[str, Any]]:
    """The lines of a row that :func:`learner_scores` took: of one column, or of all."""
    own = [line for line in lines_of(name) if line["row"] == row]
    return [line for line in own if line["column"] == data] or own


def learner_scores(name: str) -> dict[str, dict[str, float]]:
    """Accuracies of a table: data, then method. Many columns are taken together, as a mean.

    What varies from run to run and ran once is left out.
    """
    found: dict[str, dict[str, float]] = {}
    for line in lines_of(name):
        if line["metric"] == "accuracy" and line["error"] is not None:
            found.setdefault(line["column"], {})[line["row"]] = line["mean"]
    if len(found) <= MOST_COLUMNS:
        return found
    return {f"mean of {len(found)}": mean_of(list(found.values()))}


def bench_results(method: str, known: Sequence[str], embedders: Sequence[str]) -> str:
    """What ``crowdwise bench`` measured of a method, table by table."""
    parts = []
    for name in tables():
        lines = [
            line
            for made_with, line in figures_of(name)
            if method_of(made_with, known, embedders) == method
        ]
        rows = [
            [
                line["column"],
                marked(line["row"], [line]),
                line["metric"],
                ours(line, 4),
                theirs(line, ".4g"),
            ]
            for line in lines
        ]
        if rows:
            head = ["data", "as", "measure", "here", "published"]
            if not any(row[-1] for row in rows):
                head, rows = head[:-1], [row[:-1] for row in rows]
            parts.append(f"{table(head, rows, text=3)}{what_was_seen(lines)}\n{source(name)}")
    return "\n".join(parts)


@cache
def figures_of(name: str) -> list[tuple[str, dict[str, Any]]]:
    """The figures of a table that readers compare methods by, each with what made it."""
    if name == CROWDS or name.endswith("-settings"):
        return []
    made_with = stored(name).get("settings", {})
    return [
        (made_with.get(f"{line['row']} on {line['column']}", ""), line)
        for line in lines_of(name)
        if line["metric"] in MEASURES or line.get("published") is not None
    ]


def method_of(made_with: str, known: Sequence[str], embedders: Sequence[str]) -> str | None:
    """The method a number is about: the embedder inside, or the outermost class if it is ours."""
    words = re.findall(r"\b(\w+)\(", made_with)
    inside = [word for word in words if word in embedders]
    return next(iter([*inside, *(word for word in words[:1] if word in known)]), None)


def figures() -> set[float]:
    """Every number in the committed files, for a check that no page has another."""

    def numbers(one: Any) -> Iterator[float]:
        if isinstance(one, float):
            yield abs(one)
        elif isinstance(one, dict | list):
            for part in one.values() if isinstance(one, dict) else one:
                yield from numbers(part)

    return {value for file in RESULTS.glob("*.json") for value in numbers(stored(file.stem))}
