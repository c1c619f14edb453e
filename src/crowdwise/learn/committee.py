"""A committee: one learner fitted from several starts, and the mean of its predictions."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Self

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from crowdwise.base.learner import Learner, WorkersLike
from crowdwise.base.params import THREADS, Constraints, at_least, checks_params
from crowdwise.base.traits import LearnerTraits
from crowdwise.errors import ParameterError, explain
from crowdwise.io import as_annotations
from crowdwise.learn.speelfc import SpeeLFC
from crowdwise.nets.features import remember_columns
from crowdwise.typing import AnnotationsLike, FeaturesLike, Floats, GoldLike, Ints, RandomState

SEEDS = 2**31 - 1


class Committee(Learner):
    """Average the predictions of several learners of one kind, each from a different start.

    Networks with different starts make different errors, most of all if labels are few and
    disagree: their mean is right more often than they are, and more aware of when it may be
    wrong. ``Training(n_restarts=10)`` keeps the best of ten by held-out labels instead,
    which costs less and gives one network.

    Parameters
    ----------
    learner : learner, optional
        The learner to copy: anything with this module's interface and a
        ``random_state``, of its own or of a part; ``SpeeLFC()`` if not given.
    n_members : int, default=10
        Number of members; each costs a fit.
    n_jobs : int, optional
        Number of members to fit in parallel; the result is the same.
    random_state : int or RandomState, optional
        Random seed from which the members' seeds are drawn.

    Attributes
    ----------
    members_ : list of learners
        The fitted members.
    posterior_ : ndarray of shape (n_tasks, n_classes)
        P(truth) of the training tasks, the mean of the members'.
    confusion_ : ndarray of shape (n_workers, n_classes, n_classes)
        P(label | truth), the mean of the members'; the axes are worker, truth, label.
    worker_accuracy_ : Series
        How often each worker is right on the training tasks, the mean of the members'.

    Notes
    -----
    The maths::

        P(truth | x) = 1/M Σ_m P_m(truth | x)

    Works when members are good and differ: their mean log-likelihood is never above that
    of the mean, and the gap measures their disagreement.

    Fails when members have classes swapped, or all make the same errors: these
    remain.

    References
    ----------
    Lakshminarayanan, Pritzel and Blundell (2017). Simple and scalable predictive
    uncertainty estimation using deep ensembles. NeurIPS. arXiv:1612.01474.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from crowdwise.learn import MLP, SpeeLFC, Training
    >>> from crowdwise.simulate import label_by_crowd, one_coin_confusion
    >>> X, truth = load_iris(return_X_y=True)
    >>> confusion = one_coin_confusion([0.9, 0.7, 0.6, 0.5], n_classes=3)
    >>> votes = label_by_crowd(truth, confusion, per_task=3, random_state=0)
    >>> one = SpeeLFC(truth=MLP(hidden=(8,)), training=Training(learning_rate=0.05, epochs=30))
    >>> model = Committee(one, n_members=3, random_state=0).fit(X, votes)
    >>> bool(model.score(X, truth) > 0.9)
    True
    """

    traits = LearnerTraits(random_per=("row", "task", "worker"))
    default_learner: ClassVar[Learner] = SpeeLFC()
    _parameter_constraints: ClassVar[Constraints] = {
        "learner": [Learner, None],
        "n_members": [at_least(1)],
        "n_jobs": THREADS,
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        learner: Learner | None = None,
        *,
        n_members: int = 10,
        n_jobs: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.learner = learner
        self.n_members = n_members
        self.n_jobs = n_jobs
        self.random_state = random_state

    @checks_params
    def fit(
        self,
        X: FeaturesLike,
        annotations: AnnotationsLike,
        worker_features: FeaturesLike = None,
        gold: GoldLike = None,
    ) -> Self:
        """Fit every member; the parameters are those of the members' ``fit``."""
        votes = as_annotations(annotations)
        seeds = check_random_state(self.random_state).randint(SEEDS, size=self.n_members)
        one = self.default_learner if self.learner is None else self.learner
        seeded = seeded_parts(one)
        members = [clone(one).set_params(**dict.fromkeys(seeded, int(seed))) for seed in seeds]
        self.members_ = Parallel(self.n_jobs)(
            delayed(member.fit)(X, votes, worker_features, gold) for member in members
        )
        first = self.members_[0]
        self.classes_, self.workers_, self.tasks_ = first.classes_, first.workers_, first.tasks_
        known = vars(first)
        remember_columns(self, known.get("feature_names_in_"), known.get("n_features_in_"))
        self.posterior_ = self._mean(lambda member: member.posterior_)
        if hasattr(first, "confusion_"):
            self.confusion_ = self._mean(lambda member: member.confusion_)
        return self

    @property
    def worker_accuracy_(self) -> pd.Series:
        first = self._fitted()[0].worker_accuracy_
        return pd.Series(
            self._mean(lambda member: member.worker_accuracy_), index=first.index, name=first.name
        )

    def predict_proba(self, X: FeaturesLike) -> Floats:
        """Return P(truth | features) of every row, the mean of the members'."""
        return self._mean(lambda member: member.predict_proba(X))

    def predict_worker_proba(
        self,
        X: FeaturesLike,
        workers: WorkersLike | None = None,
        worker_features: FeaturesLike = None,
    ) -> Floats:
        """Return P(label) by each worker, shape (n_rows, n_workers, n_classes)."""
        return self._mean(
            lambda member: member.predict_worker_proba(X, workers, *given(worker_features))
        )

    def predict_worker_accuracy(
        self,
        X: FeaturesLike,
        workers: WorkersLike | None = None,
        worker_features: FeaturesLike = None,
    ) -> Floats:
        """Return the probability that each worker is right, shape (n_rows, n_workers)."""
        return self._mean(
            lambda member: member.predict_worker_accuracy(X, workers, *given(worker_features))
        )

    def _label_proba(self, X: FeaturesLike, row: Ints, worker: Ints) -> Floats:
        return self._mean(lambda member: member._label_proba(X, row, worker))

    def _fitted(self) -> list[Learner]:
        check_is_fitted(self)
        return self.members_

    def _mean(self, said: Callable[[Learner], Floats]) -> Floats:
        """Return the mean of something over the members."""
        members = self._fitted()
        total = np.asarray(said(members[0]), dtype=np.float64)
        for member in members[1:]:
            total = total + said(member)
        return total / len(members)


def given(worker_features: FeaturesLike) -> tuple[FeaturesLike, ...]:
    """Return worker features for members that accept them, if there are any."""
    return () if worker_features is None else (worker_features,)


def seeded_parts(learner: Learner) -> list[str]:
    """List parameters that are seeds; without any, all members would be the same."""
    seeds = [name for name in learner.get_params() if name.split("__")[-1] == "random_state"]
    if not seeds:
        raise ParameterError(
            explain(
                f"{type(learner).__name__} has no random_state: all members would be the same.",
                expected="a learner with a random initialization",
                fix="use it on its own",
            )
        )
    return seeds
