"""What people write themselves: aggregate, then a logistic regression by scikit-learn."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler

from crowdwise.aggregate import IBCC
from crowdwise.annotations import Annotations, find_labeled
from crowdwise.inference import share_best
from crowdwise.typing import Array, Floats

INVERSE_PENALTIES = 10.0 ** np.arange(-5.0, 1.1, 1.0)
N_FOLDS = 5
FAINT = 1e-3  # probabilities below it make no example


class VotesThenLR(ClassifierMixin, BaseEstimator):
    """Logistic regression on standardized features, its penalty by cross-validation.

    ``targets`` are each task's majority label (``"majority"``, ties shared), its share of labels
    (``"shares"``) or IBCC's posterior (``"ibcc"``); every class of a task is an example of its
    own, weighted by its probability, and the examples of a task stay in one fold.
    """

    def __init__(self, targets: str = "majority") -> None:
        self.targets = targets

    def fit(self, X: Array, votes: Annotations) -> Self:
        self.classes_ = votes.classes
        labeled = np.flatnonzero(find_labeled(votes))
        target = self._target(votes)[labeled]
        self.scaler_ = StandardScaler().fit(X)
        rows = self.scaler_.transform(X)[labeled]
        scores = np.zeros(len(INVERSE_PENALTIES))
        folds = KFold(min(N_FOLDS, len(rows)), shuffle=True, random_state=0)
        for train, test in folds.split(rows):
            for number, fitted in enumerate(_path(rows[train], target[train])):
                proba = _proba(fitted, rows[test], target.shape[1])
                scores[number] += (target[test] * np.log(np.maximum(proba, 1e-12))).sum()
        self.inverse_penalty_ = float(INVERSE_PENALTIES[scores.argmax()])
        for number, fitted in enumerate(_path(rows, target)):
            if number == scores.argmax():
                self.classifier_ = fitted
                break
        return self

    def _target(self, votes: Annotations) -> Floats:
        if self.targets == "ibcc":
            return IBCC().fit(votes).posterior_
        shares = votes.shares()
        return share_best(shares) if self.targets == "majority" else shares

    def predict_proba(self, X: Array) -> Floats:
        return _proba(self.classifier_, self.scaler_.transform(X), len(self.classes_))

    def predict(self, X: Array) -> Array:
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def _path(rows: Array, target: Floats) -> Any:
    """Fitted regressions, one for each penalty from the strongest, each starting at the last."""
    row, label = np.nonzero(target > FAINT)
    if len(np.unique(label)) < 2:
        yield from (None for _ in INVERSE_PENALTIES)
        return
    examples, weight = rows[row], target[row, label]
    model = LogisticRegression(warm_start=True, max_iter=200, tol=1e-3)
    for inverse in INVERSE_PENALTIES:
        yield model.set_params(C=inverse).fit(examples, label, sample_weight=weight)


def _proba(fitted: Any, rows: Array, n_classes: int) -> Floats:
    if fitted is None:
        return np.full((len(rows), n_classes), 1.0 / n_classes)
    proba = np.zeros((len(rows), n_classes))
    proba[:, fitted.classes_] = fitted.predict_proba(rows)
    return proba
