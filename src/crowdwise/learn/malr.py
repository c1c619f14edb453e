"""MA-LR: logistic regression and one reliability per worker."""

import numpy as np
from scipy.special import expit, log_softmax

from crowdwise.annotations import Annotations
from crowdwise.base.aggregator import by_worker
from crowdwise.base.params import at_least, between, more_than
from crowdwise.inference.rows import LabelRows
from crowdwise.inference.simplex import one_coin_confusion, one_hot
from crowdwise.inference.stopping import until_converged
from crowdwise.learn.confusion_learner import expect
from crowdwise.learn.softmax_regression import LinearLearner, penalty, softmax_regression
from crowdwise.typing import FeaturesLike, Floats, Ints


class MALR(LinearLearner):
    """Learn a logistic regression from labels that are reliable or random.

    Each label is drawn from the classifier with the reliability of its worker, and uniformly
    otherwise. One number per worker keeps the method stable when a confusion matrix per
    worker is too much to learn, but blind to bias.

    Parameters
    ----------
    use_reliability_prior : bool, default=True
        Whether labels are weighted by their worker's reliability (the paper). Without it, as in
        the authors' code, every label is weighted as if all workers were as likely to be reliable
        as not, and reliabilities are only reported: the agreement with the classifier.
    reliability : float, default=0.99
        Initial reliability of every worker.
    smoothing : float, default=0.01
        Pseudo-labels of either kind, so that no worker is ever certain.
    ridge : float, default=1
        Penalty on the squared weights; a larger one makes the classifier simpler.
    scale : bool, default=True
        Whether to standardize features to mean 0 and deviation 1 on the training rows.
    max_iter : int, default=100
        Maximum number of EM steps.
    tol : float, default=1e-5
        Stop once a step raises the objective by less than this fraction of it; with 0,
        ``max_iter`` steps are run.

    Attributes
    ----------
    reliability_ : Series
        Probability that each worker's labels are drawn from the classifier.
    confusion_ : ndarray of shape (n_workers, n_classes, n_classes)
        P(label | truth), from ``reliability_``; the axes are worker, truth, label.
    posterior_, worker_accuracy_, weights_
        See :class:`crowdwise.learn.Raykar`.
    objective_ : list of float
        Log-posterior of ``weights_`` and ``reliability_`` after each step, up to a constant.
        Never falls.
    n_iter_ : int
        Number of EM steps.

    Notes
    -----
    The maths::

        P(w gives i the label l)
            = reliability[w] * softmax(x_i @ weights)[l] + (1 - reliability[w]) / K

    Works when workers are good or random and have few labels, and the classes are nearly linear.

    Fails when workers favor a class or confuse two, and when classes are not linear in the
    features: the classifier's failures are blamed on the workers.

    References
    ----------
    Rodrigues, Pereira and Ribeiro (2013). Learning from multiple annotators: distinguishing good
    from random labelers. Pattern Recognition Letters 34(12). doi:10.1016/j.patrec.2013.05.012

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from crowdwise.simulate import label_by_crowd, one_coin_confusion
    >>> X, truth = load_iris(return_X_y=True)
    >>> confusion = one_coin_confusion([0.9, 0.7, 0.6, 0.5], n_classes=3)
    >>> votes = label_by_crowd(truth, confusion, per_task=3, random_state=0)
    >>> bool(MALR().fit(X, votes).score(X, truth) > 0.9)
    True
    """

    _parameter_constraints = {
        **LinearLearner._parameter_constraints,
        "use_reliability_prior": ["boolean"],
        "reliability": [between(0.0, 1.0)],
        "smoothing": [more_than(0.0)],
        "ridge": [at_least(0.0)],
        "max_iter": [at_least(1)],
        "tol": [at_least(0.0)],
    }

    def __init__(
        self,
        *,
        use_reliability_prior: bool = True,
        reliability: float = 0.99,
        smoothing: float = 0.01,
        ridge: float = 1.0,
        scale: bool = True,
        max_iter: int = 100,
        tol: float = 1e-5,
    ) -> None:
        self.use_reliability_prior = use_reliability_prior
        self.reliability = reliability
        self.smoothing = smoothing
        self.ridge = ridge
        self.scale = scale
        self.max_iter = max_iter
        self.tol = tol

    def _fit(self, X: FeaturesLike, votes: Annotations, gold: Ints | None) -> tuple[Floats, Floats]:
        design, rows, n_classes = self._learn_design(X), LabelRows.of(votes), votes.n_classes
        known = np.zeros((votes.n_tasks, n_classes)) if gold is None else one_hot(gold, n_classes)
        reliable = np.full(votes.n_workers, self.reliability)
        if not self.use_reliability_prior:
            reliable = np.full(votes.n_workers, 0.5)
        chance = np.ones(len(rows.worker))  # at first every label is taken at its word
        self.weights_ = np.zeros((design.shape[1], n_classes))
        for em in until_converged(self.max_iter, self.tol, name="MALR"):
            target = known + rows.by_class(chance, known.shape)
            self.weights_ = softmax_regression(design, target, self.ridge, self.weights_)
            if self.use_reliability_prior and em.objective:
                reliable = rows.mean_by_worker(chance, self.smoothing, votes.n_workers)
            log_class = log_softmax(design @ self.weights_, axis=1)
            chance, evidence = judge(rows, log_class, reliable)
            log_prior = self.smoothing * (np.log(reliable) + np.log1p(-reliable)).sum()
            evidence += (known * log_class).sum() - penalty(self.weights_, self.ridge)
            em.record(evidence + log_prior)
        self.objective_, self.n_iter_ = em.objective, len(em.objective)
        accuracy = reliable + (1.0 - reliable) / n_classes
        if not self.use_reliability_prior:
            agrees = (log_class.argmax(axis=1)[rows.task] == rows.label).astype(np.float64)
            reliable = accuracy = rows.mean_by_worker(agrees, self.smoothing, votes.n_workers)
        self.reliability_ = by_worker(reliable, votes.workers, "reliability")
        confusion = one_coin_confusion(accuracy, n_classes)
        return expect(votes, log_class, confusion, gold).posterior, confusion


def judge(rows: LabelRows, log_class: Floats, reliable: Floats) -> tuple[Floats, float]:
    """Run the E-step: P(each label is from the classifier), and the total evidence."""
    log_reliable = np.log(reliable)[rows.worker] + log_class[rows.task, rows.label]
    log_random = (np.log1p(-reliable) - np.log(log_class.shape[1]))[rows.worker]
    evidence = np.logaddexp(log_reliable, log_random)
    return expit(log_reliable - log_random), float((rows.weight * evidence).sum())
