"""What the tables of representations share: embedders, and the classifier that scores them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from crowdbench.sets import LearningSet
from crowdwise.annotations import Annotations
from crowdwise.datasets.crowd import Crowd, with_tasks
from crowdwise.embed import CrowdLabels
from crowdwise.learn import Training
from crowdwise.typing import Array, Floats

STRENGTHS = tuple(10.0 ** np.arange(-4, 5))
DECAYS = (1e-3, 1e-2)


class Probe(BaseEstimator):
    """An embedder (or none), then a logistic regression on an aggregator's labels.

    ``choices`` are weight decays of the embedder, or pairs of an encoder and a weight decay;
    ``strengths`` are inverse penalties of the regression. Validation tasks decide which are best.
    ``etas`` are scales of the embedder's similarities, of which :func:`over_folds` takes the one
    that predicts the labels of held-out tasks best.
    """

    def __init__(
        self,
        embedder: Any = None,
        *,
        aggregator: Any = None,
        targets: str = "hard",
        choices: tuple[Any, ...] = DECAYS,
        strengths: tuple[float, ...] = STRENGTHS,
        etas: tuple[float, ...] = (),
    ) -> None:
        self.embedder = embedder
        self.aggregator = aggregator
        self.targets = targets
        self.choices = choices
        self.strengths = strengths
        self.etas = etas

    def embedders(self) -> list[Any]:
        """The embedder with each of the choices; None where there is no embedder."""
        if self.embedder is None:
            return [None]
        made = [clone(self.embedder) for _ in self.choices]
        for one, choice in zip(made, self.choices, strict=True):
            encoder, decay = choice if isinstance(choice, tuple) else (one.encoder, choice)
            training = clone(one.training).set_params(weight_decay=decay)
            one.set_params(encoder=encoder, training=training)
        return made

    def classifier(self, strength: float) -> CrowdLabels:
        scaled = make_pipeline(StandardScaler(), LogisticRegression(C=strength, max_iter=2000))
        return CrowdLabels(scaled, aggregator=self.aggregator, targets=self.targets)


def brief(epochs: int) -> Training:
    """The training that all embedders share."""
    return Training(learning_rate=1e-3, batch_size=256, epochs=epochs, weight_decay=1e-3)


def chosen_on_validation(model: Probe, data: LearningSet, _seed: int) -> dict[str, float]:
    """Scores on the test tasks; majority labels of validation tasks decide the settings."""
    assert data.valid is not None
    assert data.y_test is not None
    wanted = data.valid.annotations.votes().argmax(axis=1)
    best, found = -1.0, {}
    for embedder in model.embedders():
        if embedder is not None:
            embedder.fit(data.X, data.annotations)
        train, valid, test = (
            X if embedder is None else embedder.transform(X)
            for X in (data.X, data.valid.X, data.X_test)
        )
        for strength in model.strengths:
            classifier = model.classifier(strength).fit(train, data.annotations)
            value = sum(binary_scores(classifier.predict_proba(valid)[:, 1], wanted).values())
            if value > best:
                truth = classifier.classes_.tolist().index
                y = np.array([truth(name) for name in data.y_test])
                best, found = value, binary_scores(classifier.predict_proba(test)[:, 1], y)
    return found


def binary_scores(positive: Floats, truth: Array) -> dict[str, float]:
    """Accuracy and area under the curve of P(positive)."""
    return {
        "accuracy": float(np.mean((positive > 0.5) == truth)),
        "AUC": float(roc_auc_score(truth, positive)),
    }


def with_best_eta(model: Probe, X: Array, votes: Annotations) -> Any:
    """The embedder with the eta that predicts labels of a fifth of the tasks best."""
    held = np.random.RandomState(0).permutation(len(X)) < len(X) // 5
    given = votes[np.flatnonzero(held)].votes()
    value = {}
    for eta in model.etas:
        embedder = model.embedders()[0].set_params(loss__eta=eta)
        learned = votes[np.flatnonzero(~held)]
        Z = embedder.fit(X[~held], learned).transform(X[~held])
        classifier = model.classifier(model.strengths[0]).fit(Z, learned)
        chance = np.log(np.maximum(classifier.predict_proba(embedder.transform(X[held])), 1e-9))
        value[eta] = float((given * chance).sum() / given.sum())
    return model.embedders()[0].set_params(loss__eta=max(value, key=value.__getitem__))


def over_folds(model: Probe, crowd: Crowd, _seed: int) -> dict[str, float]:
    """Accuracy and F1 of the positive class by five-fold cross-validation, untuned."""
    assert crowd.split is not None
    assert crowd.truth is not None
    assert crowd.X is not None
    assert crowd.X_tasks is not None
    truth = crowd.truth.loc[crowd.X_tasks].to_numpy()
    names, fold = np.unique(crowd.split.loc[crowd.X_tasks].to_numpy(), return_inverse=True)
    predicted = np.empty_like(truth)
    for number in range(len(names)):
        inside = fold != number
        votes: Annotations = with_tasks(crowd.annotations, crowd.X_tasks[inside])
        X, X_test = crowd.X[inside], crowd.X[~inside]
        embedder = with_best_eta(model, X, votes) if model.etas else model.embedders()[0]
        if embedder is not None:
            X, X_test = embedder.fit(X, votes).transform(X), embedder.transform(X_test)
        predicted[~inside] = model.classifier(model.strengths[0]).fit(X, votes).predict(X_test)
    positive = np.unique(truth)[-1]
    return {
        "accuracy": float(np.mean(predicted == truth)),
        "F1": float(f1_score(truth, predicted, pos_label=positive, zero_division=0.0)),
    }
