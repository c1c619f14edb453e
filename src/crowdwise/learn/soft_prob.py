"""SoftProb: logistic regression with every label as an example of its own."""

import numpy as np

from crowdwise.annotations import Annotations
from crowdwise.base.params import at_least
from crowdwise.inference.simplex import one_hot
from crowdwise.learn.confusion_learner import infer_truths
from crowdwise.learn.softmax_regression import LinearLearner, softmax_regression
from crowdwise.typing import FeaturesLike, Floats, Ints


class SoftProb(LinearLearner):
    """Learn a logistic regression from all labels, each taken at face value.

    A task with five labels counts as five examples, or equivalently as one with its share
    of labels as a soft target and a weight of five. All workers count equally, and yet it is
    hard to beat if most of them are good. ``TwoStage(MajorityVote(), classifier,
    targets="soft")`` does nearly the same with any classifier, with equal weight for all tasks.

    Parameters
    ----------
    ridge : float, default=1
        Penalty on the squared weights, ``1 / C`` of scikit-learn's ``LogisticRegression``.
    scale : bool, default=True
        Whether to standardize features to mean 0 and deviation 1 on the training rows.

    Attributes
    ----------
    posterior_ : ndarray of shape (n_tasks, n_classes)
        P(truth | features, labels) of the training tasks.
    confusion_ : ndarray of shape (n_workers, n_classes, n_classes)
        P(label | truth), counted by ``posterior_``; the axes are worker, truth, label.
    worker_accuracy_ : Series
        How often each worker is right on the training tasks.
    weights_ : ndarray of shape (n_features + 1, n_classes)
        Weights of the scaled features; the last row is the intercept.

    Notes
    -----
    The maths::

        loss = - sum over annotations of log softmax(x_i @ weights)[label]
            + ridge / 2 * |weights| ** 2

    Works when most workers are good: unsystematic errors average out over similar tasks.

    Fails when workers lean the same way, when poor workers give most of the labels, and
    when classes are not linear in the features.

    References
    ----------
    Raykar, Yu, Zhao, Valadez, Florin, Bogoni and Moy (2010). Learning from crowds. Journal of
    Machine Learning Research 11. https://jmlr.org/papers/v11/raykar10a.html

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from crowdwise.simulate import label_by_crowd, one_coin_confusion
    >>> X, truth = load_iris(return_X_y=True)
    >>> confusion = one_coin_confusion([0.9, 0.7, 0.6, 0.5], n_classes=3)
    >>> votes = label_by_crowd(truth, confusion, per_task=3, random_state=0)
    >>> bool(SoftProb().fit(X, votes).score(X, truth) > 0.8)
    True
    """

    _parameter_constraints = {**LinearLearner._parameter_constraints, "ridge": [at_least(0.0)]}

    def __init__(self, *, ridge: float = 1.0, scale: bool = True) -> None:
        self.ridge = ridge
        self.scale = scale

    def _fit(self, X: FeaturesLike, votes: Annotations, gold: Ints | None) -> tuple[Floats, Floats]:
        design, target = self._learn_design(X), votes.votes()
        if gold is not None:
            # A known truth replaces all labels of its task.
            sure = one_hot(gold, votes.n_classes) * np.maximum(target.sum(axis=1), 1.0)[:, None]
            target = np.where(gold[:, None] >= 0, sure, target)
        start = np.zeros((design.shape[1], votes.n_classes))
        self.weights_ = softmax_regression(design, target, self.ridge, start)
        return infer_truths(votes, self.predict_proba(X), gold)
