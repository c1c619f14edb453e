"""crowd-kit's votes: aggregators that weight workers and count."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Self

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from crowdwise import aggregate
from crowdwise.annotations import Annotations
from crowdwise.compat._crowdkit_base import (
    Table,
    Voting,
    Weighted,
    accuracy_by_worker,
    annotations_of,
)
from crowdwise.io.gold import find_truths
from crowdwise.typing import Floats, RandomState


class MajorityVote(Voting):
    """The label most workers gave, or the one with the largest sum of ``skills``.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = [["t1", "p1", 0], ["t1", "p2", 0], ["t1", "p3", 1], ["t2", "p1", 1]]
    >>> data = pd.DataFrame(rows, columns=["task", "worker", "label"])
    >>> MajorityVote().fit_predict(data).to_dict()
    {'t1': 0, 't2': 1}
    """

    def __init__(self, default_skill: float | None = None, on_missing_skill: str = "error") -> None:
        self.default_skill = default_skill
        self.on_missing_skill = on_missing_skill

    def fit(self, data: Table, skills: pd.Series | None = None) -> Self:
        """Count the labels; workers are weighted by ``skills``, a series by worker."""
        votes = self._vote(data, skills)
        self.skills_ = accuracy_by_worker(votes, self.labels_)
        return self


class Wawa(Weighted):
    """A vote in which workers count by their agreement with the majority."""

    def fit(self, data: Table) -> Self:
        """Set ``skills_``: how often each worker agrees with the majority."""
        self.skills_ = MajorityVote().fit(data).skills_
        return self


class GoldMajorityVote(Weighted):
    """A vote in which workers count by how often they are right on known tasks."""

    def fit(self, data: Table, true_labels: pd.Series) -> Self:
        """Set ``skills_``: how often each worker gives the true label, a series by task."""
        votes = annotations_of(data)
        place, truths = find_truths(true_labels, votes)
        known = pd.Series(truths, index=pd.Index(votes.tasks[place], tupleize_cols=False))
        self.skills_ = accuracy_by_worker(votes, known)
        return self


class ZeroBasedSkill(Weighted):
    """A vote in which workers count by a skill that is learned step by step.

    Unlike crowd-kit's, it stops once skills and labels have settled.
    """

    def __init__(
        self,
        n_iter: int = 100,
        lr_init: float = 1.0,
        lr_steps_to_reduce: int = 20,
        lr_reduce_factor: float = 0.5,
        eps: float = 1e-5,
    ) -> None:
        self.n_iter = n_iter
        self.lr_init = lr_init
        self.lr_steps_to_reduce = lr_steps_to_reduce
        self.lr_reduce_factor = lr_reduce_factor
        self.eps = eps

    def fit(self, data: Table) -> Self:
        """Set ``skills_`` by steps from chance to the agreement with the vote."""
        votes, vote = annotations_of(data), MajorityVote()
        index = pd.Index(votes.workers, name="worker")
        skills = pd.Series(1.0 / votes.n_classes + self.eps, index=index, name="skill")
        rate = self.lr_init
        for step in range(1, self.n_iter + 1):
            if step % self.lr_steps_to_reduce == 0:
                rate *= self.lr_reduce_factor
            before, skills = skills, skills + rate * (vote.fit(votes, skills).skills_ - skills)
            if np.array_equal(before, skills):
                break
        self.skills_ = skills
        return self


class MMSR(Weighted):
    """Workers weighted by their pairwise agreement, with outliers set aside.

    ``scores_`` are sums of weights, as crowd-kit's documentation says; its code divides them by
    their total, which reverses a task if the total is negative.
    """

    def __init__(
        self, n_iter: int = 10000, tol: float = 1e-10, random_state: RandomState = 0
    ) -> None:
        self.n_iter = n_iter
        self.tol = tol
        self.random_state = random_state

    def fit(self, data: Table) -> Self:
        """Set ``skills_``: the log-odds that each worker is right, over chance."""
        model = aggregate.MMSR(max_iter=self.n_iter, tol=self.tol)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.skills_ = model.fit(annotations_of(data)).weights_.rename("skill")
        return self

    def predict_score(self, data: Table) -> pd.DataFrame:
        """Return the sum of the skills behind each label."""
        self.predict(data)
        return self.scores_

    def fit_predict_score(self, data: Table) -> pd.DataFrame:
        """Same as ``fit(data).predict_score(data)``."""
        return self.fit(data).predict_score(data)

    def _shares(self, votes: Annotations, weights: Floats | None) -> Floats:
        """Return sums of weights, which may be negative."""
        assert weights is not None
        sums = replace(votes, weight=weights[votes.worker]).votes()
        tasks, labels = pd.Index(votes.tasks, name="task"), pd.Index(votes.classes, name="label")
        self.scores_ = pd.DataFrame(sums, index=tasks, columns=labels)
        return sums
