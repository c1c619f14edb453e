"""Raykar's EM as a naive implementation has it: plain probabilities, and division by zero."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import softmax

from crowdwise import learn
from crowdwise.annotations import Annotations
from crowdwise.inference import count_labels
from crowdwise.learn.softmax_regression import softmax_regression
from crowdwise.typing import Floats, Ints

STEPS = 20


class PrintedRaykar(learn.Raykar):
    """The equations as printed, started from vote shares and without a prior.

    A worker who never labels any task inferred to be of some class has a row without counts,
    whose shares are 0 / 0. Everything after that is NaN. Which class the largest of such
    probabilities has, is up to the program; numpy picks the first.
    """

    def _fit(self, X: Any, votes: Annotations, gold: Ints | None) -> tuple[Floats, Floats]:
        design, posterior = self._learn_design(X), votes.shares()
        self.weights_ = np.zeros((design.shape[1], votes.n_classes))
        with np.errstate(invalid="ignore"):
            for _ in range(STEPS):
                counts = count_labels(votes, posterior)
                confusion = counts / counts.sum(axis=2, keepdims=True)
                self.weights_ = softmax_regression(design, posterior, 1.0, self.weights_)
                chance = softmax(design @ self.weights_, axis=1)
                np.multiply.at(chance, votes.task, confusion[votes.worker, :, votes.label])
                posterior = chance / chance.sum(axis=1, keepdims=True)
                if not np.isfinite(posterior).all():
                    self.weights_[:] = np.nan  # what a regression on such targets gives
                    break
        return first_class_for_nan(posterior), confusion

    def predict_proba(self, X: Any) -> Floats:
        return first_class_for_nan(super().predict_proba(X))


def first_class_for_nan(proba: Floats) -> Floats:
    """The first class with certainty where probabilities are NaN, as argmax picks it."""
    lost = ~np.isfinite(proba).all(axis=1, keepdims=True)
    return np.where(lost, np.eye(proba.shape[1])[0], proba)
