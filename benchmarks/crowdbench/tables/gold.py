"""What a few known truths do for the default answer, on real crowds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd

from crowdbench.sets import crowd
from crowdbench.table import Column, Row, Table
from crowdbench.tables.calibration import LOSSES, N_BINS
from crowdbench.tables.truth_inference import SETS
from crowdwise.aggregate import BayesBag
from crowdwise.annotations import Annotations
from crowdwise.evaluate import score

SIZES = (20, 50, 100, 400)
MOST = 0.5  # of the known truths may be given; as many or more are scored


class Split(NamedTuple):
    """A crowd, the truths that are given and those that are scored."""

    annotations: Annotations
    given: pd.Series
    scored: pd.Series


@dataclass(frozen=True)
class Plan:
    """A method that is given the truths, or not."""

    model: BayesBag
    informed: bool


def split_sets(n_gold: int, seed: int) -> dict[str, Split]:
    """Every set with truths enough, and a random choice of those that are given."""
    found, rng = {}, np.random.default_rng(seed)
    for name in SETS:
        data = crowd(name)
        votes = data.annotations.without_repeats("last")
        truth = pd.Series(data.truth)
        truth = truth[truth.index.isin(votes.tasks)]
        order = rng.permutation(len(truth))
        if n_gold <= MOST * len(truth):
            given, scored = truth.iloc[order[:n_gold]], truth.iloc[order[n_gold:]]
            found[name] = Split(votes, given, scored)
    return found


def measure(plan: Plan, data: dict[str, Split], seed: int) -> dict[str, float]:
    """Mean scores over the sets, on the tasks whose truth is not given."""
    found = []
    for split in data.values():
        gold = split.given if plan.informed else None
        model = plan.model.set_params(random_state=seed).fit(split.annotations, gold=gold)
        own = score(model, split.scored, n_resamples=2, n_bins=N_BINS, bins="width")["value"]
        losses = {name: float(own[key]) for key, name in LOSSES.items()}
        found.append({"accuracy": float(own["accuracy"]), **losses})
    return {"sets": float(len(found)), **pd.DataFrame(found).mean().to_dict()}


TABLE = Table(
    name="gold",
    title="What a few known truths do for the default answer",
    source="Data sets as published; see the page on data sets.",
    about=(
        "Means over the real crowds that have truths enough: those of some random tasks are given, "
        "all others, as many or more, are scored, the same ones in both rows. Losses are those of "
        "`crowdwise bench calibration`; of these, lower is better."
    ),
    rows={
        "BayesBag with gold": Row(lambda _: Plan(BayesBag(), True)),
        "BayesBag without": Row(lambda _: Plan(BayesBag(), False)),
    },
    columns={f"{n} truths": Column(partial(split_sets, n), redrawn=True) for n in SIZES},
    measure=measure,
    metrics=("accuracy", "sets"),
    losses=tuple(LOSSES.values()),
    seeds=5,
    quick_seeds=1,
    quick_columns=("400 truths",),
)
