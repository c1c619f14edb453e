"""Which settings of SpeeLFC predict held-out labels best: how those of its table were chosen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from crowdbench.measures import FOLDS, on_held_out_labels, on_held_out_tasks
from crowdbench.plain import without_search
from crowdbench.sets import LearningSet, learning_set
from crowdbench.table import Column, Row, Table
from crowdwise import learn
from crowdwise.learn import Training

RATES = (1e-2, 3e-3)
DECAYS = (0.0, 1e-4, 1e-3, 3e-3, 1e-2, 3e-2)


def settings(rate: float, decay: float, hold_out: str) -> Callable[[str], Any]:
    """Full-batch training; the noise model of SpeeLFC-D learns ten times more slowly."""

    def make(column: str) -> Any:
        kind = getattr(learn, column)
        training = Training(
            learning_rate={"truth": rate, "noise": rate if kind is learn.SpeeLFC else rate / 10},
            weight_decay={"truth": decay},
            epochs=2000,
            patience=50,
            hold_out=hold_out,
        )
        return kind(training=training)

    return make


def held_out(model: Any, data: LearningSet, fold: int) -> dict[str, float]:
    """How well the other labels, or the labels of other tasks, predict one fifth of them."""
    by_labels = model.training.hold_out == "labels"
    return (on_held_out_labels if by_labels else on_held_out_tasks)(model, data, fold)


TABLE = Table(
    name="speelfc-settings",
    title="Settings of SpeeLFC on MGC by held-out labels",
    source="Chen et al. (2020), Structured probabilistic end-to-end learning from crowds, IJCAI.",
    about=(
        "On features of unit variance, the paper's settings overfit; on the features as they are "
        "published they serve (speelfc-table2). When to stop on scaled features and how strong to "
        "make the penalty was chosen here: by the mean log probability of "
        "held-out labels in five folds, never by the truth. Labels are held out individually, or "
        "all those of some tasks; the figures of the two rules cannot be compared."
    ),
    rows=without_search(
        {
            f"{hold_out}; rate {rate:g}; decay {decay:g}": Row(settings(rate, decay, hold_out))
            for hold_out in ("labels", "tasks")
            for rate in RATES
            for decay in DECAYS
        }
    ),
    columns={name: Column(lambda seed: learning_set("mgc")) for name in ("SpeeLFC", "SpeeLFCD")},
    measure=held_out,
    metrics=("held-out",),
    seeds=FOLDS,
    quick_seeds=1,
    quick_rows=("labels; rate 0.01; decay 0", "tasks; rate 0.01; decay 0.01"),
    quick_columns=("SpeeLFC",),
)
