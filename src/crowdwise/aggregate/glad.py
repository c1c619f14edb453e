"""GLAD: skilled workers and easy tasks."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from crowdwise.base import THREADS, Aggregator, Traits, at_least, by_worker, one_of
from crowdwise.inference import Engine, Posterior, fixed_prior, normalize, until_converged
from crowdwise.inference.glad_steps import Abilities, GladSteps
from crowdwise.inference.logistic import normal_prior
from crowdwise.typing import Floats


class GLAD(Aggregator):
    """Infer truths with the skill of every worker and the difficulty of every task.

    Worker ``w`` labels task ``t`` correctly with probability ``sigmoid(skills_[w] * ease)``,
    where ``ease = exp(log_ease_[t]) = 1 / difficulty_[t]``; wrong labels are spread evenly over
    the other classes. Skill may be negative: such a worker is wrong more often than right, and
    counts in the opposite direction. The model cannot represent errors that favor a class.

    Fitted by generalized EM: after every E-step each skill, then each ease, takes one Newton
    step, shortened until its part of the objective does not fall. That leads to the same
    optimum as solving each M-step, with a fraction of the work.

    Parameters
    ----------
    skill_prior : pair of float, default=(1, 1)
        Mean and variance of the normal prior on skills, which start at its mean. A smaller
        variance makes workers more alike.
    ease_prior : pair of float, default=(1, 1)
        Mean and variance of the normal prior on the logarithm of ease, which starts at its
        mean. A variance near 0 gives all tasks the same difficulty.
    class_prior : {"uniform", "estimate"} or array of shape (n_classes,), default="uniform"
        P(truth): uniform, learned, or given.
    max_iter : int, default=200
        Maximum number of EM steps.
    tol : float, default=1e-6
        Stop once a step improves the objective by less than this fraction; 0 always takes
        ``max_iter`` steps.
    n_jobs : int, optional
        Threads to use: all cores that this process may use by default and with -1, all but one
        with -2. Results do not depend on it.

    Attributes
    ----------
    skills_ : Series
        Skill of each worker (alpha): the log-odds of being right on a task of ease 1.
    difficulty_ : Series
        Difficulty of each task (1 / beta), above 0: the inverse of its ease. At 0 all skilled
        workers are right; the larger, the closer they are to chance.
    log_odds_ : ndarray of shape (n_workers,)
        ``skills_`` as an array.
    log_ease_ : ndarray of shape (n_tasks,)
        log(beta) of each task; ``difficulty_`` is ``exp(-log_ease_)``. Tasks unknown to
        ``fit`` have the average.
    prior_ : ndarray of shape (n_classes,)
        P(truth).
    objective_ : list of float
        Log-posterior of the skills, the ease and the prior after each step, up to a
        constant. Never falls.
    n_iter_ : int
        Number of EM steps.

    Notes
    -----
    The maths::

        P(w is right on i)
            = sigmoid(skill[w] * ease[i]); wrong labels are equally likely
        skill[w] ~ Normal(1, 1), log ease[i] ~ Normal(1, 1) before the labels are seen

    Works when tasks differ in difficulty and workers in skill, and errors have no direction:
    photographs, entailment, sentiment.

    Fails when workers favor a class, which a skill cannot express; and with two or three
    labels per task, when ease is mostly determined by its prior.

    References
    ----------
    Whitehill, Ruvolo, Wu, Bergsma and Movellan (2009). Whose vote should count more: optimal
    integration of labels from labelers of unknown expertise. NeurIPS 22.
    https://papers.nips.cc/paper/3644

    Examples
    --------
    >>> labels = [[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]]  # tasks x workers
    >>> model = GLAD().fit(labels)
    >>> model.labels_.tolist()
    [0, 1, 0, 1]
    >>> model.skills_.round(1).tolist(), model.difficulty_.round(2).tolist()
    ([1.3, 1.3, 0.2], [0.4, 0.4, 0.26, 0.26])
    """

    _axes = {**Aggregator._axes, "log_odds_": ("workers_",), "log_ease_": ("tasks_",)}
    traits = Traits(monotone=True, learns_from_gold=True)
    _parameter_constraints = {
        "skill_prior": ["array-like"],
        "ease_prior": ["array-like"],
        "class_prior": [one_of("uniform", "estimate"), "array-like"],
        "max_iter": [at_least(1)],
        "tol": [at_least(0.0)],
        "n_jobs": THREADS,
    }

    def __init__(
        self,
        *,
        skill_prior: ArrayLike = (1.0, 1.0),
        ease_prior: ArrayLike = (1.0, 1.0),
        class_prior: ArrayLike = "uniform",
        max_iter: int = 200,
        tol: float = 1e-6,
        n_jobs: int | None = None,
    ) -> None:
        self.skill_prior = skill_prior
        self.ease_prior = ease_prior
        self.class_prior = class_prior
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs

    @property
    def skills_(self) -> pd.Series:
        check_is_fitted(self)
        return by_worker(self.log_odds_, self.workers_)

    @property
    def difficulty_(self) -> pd.Series:
        self._refuse_streamed()
        index = pd.Index(self.tasks_, name="task")
        return pd.Series(np.exp(-self.log_ease_), index=index, name="difficulty")

    def _fit(self, engine: Engine) -> Posterior:
        steps, fixed = self._steps(engine), fixed_prior(self.class_prior, engine.n_classes)
        found = steps.begin(normalize(np.ones(engine.n_classes)) if fixed is None else fixed)
        for em in until_converged(self.max_iter, self.tol, name="GLAD"):
            prior = found.truths / engine.n_tasks if fixed is None else fixed
            found = steps.improve(found, prior)
            pull = steps.of_skill.penalty(found.at.skill).sum() + found.pull
            em.record(found.evidence - pull)
        now = found.at
        self.prior_, self.log_odds_, self.log_ease_ = now.prior, now.skill, now.log_ease
        self.objective_, self.n_iter_ = em.objective, len(em.objective)
        return steps.posterior(now)

    def _steps(self, engine: Engine) -> GladSteps:
        of_skill = normal_prior(self.skill_prior, "skill_prior")
        of_ease = normal_prior(self.ease_prior, "ease_prior")
        return GladSteps(engine, of_skill, of_ease)

    def _posterior(self, engine: Engine) -> Posterior:
        learned = Abilities(self.prior_, self.log_odds_, self.log_ease_)
        return self._steps(engine).posterior(learned)

    def _worker_rows(self) -> Mapping[str, Floats]:
        return {"log_odds_": self.log_odds_}

    def _task_rows(self) -> Mapping[str, Floats]:
        return {"log_ease_": self.log_ease_}
