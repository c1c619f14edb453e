"""What explains a representation's score: how well it fits the labels that it was trained on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, clone

from crowdbench.sets import LearningSet
from crowdbench.tables._embed import Probe, binary_scores
from crowdwise.datasets.crowd import Crowd, with_tasks
from crowdwise.embed import CrowdLabels, Pool, RandomGroups, TupleSampler, find_groups
from crowdwise.typing import Array, Floats, Ints

GROUPS = 20_000  # drawn to see the effect of confidence alone on a group


class Case(BaseEstimator):
    """A probe, or a network in place of its regression; on true labels as an upper bound."""

    def __init__(self, probe: Probe, *, network: Any = None, gold: bool = False) -> None:
        self.probe = probe
        self.network = network
        self.gold = gold

    def classifier(self, strength: float) -> CrowdLabels:
        made = self.probe.classifier(strength)
        return made if self.network is None else made.set_params(classifier=clone(self.network))


def measure_case(case: Case, data: Crowd | LearningSet, _seed: int) -> dict[str, float]:
    """Scores on the test tasks and diagnostics on the training tasks; means over the folds."""
    parts = list(parts_of(data))
    found = [_measure_part(case, part) for part in parts]
    sizes = [len(part.X_test) for part in parts if part.X_test is not None]
    return {name: float(np.average([f[name] for f in found], weights=sizes)) for name in found[0]}


def parts_of(data: Crowd | LearningSet) -> Iterator[LearningSet]:
    """Training and test parts: one pair, or one per fold."""
    if isinstance(data, LearningSet):
        yield data
        return
    assert data.split is not None
    assert data.truth is not None
    assert data.X is not None
    assert data.X_tasks is not None
    truth, fold = (s.loc[data.X_tasks] for s in (data.truth, data.split))
    for name in np.unique(fold.to_numpy()):
        inside = fold.to_numpy() != name
        votes = with_tasks(data.annotations, data.X_tasks[inside])
        tested = data.X[~inside], truth.to_numpy()[~inside]
        yield LearningSet(data.name, data.X[inside], votes, truth[inside], *tested)


def _measure_part(case: Case, part: LearningSet) -> dict[str, float]:
    votes = part.annotations
    label = votes.votes().argmax(axis=1)
    embedder = case.probe.embedders()[0]
    if embedder is not None:
        embedder.fit(part.X, votes)
    embed = _as_they_are if embedder is None else embedder.transform
    train, test = embed(part.X), embed(part.X_test)
    classifier = _fit(case, train, embed, part)
    truth = (np.asarray(part.y_test) == votes.classes[1]).astype(int)
    figures = binary_scores(classifier.predict_proba(test)[:, 1], truth)
    figures["training labels"] = float(np.mean(_predict_codes(classifier, train) == label))
    right = votes.classes[label] == part.truth.loc[votes.tasks].to_numpy()
    if embedder is None:
        return {**figures, "labels right": float(np.mean(right))}
    figures["cosine across"] = cosine_across(train, label)
    return {**figures, **confidences(embedder, label), **safety(embedder, right)}


def _as_they_are(X: Any) -> Any:
    return X


def _fit(case: Case, train: Array, embed: Callable[[Any], Array], part: LearningSet) -> CrowdLabels:
    """The classifier; majority labels of validation tasks, if any, decide the penalty."""
    gold = part.truth if case.gold else None
    strengths = case.probe.strengths if case.network is None else case.probe.strengths[:1]
    made = [case.classifier(C).fit(train, part.annotations, gold=gold) for C in strengths]
    if part.valid is None:
        return made[0]
    held_out, wanted = embed(part.valid.X), part.valid.annotations.votes().argmax(axis=1)
    values = [sum(binary_scores(m.predict_proba(held_out)[:, 1], wanted).values()) for m in made]
    return made[int(np.argmax(values))]


def _predict_codes(classifier: CrowdLabels, X: Array) -> Ints:
    return classifier.predict_proba(X).argmax(axis=1)


def cosine_across(vectors: Floats, label: Ints) -> float:
    """Mean cosine between tasks of the two classes: 1 where all vectors point the same way."""
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return float(unit[label == 0].mean(axis=0) @ unit[label == 1].mean(axis=0))


def confidences(embedder: Any, label: Ints) -> dict[str, float]:
    """Mean confidence in each class, and the partner's probability by confidence alone."""
    sure: Floats = embedder.confidence_
    means = {f"confidence in {k}": float(sure[label == k].mean()) for k in (1, 0)}
    return {**means, "given chance": given_chance(embedder, sure, label)}


def safety(embedder: Any, right: Array) -> dict[str, float]:
    """The share of correctly and of wrongly labeled tasks that NeuCrowd considers safe."""
    if not hasattr(embedder, "safe_"):
        return {}
    kinds = {"safe if right": right, "safe if wrong": ~right}
    return {name: float(embedder.safe_[of].mean()) for name, of in kinds.items() if of.any()}


def given_chance(embedder: Any, sure: Floats, label: Ints) -> float:
    """Mean probability of the partner when all vectors are equal, so that nothing is learned.

    It is 1 / (1 + negatives) where confidence plays no part. If it is higher, the loss falls
    when *all* similarities rise, including those across classes.
    """
    pool = Pool.of(torch.arange(len(label)), torch.as_tensor(label), n_classes=2)
    parts = embedder.parts()
    groups = find_groups(parts.groups, RandomGroups) or RandomGroups()
    sampler = TupleSampler(groups.negatives, groups.anchor(embedder.classes_))
    candidates = sampler.draw(pool, GROUPS, torch.Generator().manual_seed(0))[:, 1:]
    same = torch.ones(*candidates.shape, 1, dtype=torch.float64)
    loss = parts.loss.compare(same[:, 0], same, torch.as_tensor(sure)[candidates])
    return float(loss.neg().exp().mean())
