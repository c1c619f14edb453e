"""How well methods foretell labels that were hidden from them: a comparison without gold."""

import math
from dataclasses import dataclass
from typing import Any

from crowdwise.annotations import Annotations
from crowdwise.errors import AnnotationError
from crowdwise.evaluate import Estimate
from crowdwise.evaluate.comparing import against_best, chosen_rows, held_out_evidence
from crowdwise.report.facts.sample import sampled

HIDDEN = 0.2  # share of the annotations, at most one of each task
MOST_ANNOTATIONS = 200_000  # more than these are sampled, whole tasks at a time
FEWEST = 10  # hidden labels, for a comparison to say anything


@dataclass(frozen=True)
class HeldOut:
    """The probability that a method gives to hidden labels, as a geometric mean."""

    probability: Estimate
    behind: float  # the best method's probability less this one's
    as_good_as_best: bool  # the difference may be chance


def held_out_facts(
    data: Annotations, models: dict[str, Any], random_state: Any
) -> tuple[dict[str, HeldOut], str]:
    """Hide some labels, and ask each method about them; nothing where there are too few.

    The text says so where only some of the tasks were used.
    """
    data, note = sampled(data, MOST_ANNOTATIONS, random_state)
    hidden = chosen_rows(data, HIDDEN, random_state)
    if hidden.sum() < FEWEST:
        return {}, ""
    evidence = {}
    for name, model in models.items():
        try:
            evidence[name] = held_out_evidence(model, data, None, hidden)
        except AnnotationError:  # what is left has no annotations that it can use
            continue
    rows = against_best(evidence, {"random_state": random_state})
    best = math.exp(max(row["held_out"] for row in rows.values()))
    return {name: held_out(row, best, int(hidden.sum())) for name, row in rows.items()}, note


def held_out(row: dict[str, float], best: float, n_hidden: int) -> HeldOut:
    """Mean log-likelihoods as probabilities, which are easier to read."""
    value, low, high = (math.exp(row[f"held_out{end}"]) for end in ("", "_low", "_high"))
    return HeldOut(Estimate(value, low, high, n_hidden), best - value, row["behind_low"] <= 0)
