"""The shared part of learners that train any scikit-learn classifier."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from crowdwise.base.fitting import column_names, n_rows, refuse_other_columns, refuse_width
from crowdwise.base.params import Constraints
from crowdwise.errors import AnnotationError, ParameterError, explain, listing
from crowdwise.learn.confusion_learner import ConfusionLearner
from crowdwise.learn.softmax_regression import as_table
from crowdwise.nets.features import remember_columns, take
from crowdwise.nets.mapped import MappedRows
from crowdwise.typing import Array, FeaturesLike, Floats, Ints


class ClassifierLearner(ConfusionLearner):
    """A learner that trains a user's classifier on inferred labels.

    Attributes
    ----------
    classifier_ : estimator
        The fitted classifier, whose classes are numbers in ``classes_``.
    """

    _parameter_constraints: ClassVar[Constraints] = {"classifier": [BaseEstimator, None]}
    classifier: BaseEstimator | None
    classifier_: BaseEstimator

    def predict_proba(self, X: FeaturesLike) -> Floats:
        """Return P(truth | features) of every row; 0 or 1 if the classifier has none."""
        check_is_fitted(self)
        table = self._table(X)
        if self.classifier is None:  # a user's classifier checks its own columns
            refuse_other_columns(column_names(X), getattr(self, "feature_names_in_", None))
            refuse_width(table.shape[1], self.classifier_.n_features_in_)
        return class_proba(self.classifier_, table, len(self.classes_))

    def _table(self, X: FeaturesLike) -> FeaturesLike:
        """Return numbers, for the default classifier or from disk; else X unchanged."""
        return as_table(X) if self.classifier is None or isinstance(X, MappedRows) else X

    def _unfitted(self, table: FeaturesLike) -> BaseEstimator:
        return default_classifier(table) if self.classifier is None else clone(self.classifier)

    def _learn_classifier(
        self, X: FeaturesLike, row: Ints, label: Ints, weight: Floats | None
    ) -> None:
        """Fit the classifier to some rows, with their class numbers and weights."""
        refuse_one_class(self.classes_[np.unique(label)])
        table = self._table(X)
        classifier = self._unfitted(table)
        how = {} if weight is None else {weight_name(classifier): weight}
        self.classifier_ = classifier.fit(take(table, row), label, **how)
        n_features = getattr(self.classifier_, "n_features_in_", None)
        remember_columns(self, getattr(self, "feature_names_in_", None), n_features)

    def _out_of_sample(
        self, X: FeaturesLike, labeled: Ints, label: Ints, cv: int, rng: np.random.RandomState
    ) -> Floats:
        """Predict each task by a classifier trained on other tasks.

        ``labeled`` are the tasks to train on, and ``label`` their class numbers.
        """
        refuse_too_few(len(labeled))
        table, n_classes = self._table(X), len(self.classes_)
        proba = np.zeros((len(self.tasks_), n_classes))
        # Each fold gets its share of every class: tasks sorted by class are dealt out in turn.
        part = np.empty(len(labeled), dtype=np.int64)
        part[np.lexsort((rng.random_sample(len(labeled)), label))] = np.arange(len(labeled))
        part %= min(cv, len(labeled))
        unlabeled = np.setdiff1d(np.arange(len(self.tasks_)), labeled)
        for number in range(-1 if len(unlabeled) else 0, part.max() + 1):
            inside, asked = part != number, labeled[part == number] if number >= 0 else unlabeled
            several = len(np.unique(label[inside])) > 1  # most classifiers refuse a single class
            model = self._unfitted(table) if several else DummyClassifier()
            model.fit(take(table, labeled[inside]), label[inside])
            proba[asked] = class_proba(model, take(table, asked), n_classes)
        return proba


def class_proba(classifier: BaseEstimator, table: FeaturesLike, n_classes: int) -> Floats:
    """Return P(class) by a classifier, also for classes it never saw."""
    if not n_rows(table):  # refused by scikit-learn
        return np.zeros((0, n_classes))
    if not hasattr(classifier, "predict_proba"):
        return np.eye(n_classes)[classifier.predict(table)]
    found = np.asarray(classifier.predict_proba(table), dtype=np.float64)
    proba = np.zeros((len(found), n_classes))
    proba[:, classifier.classes_] = found
    return proba


def default_classifier(X: FeaturesLike) -> Pipeline:
    """Make logistic regression on scaled features; centering would fill a sparse matrix."""
    scaler = StandardScaler(with_mean=not issparse(X))
    return make_pipeline(scaler, LogisticRegression(max_iter=1000))


def weight_name(classifier: BaseEstimator) -> str:
    """Return the name of the weights in a classifier's fit, or a pipeline's last step's."""
    if isinstance(classifier, Pipeline):
        name, last = classifier.steps[-1]
        return f"{name}__{weight_name(last)}"
    if not has_fit_parameter(classifier, "sample_weight"):
        raise ParameterError(
            explain(
                f"{type(classifier).__name__} does not accept weights.",
                expected="a classifier whose fit accepts sample_weight",
                fix='use targets="hard", or another classifier',
            )
        )
    return "sample_weight"


def refuse_one_class(found: Array) -> None:
    """Refuse a single class, since a classifier needs two to separate."""
    if len(found) < 2:
        raise AnnotationError(
            explain(
                "All tasks with labels have the same inferred class, so there is nothing to learn.",
                first=listing(found),
                expected="two classes or more",
                fix="choose another aggregator, or collect labels of the other classes",
            )
        )


def refuse_too_few(n_labeled: int) -> None:
    """Refuse fewer than two tasks, since some are left out."""
    if n_labeled < 2:
        raise AnnotationError(
            explain(
                f"{n_labeled} task has labels, which is too few to leave one out.",
                expected="two tasks with labels, or more",
                fix="give pred_probs, or use a method of crowdwise.aggregate",
            )
        )
