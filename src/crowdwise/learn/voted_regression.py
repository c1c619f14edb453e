"""Logistic regression of majority votes: what any other learner should beat."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.special import log_softmax, softmax
from sklearn.utils import check_random_state

from crowdwise.annotations import Annotations, find_labeled
from crowdwise.inference import clamp, share_best
from crowdwise.learn.confusion_learner import infer_truths
from crowdwise.learn.raykar import turn
from crowdwise.learn.search import deal_rows
from crowdwise.learn.softmax_regression import LinearLearner, Matrix, softmax_regression
from crowdwise.typing import FeaturesLike, Floats, Ints

RIDGES = tuple(10.0 ** np.arange(5.0, -1.1, -1.0))  # to choose from, from strong to weak
MAX_ITER = 100


class VotedRegression(LinearLearner):
    """Learn a logistic regression of the majority label, with ties shared.

    Parameters
    ----------
    ridge : float, optional
        Penalty on the squared weights; by cross-validation if not given.
    scale : bool, default=True
        Whether to standardize features to mean 0 and deviation 1 on the training rows.

    Attributes
    ----------
    ridge_ : float
        The penalty used.
    weights_, posterior_, confusion_, worker_accuracy_
        See :class:`LinearLearner`; workers are assessed by predictions and labels together.
    """

    def __init__(self, *, ridge: float | None = None, scale: bool = True) -> None:
        self.ridge = ridge
        self.scale = scale

    def _fit(self, X: FeaturesLike, votes: Annotations, gold: Ints | None) -> tuple[Floats, Floats]:
        plain, labeled = self._learn_design(X), find_labeled(votes)
        design, axes = turn(plain)
        target = clamp(share_best(votes.shares()), gold) * labeled[:, None]
        tried = RIDGES if self.ridge is None else (self.ridge,)
        score = np.zeros(len(tried))
        fold = deal_rows(plain, labeled, check_random_state(0))
        for f in range(fold.max() + 1 if len(tried) > 1 else 0):
            learned = target * (fold != f)[:, None]
            for i, weights in enumerate(path(design, learned, tried)):
                log_class = log_softmax(design[fold == f] @ weights, axis=1)
                score[i] += (target[fold == f] * log_class).sum()
        self.ridge_ = float(tried[score.argmax()])
        *_, weights = path(design, target, tried[: score.argmax() + 1])
        self.weights_ = axes @ weights
        return infer_truths(votes, softmax(design @ weights, axis=1), gold)


def path(design: Matrix, target: Floats, ridges: Sequence[float]) -> Iterator[Floats]:
    """Yield weights for each ridge from strong to weak, each starting from the one before."""
    weights = np.zeros((design.shape[1], target.shape[1]))
    for ridge in ridges:
        weights = softmax_regression(design, target, ridge, weights, MAX_ITER)
        yield weights
