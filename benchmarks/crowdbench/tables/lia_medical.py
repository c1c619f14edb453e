"""LIA's medical columns, by the expert's labels and by the miscoded ones of the paper."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from crowdbench.measures import on_training_tasks
from crowdbench.plain import without_search
from crowdbench.sets import LearningSet, crowd
from crowdbench.table import Column, Published, Row, Table
from crowdbench.tables._lia import (
    BODY,
    MEDICAL,
    SOURCE,
    TRAINING,
    WIDE,
    features_for,
    medical,
    two_stage,
    with_best_settings,
)
from crowdwise import aggregate, learn
from crowdwise.annotations import Annotations
from crowdwise.base.aggregator import Aggregator
from crowdwise.learn import MLP

RELATION = {"MC": "CAUSES", "MT": "TREATS"}
RULE = "paper's rule"
PUBLISHED = {
    "MAJ": {"MC": (26.8, 24.1, 24.1), "MT": (33.8, 34.2, 34.2)},
    "MAJ*": {"MC": (26.5, 24.2, 24.1), "MT": (34.2, 33.6, 35.2)},
    "MMCE": {"MC": (29.1, 24.5, 24.4), "MT": (35.3, 36.8, 38.5)},
    "MMCE*": {"MC": (22.0, 21.3, 20.1), "MT": (34.2, 35.0, 36.3)},
    "Snorkel": {"MC": (27.1, 24.0, 24.0), "MT": (33.3, 34.0, 35.0)},
    "MeTaL": {"MC": (25.3, 21.0, 20.0), "MT": (22.1, 21.0, 3.1)},
    "LIA-E": {"MC": (25.0, 24.0, 23.6), "MT": (34.0, 33.0, 33.8)},
    "LIA": {"MC": (29.5, 30.9, 30.5), "MT": (38.6, 38.3, 42.1)},
    "LIA-ML": {"MC": (30.1, 36.4, 34.1), "MT": (40.8, 46.1, 45.4)},
}


@dataclass(frozen=True, eq=False)
class MedicalSet:
    """Labels of one relation at some redundancy, its two truths, and where they came from."""

    name: str
    redundancy: int
    seed: int
    expert: LearningSet
    paper: LearningSet

    def votes(self) -> Annotations:
        return self.expert.annotations.subsample(self.redundancy, self.seed)


def load(name: str, redundancy: int, seed: int) -> MedicalSet:
    return MedicalSet(name, redundancy, seed, medical(name, "expert"), medical(name, "lia_paper"))


def by_both_truths(model: Any, data: MedicalSet, seed: int) -> dict[str, float]:
    """Accuracy by the expert's own labels, and by the rule of the published table."""
    votes = data.votes()
    if isinstance(model, Aggregator):
        posterior = model.fit(votes).posterior_
    elif isinstance(model, learn.LIAML):
        posterior = all_relations(model, data)
    elif isinstance(model, learn.TwoStage):
        X = features_for(model, data.expert)
        posterior = model.fit(X, votes).predict_proba(X)
    else:
        posterior = model.fit(features_for(model, data.expert), votes).posterior_
    found = on_training_tasks(posterior, data.expert)
    return {**found, RULE: on_training_tasks(posterior, data.paper)["accuracy"]}


def all_relations(model: learn.LIAML, data: MedicalSet) -> Any:
    """P(relation) of every task, from all fourteen relations learned at once."""
    tasks = data.expert.annotations.tasks
    given = {
        relation: votes.subsample(data.redundancy, data.seed)
        for relation, votes in relations(tuple(tasks)).items()
    }
    model.fit(data.expert.X, given)
    yes = model.posterior_.loc[tasks, RELATION[data.name]].to_numpy()
    return np.column_stack([1.0 - yes, yes])


@lru_cache(maxsize=1)
def relations(tasks: tuple[Any, ...]) -> dict[str, Annotations]:
    """Which workers say that a relation holds for which task, by relation."""
    votes = crowd("medical_relations").annotations
    votes = votes[pd.Index(votes.tasks).get_indexer(list(tasks))]
    sets = [set(str(name).split("|")) for name in votes.classes]
    return {
        relation: Annotations.from_codes(
            votes.task,
            votes.worker,
            np.array([relation in one for one in sets], dtype=np.int64)[votes.label],
            tasks=votes.tasks,
            workers=votes.workers,
            classes=[0, 1],
        )
        for relation in sorted(set().union(*sets))
    }


def paper(name: str) -> dict[str, dict[str, Published]]:
    figures = PUBLISHED.get(name, {})
    return {
        f"{one} R={redundancy}": {RULE: Published(value / 100)}
        for one, values in figures.items()
        for redundancy, value in zip(MEDICAL[one], values, strict=True)
    }


def lia_ml(heads: str, body: MLP) -> learn.LIAML:
    """All relations at once: label embeddings as in the text, or heads as in the code."""
    return learn.LIAML(
        heads=heads,
        truth=body,
        difficulty=body,
        training=TRAINING,
        scale=False,
        objective=learn.EM(5, 40, None),
    )


MAKERS = {
    "MAJ": lambda column: aggregate.MajorityVote(),
    "MAJ*": lambda column: two_stage(aggregate.MajorityVote(), body=WIDE),
    "MMCE": lambda column: aggregate.MinimaxEntropy(),
    "MMCE*": lambda column: two_stage(aggregate.MinimaxEntropy(), body=WIDE),
    "Snorkel": lambda column: aggregate.GenerativeModel(),
    "MeTaL": lambda column: aggregate.LabelModel(),
    "D&S": lambda column: aggregate.DawidSkene(),
    "LIA-E": with_best_settings("none"),
    "LIA": with_best_settings("as they are"),
    "LIA-ML": lambda column: lia_ml("embedding", WIDE),
    "LIA-ML (a head per relation, 16 units)": lambda column: lia_ml("per_label", BODY),
}


def column(name: str, redundancy: int) -> Column:
    return Column(lambda seed: load(name, redundancy, seed), redrawn=True)


TABLE = Table(
    name="lia-medical",
    title="LIA's medical columns, scored by the expert and by the published rule",
    source=SOURCE,
    about=(
        "The published table was scored against labels that are 1 wherever expert and distant "
        "supervision agree, even if both say no (the paper's rule, shown for comparison only): by "
        "these, the average worker is right on a third of the tasks. Accuracy is measured against "
        "the expert's own labels. "
        "LIA-ML learns all 14 relations at once. Networks have the paper's 32 units on these sets "
        "unless a row says otherwise."
    ),
    rows=without_search({name: Row(make, paper(name)) for name, make in MAKERS.items()}),
    columns={
        f"{name} R={redundancy}": column(name, redundancy)
        for name, redundancies in MEDICAL.items()
        for redundancy in redundancies
    },
    measure=by_both_truths,
    metrics=("accuracy", "balanced accuracy", RULE),
    quick_seeds=1,
    quick_columns=("MC R=5", "MT R=5"),
)
