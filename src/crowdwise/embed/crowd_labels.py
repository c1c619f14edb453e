"""Any classifier after an embedder, trained on an aggregator's labels and weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crowdwise.aggregate import MajorityVote
from crowdwise.learn.two_stage import TwoStage

if TYPE_CHECKING:
    from sklearn.base import ClassifierMixin

    from crowdwise.base import Aggregator


class CrowdLabels(TwoStage):
    """Train any classifier on the aggregator's labels and weights, at the end of a pipeline.

    Works like :class:`crowdwise.learn.TwoStage`, with the classifier first and the defaults for
    evaluating representations: majority vote, each task weighted by the share of its label.

    Parameters
    ----------
    classifier : estimator, optional
        Any classifier with scikit-learn's interface; by default a logistic regression on
        standardized features.
    aggregator : Aggregator, optional
        Any method of :mod:`crowdwise.aggregate`; ``MajorityVote()`` if not given.
    targets : {"weighted", "hard", "soft"}, default="weighted"
        Each task's most probable class, weighted by its probability; the same without a weight;
        or every class of a task, weighted by its probability.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import Pipeline
    >>> from crowdwise.embed import RLL
    >>> from crowdwise.learn import Training
    >>> from crowdwise.simulate import label_by_crowd, one_coin_confusion
    >>> X, truth = make_classification(200, 8, random_state=0)
    >>> votes = label_by_crowd(truth, one_coin_confusion([0.9, 0.8, 0.7], 2), 3, random_state=0)
    >>> rll = RLL(training=Training(learning_rate=1e-2, batch_size=256, epochs=2), random_state=0)
    >>> model = Pipeline([("embed", rll), ("classify", CrowdLabels(LogisticRegression()))])
    >>> bool(model.fit(X, votes).score(X, truth) > 0.85)
    True
    """

    def __init__(
        self,
        classifier: ClassifierMixin | None = None,
        *,
        aggregator: Aggregator | None = None,
        targets: str = "weighted",
    ) -> None:
        self.classifier = classifier
        self.aggregator = aggregator
        self.targets = targets

    def _first_stage(self) -> Aggregator:
        return MajorityVote() if self.aggregator is None else super()._first_stage()
