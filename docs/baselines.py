"""The learner to start with, beside the baselines of the table of defaults."""

from collections.abc import Callable, Iterable

from measured import lines_of, table

START = "AutoClassifier"
BASELINES = ("majority vote + LR", "vote shares + LR", "IBCC + LR")


def start_beside_baselines() -> str:
    """AutoClassifier and the best baseline, in accuracy and in log loss, on every column."""
    found: dict[str, dict[str, dict[str, float]]] = {}  # by column, measure and row
    for line in lines_of("defaults"):
        if line["row"] in {START, *BASELINES}:
            measures = found.setdefault(line["column"], {})
            measures.setdefault(line["metric"], {})[line["row"]] = line["mean"]
    rows = []
    for name, measures in found.items():
        pairs = [rivals(measures, "accuracy", max), rivals(measures, "log loss", min)]
        if all(pairs):
            rows.append([name, *(f"{figure:.3f}" for pair in pairs for figure in pair)])
    head = ["column", "accuracy", "best baseline", "log loss", "best baseline"]
    return table(head, rows)


def rivals(
    measures: dict[str, dict[str, float]], measure: str, best: Callable[[Iterable[float]], float]
) -> list[float]:
    """What AutoClassifier reaches, and the best baseline; nothing if one is not measured."""
    others = {row: figure for row, figure in measures.get(measure, {}).items() if row in BASELINES}
    own = measures.get(measure, {}).get(START)
    return [] if own is None or len(others) < len(BASELINES) else [own, best(others.values())]
