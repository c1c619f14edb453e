"""Two stages: aggregate the labels, then train any classifier on the result."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, clone

from crowdwise.aggregate import IBCC
from crowdwise.annotations import Annotations, find_labeled
from crowdwise.base.aggregator import Aggregator
from crowdwise.base.params import one_of
from crowdwise.inference import pooled_confusion
from crowdwise.learn.classifier_learner import ClassifierLearner
from crowdwise.typing import FeaturesLike, Floats, Ints


class TwoStage(ClassifierLearner):
    """Train any classifier on the result of any aggregator.

    The aggregator sees the labels but no features, the classifier its result but no workers:
    the baseline that every end-to-end method should beat. Tasks without labels are left out of
    the training.

    Parameters
    ----------
    aggregator : Aggregator, optional
        Any method of :mod:`crowdwise.aggregate`; ``IBCC()`` if not given.
    classifier : estimator, optional
        Any classifier with scikit-learn's interface, or a network as a
        :class:`crowdwise.learn.NetClassifier`; by default a logistic regression on
        standardized features.
    targets : {"hard", "soft", "weighted"}, default="hard"
        Targets of the classifier: each task's most probable class; every class of a task
        as an example of its own, weighted by its probability; or the most probable class,
        weighted by its probability. The latter two need a classifier that accepts
        ``sample_weight``.

    Attributes
    ----------
    aggregator_, classifier_ : estimator
        The fitted stages; the classes of the classifier are numbers in ``classes_``.
    posterior_ : ndarray of shape (n_tasks, n_classes)
        P(truth | labels) of the training tasks, from the aggregator.
    confusion_ : ndarray of shape (n_workers, n_classes, n_classes)
        P(label | truth), the aggregator's if it has one, else counted by ``posterior_``; the
        axes are worker, truth, label.
    worker_accuracy_ : Series
        How often each worker is right on the training tasks.

    Notes
    -----
    The maths::

        targets = aggregator(labels);
            classifier fitted to (x, argmax targets), or to all classes with their weights

    Works when tasks have enough labels for the aggregator alone; any classifier will do.

    Fails when tasks have one or two labels: the aggregator cannot see that tasks are similar,
    and its errors become the classifier's truths.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from crowdwise.aggregate import MajorityVote
    >>> from crowdwise.simulate import label_by_crowd, one_coin_confusion
    >>> X, truth = load_iris(return_X_y=True)
    >>> confusion = one_coin_confusion([0.9, 0.7, 0.6, 0.5], n_classes=3)
    >>> votes = label_by_crowd(truth, confusion, per_task=3, random_state=0)
    >>> forest = RandomForestClassifier(max_depth=3, random_state=0)
    >>> bool(TwoStage(MajorityVote(), forest).fit(X, votes).score(X, truth) > 0.9)
    True
    """

    _parameter_constraints = {
        **ClassifierLearner._parameter_constraints,
        "aggregator": [Aggregator, None],
        "targets": [one_of("hard", "soft", "weighted")],
    }

    def __init__(
        self,
        aggregator: Aggregator | None = None,
        classifier: BaseEstimator | None = None,
        *,
        targets: str = "hard",
    ) -> None:
        self.aggregator = aggregator
        self.classifier = classifier
        self.targets = targets

    def _fit(self, X: FeaturesLike, votes: Annotations, gold: Ints | None) -> tuple[Floats, Floats]:
        labeled = find_labeled(votes)
        if gold is not None:
            labeled |= gold >= 0
        self.aggregator_ = self._first_stage().fit(votes, name_truths(gold, votes))
        posterior: Floats = self.aggregator_.posterior_
        chosen = self.aggregator_.label_codes_
        labeled &= chosen >= 0  # an aggregator may abstain
        row, label, weight = examples(posterior, chosen, np.flatnonzero(labeled), self.targets)
        self._learn_classifier(X, row, label, None if self.targets == "hard" else weight)
        confusion = getattr(self.aggregator_, "confusion_", None)
        if confusion is None or confusion.shape[1:] != (votes.n_classes, votes.n_classes):
            confusion = pooled_confusion(votes, posterior)
        return posterior, confusion

    def _first_stage(self) -> Aggregator:
        return IBCC() if self.aggregator is None else clone(self.aggregator)


def examples(
    posterior: Floats, chosen: Ints, labeled: Ints, targets: str
) -> tuple[Ints, Ints, Floats]:
    """Return the rows of X that the classifier learns from, their class numbers and weights."""
    if targets == "soft":
        at, label = np.nonzero(posterior[labeled] > 0)
        return labeled[at], label, posterior[labeled][at, label]
    label = chosen[labeled]
    return labeled, label, posterior[labeled, label]


def name_truths(gold: Ints | None, votes: Annotations) -> pd.Series | None:
    """Return known truths by name, as an aggregator expects them."""
    if gold is None:
        return None
    return pd.Series(votes.classes[gold[gold >= 0]], index=votes.tasks[gold >= 0])
