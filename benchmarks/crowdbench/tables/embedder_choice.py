"""Whether a choice between embedders could do better than RLL, by labels of held-out tasks."""

from __future__ import annotations

import numpy as np

from crowdbench.sets import LearningSet
from crowdbench.table import Row, Table
from crowdbench.tables.defaults import COLUMNS, SEEN, EmbeddedLR, embedder, measure
from crowdwise import embed

CHOSEN = ("mgc", "gsad 1:1, 5 labels")


def compare(model: EmbeddedLR, data: LearningSet, seed: int) -> dict[str, float]:
    """Scores on the test part, and what the best vectors tell of held-out labels."""
    scores = measure(model, data, seed)
    search = model.embedder_.search_
    kinds = np.array([one["output"] for one in search.candidates])
    held_out = np.array(search.held_out)
    gain = held_out[kinds != "features"].max() - held_out[kinds == "features"].max()
    return {"held-out gain": float(gain), **scores}


TABLE = Table(
    name="embedder-choice",
    title="Embedders with their defaults, by labels of held-out tasks",
    source="Our own: real crowds, and simulated ones on real features.",
    about=(
        "Held-out gain: how much more likely the best of an embedder's vectors, alone or beside "
        "the features, make the labels of a held-out task than the features do, in nats and with "
        "calibrated probabilities. Accuracy is that of a logistic regression on what each "
        "embedder returns: vectors, if labels of held-out tasks prefer them clearly; else "
        "features."
    ),
    rows={name: Row(embedder(name), not_blind=SEEN["learners"]) for name in embed.EMBEDDERS},
    columns={name: COLUMNS[name] for name in CHOSEN},
    measure=compare,
    metrics=("held-out gain", "accuracy"),
    losses=("log loss",),
    seeds=1,
    quick_seeds=1,
    quick_rows=("RLL", "Contrastive"),
    quick_columns=("mgc",),
    overall=True,
)
