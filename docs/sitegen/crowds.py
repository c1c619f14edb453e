"""Aggregators on real crowds: one by one, and as tables to choose by."""

from collections.abc import Callable, Sequence

from sitegen.measured import made, stored, table

PLAIN = "MajorityVote"
CROWDS = "truth-inference"


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
    """Mean of a measure over sets, best first, of the methods that can do all of them."""
    values = by_set(measure)
    chosen = [values[name] for name in (sets if sets is not None else values)]
    if not chosen:
        return []
    able = set.intersection(*(set(one) for one in chosen))
    mean = {method: sum(one[method] for one in chosen) / len(chosen) for method in able}
    return sorted(mean.items(), key=lambda pair: (-pair[1] if most else pair[1], pair[0]))


def rank_in(values: dict[str, float], method: str) -> int:
    return 1 + sum(round(other, 6) > round(values[method], 6) for other in values.values())


def aggregator_results(name: str) -> str:
    """An aggregator's accuracy on every real crowd, its place there, and its mean."""
    values = {crowd: one for crowd, one in by_set().items() if name in one}
    if not values:
        return ""
    order = means()
    place = next((n for n, (method, _) in enumerate(order, 1) if method == name), None)
    rows = [
        [
            f"`{crowd}`",
            f"{one[name]:.3f}",
            f"{rank_in(one, name)} of {len(one)}",
            f"{one.get(PLAIN, float('nan')):.3f}",
            f"{max(one.values()):.3f}",
        ]
        for crowd, one in values.items()
    ]
    said = (
        f"Mean accuracy {dict(order)[name]:.4f}, place {place} of {len(order)}.\n\n"
        if place
        else ""
    )
    head = ["crowd", "accuracy", "place", "majority vote", "best method"]
    return f"{said}{table(head, rows)}\n{made(CROWDS)}\n"


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
        "under 5 labels a task": where(lambda c: c["annotations"] < 5 * c["tasks"]),
        "10 labels a task or more": where(lambda c: c["annotations"] >= 10 * c["tasks"]),
        "under 60 labels a worker": where(lambda c: c["annotations"] < 60 * c["workers"]),
        "100 labels a worker or more": where(lambda c: c["annotations"] >= 100 * c["workers"]),
    }


def best_by_kind() -> str:
    """The decision table for labels alone."""
    rows = []
    for kind, sets in kinds_of_crowd().items():
        order = means(sets)
        if not order:
            continue
        best = ", ".join(f"`{method}` {value:.3f}" for method, value in order[:3])
        rows.append([kind, best, f"{dict(order)[PLAIN]:.3f}", len(sets)])
    head = ["your crowd has", "best three on average, accuracy", "`MajorityVote`", "real crowds"]
    return table(head, rows, text=2)


def best_by_aim() -> str:
    """The same by what is wanted of a result."""
    aims = [
        ("most tasks right", "accuracy", True),
        ("all classes alike, also rare ones", "macro F1", True),
        ("the rarest class found", "minority F1", True),
        ("probabilities to act on", "log loss", False),
        ("confidence as it is said", "calibration error", False),
        ("a result at once", "seconds", False),
    ]
    rows = []
    for aim, measure, most in aims:
        order = means(measure=measure, most=most)
        if not order:
            continue
        best = ", ".join(f"`{method}` {value:.3g}" for method, value in order[:3])
        rows.append([aim, measure, best, f"{dict(order)[PLAIN]:.3g}"])
    head = ["you want", "mean of", "best three", "`MajorityVote`"]
    return table(head, rows, text=3)
