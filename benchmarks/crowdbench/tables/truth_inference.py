"""Every aggregator on every real crowd."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from crowdbench.sets import crowd
from crowdbench.table import Column, Row, Table
from crowdwise import aggregate
from crowdwise.datasets import Crowd
from crowdwise.evaluate import score

SETS = (
    "adult",
    "bluebirds",
    "dog",
    "face",
    "fact_eval",
    "labelme",
    "medical_causes",
    "medical_treats",
    "mgc",
    "product",
    "relevance",
    "rte",
    "sentiment_tweets",
    "sp_amt",
    "spc",
    "temp",
    "weather_amt",
    "wordsim",
    "wsd",
    "zencrowd_us",
)
ORDERED = ("adult",)  # its labels are grades; elsewhere an ordinal model makes no sense
SCORES = ("accuracy", "balanced accuracy", "macro F1", "minority recall")
SEEN = {
    "BayesBag": "its settings were chosen by their scores over these sets; `python "
    "benchmarks/choose_bag.py` has the scores on sets left out of the choice."
}
LOSSES = ("log loss", "calibration error")


def fit_and_score(model: Any, data: Crowd, seed: int) -> dict[str, float]:
    """Fit to each worker's last label of a task; score on the tasks that have a truth."""
    model.fit(data.annotations.without_repeats("last"))
    found = score(model, data.truth, n_resamples=2)["value"]
    return {name: float(found[name]) for name in (*SCORES, *LOSSES)}


def row(name: str) -> Row:
    make: Callable[[str], Any] = lambda column: getattr(aggregate, name)()  # noqa: E731  a maker
    columns = ORDERED if name.startswith("Ordinal") else None
    return Row(make, columns=columns, not_blind=SEEN.get(name, ""))


def column(name: str) -> Column:
    return Column(lambda seed: crowd(name))


TABLE = Table(
    name="truth-inference",
    title="Every aggregator on every real crowd",
    source="Data sets as published; see the page on data sets.",
    about=(
        "Methods run at their default settings. Where a worker labeled a task twice, the last "
        "label counts; a tie scores 1/m, where m classes are tied. Nothing is tuned on the truth."
    ),
    rows={name: row(name) for name in aggregate.__all__},
    columns={name: column(name) for name in SETS},
    measure=fit_and_score,
    metrics=SCORES,
    overall=True,
    seeds=3,
    quick_seeds=1,
    quick_columns=("bluebirds", "rte", "mgc", "adult", "face"),
)
