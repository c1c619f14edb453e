"""Snorkel's label models, with its arguments and its arrays.

A label matrix ``L`` has a row for each example and a column for each labeling function; classes
count from 0, and -1 abstains.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike
from sklearn import metrics as scores
from sklearn.utils import check_random_state

import crowdwise
from crowdwise import aggregate
from crowdwise.annotations import Annotations
from crowdwise.errors import AnnotationError, ParameterError, explain
from crowdwise.inference import share_best
from crowdwise.typing import Floats, Ints

ABSTAIN = -1
CLOSE = 1e-5  # classes this close to the best one are tied
POLICIES = ("abstain", "random", "true-random")
# Settings of Snorkel's training that have no effect here.
IGNORED = ("optimizer_config", "lr_scheduler_config", "log_freq")
METRICS = {
    "accuracy": scores.accuracy_score,
    "precision": scores.precision_score,
    "recall": scores.recall_score,
    "f1": scores.f1_score,
    "f1_micro": lambda golds, preds: scores.f1_score(golds, preds, average="micro"),
    "f1_macro": lambda golds, preds: scores.f1_score(golds, preds, average="macro"),
    "matthews_corrcoef": scores.matthews_corrcoef,
}

__all__ = ["LabelModel", "MajorityLabelVoter"]


class Labeler(ABC):
    """The shared part of all label models: hard labels, and scores."""

    def __init__(self, cardinality: int = 2, **kwargs: object) -> None:
        self.cardinality = cardinality
        self.config = kwargs

    @abstractmethod
    def predict_proba(self, L: ArrayLike) -> Floats:
        """Return P(class) of every example, shape (n_examples, cardinality)."""

    def predict(
        self, L: ArrayLike, return_probs: bool = False, tie_break_policy: str = "abstain"
    ) -> Ints | tuple[Ints, Floats]:
        """Return the most probable class of every example.

        Parameters
        ----------
        L : ndarray of shape (n_examples, n_functions)
            Class numbers, -1 where a function abstains.
        return_probs : bool, default=False
            Whether to return the probabilities too.
        tie_break_policy : {"abstain", "random", "true-random"}
            What tied examples get: -1, a class chosen by row number (always the same, and the
            same as Snorkel's), or one drawn at random.
        """
        labels, proba = self._decide(L, tie_break_policy)
        return (labels, proba) if return_probs else labels

    def score(
        self,
        L: ArrayLike,
        Y: ArrayLike,
        metrics: list[str] | None = None,
        tie_break_policy: str = "abstain",
    ) -> dict[str, float]:
        """Return scores by name: accuracy (the default), coverage, precision, recall, f1,
        f1_micro, f1_macro, matthews_corrcoef and roc_auc, over the examples that got a label.
        """  # noqa: D205  a list of names
        labels, proba = self._decide(L, tie_break_policy)
        truth = np.asarray(Y, dtype=np.int64)
        both = (labels != ABSTAIN) & (truth != ABSTAIN)
        found: dict[str, float] = {}
        for name in metrics or ["accuracy"]:
            if name == "coverage":
                found[name] = float(np.mean(labels != ABSTAIN))
            elif name == "roc_auc":
                found[name] = float(scores.roc_auc_score(truth[both], proba[both, 1]))
            elif name in METRICS:
                found[name] = float(METRICS[name](truth[both], labels[both]))
            else:
                known = ", ".join([*METRICS, "coverage", "roc_auc"])
                raise ParameterError(
                    f"The metric {name!r} is unknown.\n  expected: {known}"
                    "\n  fix:      choose one of these"
                )
        return found

    def _decide(self, L: ArrayLike, policy: str) -> tuple[Ints, Floats]:
        """Return the class of every example, and the probabilities of all classes."""
        proba = self.predict_proba(L)
        return break_ties(proba, policy), proba

    def _annotations(self, L: ArrayLike) -> Annotations:
        """Convert a label matrix to annotations, with all rows, columns and classes."""
        matrix = np.asarray(L)
        if matrix.ndim != 2 or matrix.dtype.kind not in "iu":
            raise AnnotationError(
                explain(
                    f"L has shape {matrix.shape} and type {matrix.dtype}.",
                    expected="a matrix of integers, examples x labeling functions",
                    fix="apply the labeling functions first, or pass L.to_numpy()",
                )
            )
        if matrix.size and not (matrix.min() >= ABSTAIN and matrix.max() < self.cardinality):
            raise AnnotationError(
                explain(
                    f"L has labels from {matrix.min()} to {matrix.max()}.",
                    expected=f"-1 to {self.cardinality - 1}, given cardinality={self.cardinality}",
                    fix="set LabelModel(cardinality=…) to the number of classes",
                )
            )
        row, column = np.nonzero(matrix != ABSTAIN)
        return Annotations.from_codes(
            row,
            column,
            matrix[row, column],
            tasks=np.arange(matrix.shape[0]),
            workers=np.arange(matrix.shape[1]),
            classes=np.arange(self.cardinality),
        )


class MajorityLabelVoter(Labeler):
    """The label that most functions gave; tied labels share the probability."""

    def predict_proba(self, L: ArrayLike) -> Floats:
        """Return one over the number of best classes for each of them, 0 for the others."""
        return share_best(self._annotations(L).votes())


class LabelModel(Labeler):
    """Snorkel's LabelModel on ours, without torch; see :class:`crowdwise.aggregate.LabelModel`.

    Parameters
    ----------
    cardinality : int, default=2
        Number of classes.
    **kwargs
        ``verbose`` and ``device`` are accepted and ignored.

    Examples
    --------
    >>> import numpy as np
    >>> L = np.array([[0, 0, -1], [1, 1, 0], [0, 0, 0], [1, -1, 1], [-1, 0, 0], [1, 1, 1]])
    >>> model = LabelModel(cardinality=2)
    >>> model.fit(L, seed=1)
    >>> model.predict(L).tolist()
    [0, 1, 0, 1, 0, 1]
    """

    def fit(
        self,
        L_train: ArrayLike,
        Y_dev: ArrayLike | None = None,
        class_balance: ArrayLike | None = None,
        progress_bar: bool = True,
        *,
        n_epochs: int = 100,
        lr: float = 0.01,
        l2: float = 0.0,
        prec_init: float = 0.7,
        mu_eps: float | None = None,
        seed: int | None = None,
        **kwargs: object,
    ) -> None:
        """Learn how good the labeling functions are.

        Parameters
        ----------
        L_train : ndarray of shape (n_examples, n_functions)
            Class numbers, -1 where a function abstains.
        Y_dev : ndarray, optional
            Truths whose class frequencies are the class balance, if that is not given.
        class_balance : list of float, optional
            P(class), uniform by default.
        n_epochs, lr : int, float
            Number of gradient-descent steps, and the learning rate.
        l2 : float, default=0
            Pull toward the start; Snorkel's optimizer also applies it as weight decay, ours not.
        prec_init : float, default=0.7
            Initial probability that a label is right.
        mu_eps : float, optional
            Distance that rates keep from 0 and 1.
        seed : int, optional
            Random seed of the starting point, as in Snorkel.
        progress_bar, kwargs
            Only ``optimizer="sgd"`` and ``lr_scheduler="constant"`` are supported.
        """
        _refuse_other_training(kwargs)
        votes = self._annotations(L_train)
        model = aggregate.LabelModel(
            class_prior=self._balance(class_balance, Y_dev),
            precision=prec_init,
            start=0.5 if seed is None else check_random_state(seed).random_sample(),
            penalty=l2**2,
            learning_rate=lr,
            floor=mu_eps,
            max_iter=n_epochs,
        )
        self.model_ = model.fit(votes)
        self.model_.coverage_ = np.bincount(votes.worker, minlength=votes.n_workers) / len(votes)

    def predict_proba(self, L: ArrayLike) -> Floats:
        """Return P(class) of every example; the class balance if all functions abstain."""
        return self._fitted().predict_proba(self._annotations(L)).to_numpy()

    def get_conditional_probs(self) -> Floats:
        """Return P(label | class) by function, (n_functions, 1 + cardinality, cardinality).

        The first row is for abstaining.
        """
        rates = self._fitted().rates_.swapaxes(1, 2)  # (function, label, class)
        return np.concatenate([1.0 - rates.sum(axis=1, keepdims=True), rates], axis=1)

    def get_weights(self) -> Floats:
        """Return how often each function is right when it labels, shape (n_functions,)."""
        model = self._fitted()
        right = np.einsum("wkk,k->w", model.rates_, model.prior_)
        return np.clip(right / np.maximum(model.coverage_, 1e-12), 1e-6, 1.0)

    def save(self, destination: str | Path) -> None:
        """Write the model to one file, without pickle."""
        self._fitted().save(destination)

    def load(self, source: str | Path) -> None:
        """Load a model that :meth:`save` wrote, into this one."""
        self.model_ = crowdwise.load(source)
        self.cardinality = len(self.model_.classes_)

    def _balance(self, class_balance: ArrayLike | None, Y_dev: ArrayLike | None) -> str | Floats:
        """Return P(class): as given, as in the truths, or uniform."""
        if class_balance is None and Y_dev is None:
            return "uniform"
        if class_balance is None:
            truth = np.asarray(Y_dev)
            class_balance = np.bincount(truth, minlength=self.cardinality) / len(truth)
        balance = np.asarray(class_balance, dtype=np.float64)
        if balance.shape != (self.cardinality,) or not (balance > 0).all():
            raise ParameterError(
                explain(
                    f"The class balance is {balance.round(3).tolist()}.",
                    expected=f"{self.cardinality} positive numbers, one for each class",
                    fix="leave it out to have it estimated",
                )
            )
        return balance

    def _fitted(self) -> aggregate.LabelModel:
        if not hasattr(self, "model_"):
            raise ParameterError("This LabelModel is not fitted yet.\n  fix:      call fit first")
        return self.model_


def break_ties(proba: Floats, policy: str) -> Ints:
    """Return the best class of each row; ties are resolved by the policy."""
    if policy not in POLICIES:
        raise ParameterError(
            f"tie_break_policy={policy!r} is unknown.\n  expected: {', '.join(POLICIES)}"
            "\n  fix:      choose one of these"
        )
    best = proba.max(axis=1, keepdims=True) - proba < CLOSE
    labels = best.argmax(axis=1)
    rows = np.flatnonzero(best.sum(axis=1) > 1)
    if policy == "abstain":
        labels[rows] = ABSTAIN
        return labels
    rng = check_random_state(None)
    for row in rows:
        among = np.flatnonzero(best[row])
        draw = _hash_row(int(row)) if policy == "random" else rng.randint(len(among))
        labels[row] = among[draw % len(among)]
    return labels


def _hash_row(row: int) -> int:
    """Return a large number that depends only on the row number."""
    return int(hashlib.sha1(str(row).encode()).hexdigest(), 16)


def _refuse_other_training(named: dict[str, object]) -> None:
    only = {"optimizer": "sgd", "lr_scheduler": "constant"}
    for name, value in named.items():
        if name in IGNORED:
            continue
        if name not in only:
            raise ParameterError(
                f"fit has no setting {name!r}.\n  expected: n_epochs, lr, l2, …"
                "\n  fix:      leave it out"
            )
        if value != only[name]:
            raise ParameterError(
                f"{name}={value!r}.\n  expected: {only[name]!r}, the only choice"
                "\n  fix:      leave it out"
            )
