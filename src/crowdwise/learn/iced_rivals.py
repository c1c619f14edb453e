"""Alternatives to ICED: simpler learners of the same labels, without generated tasks."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import xlogy
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from crowdwise.annotations import Annotations
from crowdwise.base.learner import Learner
from crowdwise.learn.raykar import Raykar
from crowdwise.learn.search import Search, choose, deal
from crowdwise.learn.softmax_regression import LinearLearner
from crowdwise.learn.two_stage import name_truths
from crowdwise.learn.voted_regression import VotedRegression
from crowdwise.nets.batches import CrowdData
from crowdwise.typing import Floats, Ints

BYTES_EACH = 24  # of a number: as it is, in double precision, and scaled


@dataclass(frozen=True)
class Rivals:
    """Linear learners from majority votes and by EM, on ICED's data."""

    data: CrowdData
    votes: Annotations
    gold: Ints | None
    scale: bool

    def challenge(
        self, generating: Learner, rounds: int, rng: np.random.RandomState
    ) -> tuple[LinearLearner | None, Search]:
        """Return the simplest learner that predicts held-out labels about as well as the best.

        None stands for ``generating``, an ICED that generates tasks for this many rounds.
        """
        fold, votes = deal(self.data, rng), self.votes
        generating.set_params(random_state=int(rng.randint(2**31 - 1)))
        known = None if self.gold is None else name_truths(self.gold, votes)
        if not self.data.features.fits(BYTES_EACH):
            why = "The features do not fit into memory, so no linear learner was tried."
            return None, Search(chosen={"rounds": rounds}, why=why)
        rows = self.data.features.table(BYTES_EACH).cpu()
        search, taken = Search(chosen={"rounds": 0}, why="There was nothing to choose."), 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            voted = VotedRegression(scale=self.scale).fit(rows, votes, gold=known)
            plain = Raykar(scale=self.scale).fit(rows, votes, gold=known)
            out = fold == 0
            if 0 < out.sum() < (fold >= 0).sum():
                some = votes.filter(~out[votes.task])
                models: list[tuple[dict[str, Any], Learner]] = [
                    (
                        {"rounds": 0, "truths": "majority"},
                        VotedRegression(scale=self.scale, ridge=voted.ridge_),
                    ),
                    ({"rounds": 0}, Raykar(scale=self.scale, **plain.search_.chosen)),
                ]
                if rounds:
                    models.append(({"rounds": rounds}, clone(generating)))
                evidence = [
                    task_evidence(model.fit(rows, some, gold=known), rows, votes)[out]
                    for _, model in models
                ]
                settings = [settings for settings, _ in models]
                search, taken = choose(settings, [(2,), (1,), (0,)], np.stack(evidence))
        if taken == 2:
            return None, search
        own = {"ridge": voted.ridge_} if taken == 0 else plain.search_.chosen
        search.chosen = {**search.chosen, **own}
        return voted if taken == 0 else plain, search


def task_evidence(model: Learner, rows: Tensor, votes: Annotations) -> Floats:
    """Return the log-likelihood of each task's labels, each on its own."""
    proba = model._label_proba(rows, votes.task.copy(), votes.worker.copy())
    given = np.eye(votes.n_classes)[votes.label] if votes.soft is None else votes.soft
    weight = 1.0 if votes.weight is None else votes.weight
    evidence = xlogy(given, np.maximum(proba, 1e-12)).sum(axis=1) * weight
    return np.bincount(votes.task, evidence, minlength=votes.n_tasks).astype(np.float64)
