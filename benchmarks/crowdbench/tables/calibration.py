"""Whether confidence means what it says: probabilities of methods on every real crowd."""

from __future__ import annotations

from typing import Any

from crowdbench.table import Table
from crowdbench.tables.truth_inference import SETS, column, row
from crowdwise.datasets import Crowd
from crowdwise.evaluate import score

LOSSES = {"log loss": "log loss", "calibration error": "ECE", "Brier score": "Brier"}
N_BINS = 15  # of equal widths, as in most papers
ROWS = ("BayesBag", "MajorityVote", "IWMV", "DawidSkene", "IBCC", "EBCC")


def fit_and_score(model: Any, data: Crowd, seed: int) -> dict[str, float]:
    """Fit to each worker's last label of a task; score on the tasks that have a truth."""
    model.fit(data.annotations.without_repeats("last"))
    found = score(model, data.truth, n_resamples=2, n_bins=N_BINS, bins="width")["value"]
    losses = {name: float(found[key]) for key, name in LOSSES.items()}
    return {"accuracy": float(found["accuracy"]), **losses}


TABLE = Table(
    name="calibration",
    title="Whether confidence means what it says, on every real crowd",
    source="Data sets as published; see the page on data sets.",
    about=(
        "Methods run at their default settings, without any truth. Log loss is in nats, with no "
        "probability below 1e-6; ECE is the expected calibration error in 15 bins of equal "
        "widths; Brier scores run from 0 to 2. Of these, lower is better."
    ),
    rows={name: row(name) for name in ROWS},
    columns={name: column(name) for name in SETS},
    measure=fit_and_score,
    metrics=("accuracy",),
    losses=tuple(LOSSES.values()),
    overall=True,
    seeds=5,
    quick_seeds=1,
    quick_rows=("BayesBag", "MajorityVote", "IBCC"),
    quick_columns=("bluebirds", "rte", "mgc", "wsd"),
)
