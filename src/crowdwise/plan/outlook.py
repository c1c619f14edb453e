"""The basis of a plan: the labels so far, and a model's inference from them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from sklearn.base import clone

from crowdwise.aggregate import BayesBag, OneCoin
from crowdwise.annotations import Annotations
from crowdwise.base import Aggregator
from crowdwise.plan.other_labels import Judged, judge_workers
from crowdwise.typing import Array, Floats, Ints

# What workers are judged by. With few labels confusion matrices are guesses, and with many one
# number for each worker is too little.
VIEWS = (BayesBag.default_base, OneCoin(smoothing=(4.0, 1.0), max_iter=40, tol=1e-4))

DEPENDENCE = 0.1  # of the labels of a task, about that of most crowds


@dataclass(frozen=True, eq=False)
class Outlook:
    """The labels so far, P(truth) of each task, and how workers confuse classes."""

    votes: Annotations
    posterior: Floats  # (task, class)
    gold: Ints | None = None  # (task,): class number of known truths, -1 for none

    @property
    def n_labels(self) -> Ints:
        """Number of labels of each task."""
        return self.votes.redundancy

    @cached_property
    def known(self) -> Array:
        """Whether the truth of each task is known."""
        return np.zeros(len(self.posterior), bool) if self.gold is None else self.gold >= 0

    @cached_property
    def independent(self) -> Floats:
        """P(truth) as if workers erred independently, so that one label can be taken out of it.

        The mean of two models, by workers' confusion matrices and by their accuracy alone.
        """
        views = [infer(model, self.votes, self.gold) for model in VIEWS]
        return np.asarray(np.mean(views, axis=0))

    @cached_property
    def judged(self) -> Judged:
        """The quality of the workers, judged by the others' labels of the same tasks."""
        return judge_workers(self.votes, self.independent, self.known)

    @property
    def news(self) -> Floats:
        """How much of another label's information is new, by task: less, the more it has.

        Labels of a task share errors, so that ``n`` of them count as ``n / (1 + (n - 1) *
        DEPENDENCE)`` independent ones; this is what one more would add.
        """
        return (1.0 + DEPENDENCE * np.maximum(self.n_labels - 1.0, 0.0)) ** -2

    @property
    def crowd(self) -> Floats:
        """P(label | truth) of a label by anyone, (truth, label)."""
        return self.judged.crowd

    def with_posterior(self, posterior: Floats) -> Outlook:
        """Return the same labels and workers, with another posterior."""
        other = copy(self)  # including what is known about the workers
        object.__setattr__(other, "posterior", posterior)
        return other

    def confusion(self, workers: Ints) -> Floats:
        """Return P(label | truth) of workers by number, (worker, truth, label); -1 is anyone."""
        return self.judged.confusion(workers)

    def drawing(self) -> Callable[[Ints], Floats]:
        """Return a function that draws workers' matrices, with a seed of these labels."""
        rng = np.random.RandomState(self.votes.n_annotations % 2**32)
        return lambda workers: self.judged.draw(workers, rng)


def infer(model: Aggregator, votes: Annotations, gold: Ints | None) -> Floats:
    """Infer truths from labels and gold by class number; uniform without labels."""
    if not votes.n_annotations:
        return np.full((votes.n_tasks, votes.n_classes), 1.0 / max(votes.n_classes, 1))
    known = None
    if gold is not None:
        at = gold >= 0
        known = dict(zip(votes.tasks[at].tolist(), votes.classes[gold[at]], strict=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(clone(model).fit(votes, known).posterior_)
