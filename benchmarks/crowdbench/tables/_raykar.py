"""Raykar's EM as a first version of it would be: in plain numbers, dividing by what is there."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import softmax

from crowdwise import learn
from crowdwise.annotations import Annotations
from crowdwise.inference.sweep import count
from crowdwise.learn._linear import softmax_regression
from crowdwise.typing import Floats, Ints

STEPS = 20


class PrintedRaykar(learn.Raykar):
    """The equations as printed, from shares of labels and without a prior.

    A worker who never labels what is taken for some class has a row without counts, whose
    share is 0 / 0. From there on everything is: not a number. Which class a comparison of such
    probabilities names, is up to the program; numpy names the first.
    """

    def _fit(self, X: Any, votes: Annotations, gold: Ints | None) -> tuple[Floats, Floats]:
        design, posterior = self._learn_design(X), votes.shares()
        self.weights_ = np.zeros((design.shape[1], votes.n_classes))
        with np.errstate(invalid="ignore"):
            for _ in range(STEPS):
                counts = count(votes.cells, posterior, votes.n_workers, votes.n_classes)
                confusion = counts / counts.sum(axis=2, keepdims=True)
                self.weights_ = softmax_regression(design, posterior, self.ridge, self.weights_)
                chance = softmax(design @ self.weights_, axis=1)
                np.multiply.at(chance, votes.task, confusion[votes.worker, :, votes.label])
                posterior = chance / chance.sum(axis=1, keepdims=True)
                if not np.isfinite(posterior).all():
                    self.weights_[:] = np.nan  # what a regression on such targets comes to
                    break
        return first_of_none(posterior), confusion

    def predict_proba(self, X: Any) -> Floats:
        return first_of_none(super().predict_proba(X))


def first_of_none(proba: Floats) -> Floats:
    """The first class for certain where probabilities are not numbers, as argmax has it."""
    lost = ~np.isfinite(proba).all(axis=1, keepdims=True)
    return np.where(lost, np.eye(proba.shape[1])[0], proba)
