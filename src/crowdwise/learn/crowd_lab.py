"""CROWDLAB: a classifier and the workers as one weighted vote, with a quality for each."""

from __future__ import annotations

from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from crowdwise.annotations import Annotations, find_labeled
from crowdwise.base.aggregator import by_worker
from crowdwise.base.fitting import order_by_name, place_by_name
from crowdwise.base.params import at_least, one_of
from crowdwise.base.traits import LearnerTraits
from crowdwise.errors import ParameterError, explain
from crowdwise.inference import pooled_confusion
from crowdwise.inference.crowdlab import (
    Consensus,
    CrowdlabCounts,
    apply_temperature,
    find_consensus,
    fit_temperature,
    majority_label,
    score_workers,
)
from crowdwise.learn.classifier_learner import ClassifierLearner
from crowdwise.typing import AnnotationsLike, FeaturesLike, Floats, GoldLike, Ints, RandomState


class CrowdLab(ClassifierLearner):
    """Assess labels, workers and tasks with the help of any classifier.

    The classifier's predictions for tasks it was not trained on count like another worker's
    labels. Everyone has a weight, by how often they agree with the others compared to always
    choosing the most frequent class; the weighted average is the posterior. Nothing is iterated,
    and no likelihood is assumed, so it works with few labels.

    Parameters
    ----------
    classifier : estimator, optional
        Any classifier with scikit-learn's interface; by default a logistic regression on
        standardized features. It is cross-validated on the majority's labels.
    cv : int, default=5
        Number of folds of the tasks for cross-validation.
    consensus : {"best_quality", "majority"}, default="best_quality"
        Whether a task's label is the most probable class of the posterior, or the majority's.
    calibrate : bool, default=False
        Whether to scale the classifier's probabilities first by the temperature that fits the
        labels best. Scores for active learning always do so.
    random_state : int or RandomState, optional
        Random seed of the folds, and of ties that nothing else breaks.

    Attributes
    ----------
    posterior_ : ndarray of shape (n_tasks, n_classes)
        P(truth | features, labels) of the training tasks.
    labels_, label_quality_ : Series
        Label of each task, and the probability that it is right.
    annotation_quality_ : ndarray of shape (n_annotations,)
        Probability that each annotation is right.
    worker_quality_ : Series
        Quality of each worker's labels, by the posterior and by agreement; the average for
        a worker without labels.
    worker_weight_, model_weight_ : Series and float
        Weights of the workers and of the classifier.
    pred_probs_ : ndarray of shape (n_tasks, n_classes)
        The classifier's predictions for tasks it was not trained on.
    classifier_ : estimator
        The classifier fitted to ``labels_``, whose classes are numbers.
    confusion_, worker_accuracy_
        P(label | truth), counted by ``posterior_``; and how often each worker is right.

    Notes
    -----
    The maths::

        P(truth of i = k)
            = weighted mean of the classifier's P(k | x_i) and of each worker's label, read as
            P(truth | label)
            = overall agreement for that label, and the rest evenly for the others

    Works when a decent classifier exists and labels are few: nothing is iterated, so nothing
    has to converge.

    Fails when the classifier repeats the majority's errors, since both then vote. Workers'
    habits (who confuses what) are not modeled.

    References
    ----------
    Goh, Tkachenko and Mueller (2022). CROWDLAB: supervised learning to infer consensus labels
    and quality scores for data with multiple annotators. doi:10.48550/arXiv.2210.06812

    Goh and Mueller (2023). ActiveLab: active learning with re-labeling by multiple
    annotators. doi:10.48550/arXiv.2301.11856

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from crowdwise.simulate import label_by_crowd, one_coin_confusion
    >>> X, truth = load_iris(return_X_y=True)
    >>> confusion = one_coin_confusion([0.9, 0.7, 0.6, 0.5], n_classes=3)
    >>> votes = label_by_crowd(truth, confusion, per_task=3, random_state=0)
    >>> model = CrowdLab(random_state=0).fit(X, votes)
    >>> bool(model.score(X, truth) > 0.9)
    True
    >>> next_ones = model.active_learning_scores().nsmallest(5).index  # label these next
    """

    traits = LearnerTraits(random_per=("task",))
    _axes = {**ClassifierLearner._axes, "annotation_quality_": ("annotations",)}
    _parameter_constraints = {
        **ClassifierLearner._parameter_constraints,
        "cv": [at_least(2)],
        "consensus": [one_of("best_quality", "majority")],
        "calibrate": ["boolean"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        classifier: BaseEstimator | None = None,
        *,
        cv: int = 5,
        consensus: str = "best_quality",
        calibrate: bool = False,
        random_state: RandomState = None,
    ) -> None:
        self.classifier = classifier
        self.cv = cv
        self.consensus = consensus
        self.calibrate = calibrate
        self.random_state = random_state

    def fit(
        self,
        X: FeaturesLike,
        annotations: AnnotationsLike,
        worker_features: FeaturesLike = None,
        gold: GoldLike = None,
        pred_probs: ArrayLike | None = None,
    ) -> Self:
        """Assess annotations; see :class:`ConfusionLearner` for the first four parameters.

        Parameters
        ----------
        pred_probs : array of shape (n_tasks, n_classes), optional
            A classifier's predictions for tasks that it was not trained on. Then none is
            cross-validated, and X may be None (but there is no ``predict`` without it).
        """
        self._given = pred_probs
        try:
            return super().fit(X, annotations, worker_features, gold)
        finally:
            del self._given

    def active_learning_scores(
        self, X: FeaturesLike = None, pred_probs: ArrayLike | None = None
    ) -> pd.Series:
        """Score how settled each task is; label those with the lowest scores next (ActiveLab).

        Parameters
        ----------
        X : array, sparse matrix or frame, optional
            Tasks that nobody has labeled yet; without it, the training tasks.
        pred_probs : array of shape (n_rows, n_classes), optional
            A classifier's predictions for them, instead of X.
        """
        check_is_fitted(self)
        if X is None and pred_probs is None:
            return pd.Series(self.settled_, index=pd.Index(self.tasks_, name="task"), name="score")
        proba = self.predict_proba(X) if pred_probs is None else np.asarray(pred_probs)
        best = apply_temperature(proba, self.temperature_).max(axis=1)
        return pd.Series(shrink_quality(best, *self.active_weights_, proba.shape[1]), name="score")

    def _fit(self, X: FeaturesLike, votes: Annotations, gold: Ints | None) -> tuple[Floats, Floats]:
        rng, counts = check_random_state(self.random_state), CrowdlabCounts.of(votes)
        known = np.full(votes.n_tasks, -1) if gold is None else gold
        draw = rng.random_sample(counts.votes.shape)
        labeled = np.flatnonzero(find_labeled(votes) | (known >= 0))
        if self._given is None:
            label = np.where(known >= 0, known, majority_label(counts, None, draw))
            proba = self._out_of_sample(X, labeled, label[labeled], self.cv, rng)
        else:
            proba = check_predictions(order_predictions(self._given, votes), counts.votes.shape)
        self.temperature_ = 1.0
        if (counts.size > 1).any():
            here = find_labeled(votes)
            self.temperature_ = fit_temperature(votes.shares()[here], proba[here])
        best = {"best_quality": self.consensus == "best_quality"}
        cool = apply_temperature(proba, self.temperature_)
        self.pred_probs_ = cool if self.calibrate else proba
        judged = find_consensus(counts, self.pred_probs_, known, draw, **best)
        self._describe(votes, counts, judged)
        self._settle(counts, find_consensus(counts, cool, known, draw, best_quality=True))
        self.__dict__.pop("classifier_", None)  # one from an earlier fit has other classes
        if X is not None:
            self._learn_classifier(X, labeled, judged.consensus[labeled], None)
        return judged.posterior, pooled_confusion(votes, judged.posterior)

    def _describe(self, votes: Annotations, counts: CrowdlabCounts, judged: Consensus) -> None:
        index = pd.Index(votes.tasks, name="task")
        labels = votes.classes[judged.consensus]
        self.labels_ = pd.Series(labels, index=index, name="agg_label")
        self.label_quality_ = pd.Series(judged.quality, index=index, name="quality")
        mine = judged.posterior[votes.task]  # (annotation, class)
        self.annotation_quality_: Floats = (
            mine[np.arange(len(mine)), votes.label]
            if votes.soft is None
            else (mine * votes.soft).sum(axis=1)
        )
        quality = score_workers(counts, judged)
        quality = np.where(np.isnan(quality), np.nanmean(quality), quality)
        self.worker_quality_ = by_worker(quality, votes.workers, "quality")
        self.worker_weight_ = by_worker(judged.worker, votes.workers, "weight")
        self.model_weight_ = judged.model

    def _settle(self, counts: CrowdlabCounts, judged: Consensus) -> None:
        """Compute scores of the training tasks, and what scores of other tasks need."""
        active = counts.by_worker(np.ones(len(counts.rows.task))) > 0
        usual = float(judged.worker[active].mean())
        heard = counts.by_class(judged.worker[counts.rows.worker]).sum(axis=1)
        n_classes = counts.votes.shape[1]
        self.settled_ = shrink_quality(judged.quality, judged.model + heard, usual, n_classes)
        self.active_weights_ = (judged.model, usual)


def shrink_quality(quality: Floats, weight: float | Floats, usual: float, n_classes: int) -> Floats:
    """Shrink the quality of labels toward chance by the weight of one more worker."""
    return (quality * weight + usual / n_classes) / (weight + usual)


def order_predictions(pred_probs: ArrayLike, votes: Annotations) -> ArrayLike:
    """Put probabilities in the order of tasks and classes, if a frame names them."""
    if not isinstance(pred_probs, pd.DataFrame):
        return pred_probs
    where = "the columns of pred_probs"
    row = order_by_name(pred_probs, votes.tasks, "task", "pred_probs")
    column = place_by_name(pred_probs.columns, votes.classes, "class", where)
    rows = pred_probs if row is None else pred_probs.iloc[row]
    return rows if column is None else rows.iloc[:, column]


def check_predictions(pred_probs: ArrayLike, shape: tuple[int, ...]) -> Floats:
    """Check that probabilities match the tasks and classes."""
    proba = np.asarray(pred_probs, dtype=np.float64)
    if proba.shape != shape or not (proba >= 0).all() or not (abs(proba.sum(1) - 1) < 1e-3).all():
        raise ParameterError(
            explain(
                f"pred_probs of shape {proba.shape} are not probabilities of these classes.",
                expected=f"shape {shape}: a row for each task, in order, that sums to one",
                fix="declare all classes when the annotations are made, with classes=[…]",
            )
        )
    return proba
