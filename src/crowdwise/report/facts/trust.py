"""How far the labels can be trusted."""

from dataclasses import dataclass

import pandas as pd

from crowdwise.annotations import Annotations
from crowdwise.evaluate import Estimate, Independence, check_independence, reliability_table
from crowdwise.evaluate.label_uncertainty import assess_labels
from crowdwise.typing import Floats, RandomState


@dataclass(frozen=True)
class ReliabilityBin:
    """Labels of similar confidence, and the share of them that is right."""

    confidence: float
    accuracy: float
    low: float
    high: float
    n_tasks: int


@dataclass(frozen=True)
class TrustFacts:
    """Expected accuracy, the test of independence, and confidence against known truths."""

    accuracy: Estimate  # expected share of right labels
    share_low: Floats  # (class,): bounds of its share of the tasks; NaN if there are none
    share_high: Floats
    independence: Independence
    reliability: tuple[ReliabilityBin, ...]  # empty without known truths


def trust_facts(
    data: Annotations, posterior: Floats, truth: pd.Series | None, random_state: RandomState
) -> TrustFacts:
    """Assess the labels without truths, and with those that are known."""
    found = assess_labels(data, posterior, random_state=random_state)
    bins: tuple[ReliabilityBin, ...] = ()
    if truth is not None and len(truth):
        proba = pd.DataFrame(posterior, index=data.tasks, columns=data.classes)
        table = reliability_table(proba, truth)[
            ["confidence", "accuracy", "low", "high", "n_tasks"]
        ]
        bins = tuple(ReliabilityBin(*row[1:]) for row in table.itertuples())
    return TrustFacts(
        found.accuracy,
        found.shares["low"].to_numpy(),
        found.shares["high"].to_numpy(),
        check_independence(data, random_state=random_state),
        bins,
    )
