"""LIA's sanity check: a worker who is always right and one who is always wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from crowdwise.bench.measures import known_truth
from crowdwise.bench.sets import LearningSet
from crowdwise.bench.table import Column, Row, Table
from crowdwise.bench.tables._lia import MEDICAL, SETS, SOURCE, chosen, features_for, whole
from crowdwise.data import Annotations

EVERY = (*SETS, *MEDICAL)


def with_extremes(data: LearningSet) -> LearningSet:
    """The set and two workers more, who know the truth: one tells it, one its opposite."""
    votes = data.annotations
    rows, truth = known_truth(data)
    n = votes.n_workers
    soft = votes.soft
    given = [truth, 1 - truth]
    return replace(
        data,
        annotations=Annotations.from_codes(
            np.concatenate([votes.task, rows, rows]),
            np.concatenate([votes.worker, np.full(len(rows), n), np.full(len(rows), n + 1)]),
            np.concatenate([votes.label, *given]),
            tasks=votes.tasks,
            workers=np.append(votes.workers.astype(str), ["right", "wrong"]),
            classes=votes.classes,
            soft=None if soft is None else np.concatenate([soft, *(np.eye(2)[g] for g in given)]),
        ),
    )


def ranks(model: Any, data: LearningSet, seed: int) -> dict[str, float]:
    """Where the two stand among all workers by the mean diagonal of their confusions."""
    model.fit(features_for(model, data), data.annotations)
    diagonal = np.einsum("wkk->w", model.confusion_) / 2.0
    right, wrong = diagonal[-2], diagonal[-1]
    others = diagonal[:-2]
    return {
        "right is best": float(right >= others.max()),
        "wrong is worst": float(wrong <= others.min()),
        "right": float(right),
        "wrong": float(wrong),
        "above right": float((others > right).mean()),
        "below wrong": float((others < wrong).mean()),
    }


def column(name: str) -> Column:
    return Column(lambda seed: with_extremes(whole(name)))


TABLE = Table(
    name="lia-sanity",
    title="LIA's sanity check: is the perfect worker found best, the perverse one worst?",
    source=SOURCE,
    about="The mean diagonal of the learned confusion matrix ranks the workers.",
    rows={
        "LIA": Row(lambda column: chosen(column, features=True)),
        "LIA-E": Row(lambda column: chosen(column, features=False)),
    },
    columns={name: column(name) for name in EVERY},
    measure=ranks,
    metrics=("right is best", "wrong is worst", "above right", "below wrong", "right", "wrong"),
    quick_columns=tuple(SETS),
)
