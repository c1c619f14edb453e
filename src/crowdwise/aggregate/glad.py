"""GLAD: skilled workers and easy tasks."""

from collections.abc import Mapping
from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from crowdwise.base import Aggregator, Traits, at_least, by_worker, one_of
from crowdwise.inference import Engine, fixed_prior, gold_mask, normalize, until_converged
from crowdwise.inference.logistic import (
    LabelResponses,
    Normal,
    Shape,
    ascend,
    at_scale,
    normal_prior,
    responses_of,
    softplus,
)
from crowdwise.typing import Floats


class GLAD(Aggregator):
    """Infer truths with the skill of every worker and the difficulty of every task.

    Worker ``w`` labels task ``t`` correctly with probability ``sigmoid(skills_[w] * ease)``,
    where ``ease = exp(log_ease_[t]) = 1 / difficulty_[t]``; wrong labels fall evenly on the
    other classes. Skill may be negative: such a worker is wrong more often than right, and
    counts in the opposite direction. Errors that lean toward a class are beyond this model.

    Fitted by generalized EM: after every E-step each skill, then each ease, takes one Newton
    step, shortened until its part of the objective does not fall. That leads to the same
    optimum as solving each M-step, with a fraction of the work.

    Parameters
    ----------
    skill_prior : pair of float, default=(1, 1)
        Mean and variance of the normal prior on skills, and its mean the start. A smaller
        variance makes workers more alike.
    ease_prior : pair of float, default=(1, 1)
        Mean and variance of the normal prior on the logarithm of ease, and its mean the
        start. A variance near 0 gives all tasks the same difficulty.
    class_prior : {"uniform", "estimate"} or array of shape (n_classes,), default="uniform"
        P(truth): the same for all classes, learned, or given.
    max_iter : int, default=200
        Maximum number of EM steps.
    tol : float, default=1e-6
        Stop once a step improves the objective by less than this fraction; 0 always takes
        ``max_iter`` steps.

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
        EM steps taken.

    Notes
    -----
    The maths::

        P(w is right on i)
            = sigmoid(skill[w] * ease[i]); wrong labels are equally likely
        skill[w] ~ Normal(1, 1), log ease[i] ~ Normal(1, 1) before the labels are seen

    Works when tasks differ in difficulty and workers in skill, and errors have no direction:
    photographs, entailment, sentiment.

    Fails when workers favor a class, which a skill cannot express; and with two or three
    labels per task, where ease is determined mostly by its prior.

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

    traits = Traits(monotone=True, learns_from_gold=True, blockwise=False)
    _parameter_constraints = {
        "skill_prior": ["array-like"],
        "ease_prior": ["array-like"],
        "class_prior": [one_of("uniform", "estimate"), "array-like"],
        "max_iter": [at_least(1)],
        "tol": [at_least(0.0)],
    }

    def __init__(
        self,
        *,
        skill_prior: ArrayLike = (1.0, 1.0),
        ease_prior: ArrayLike = (1.0, 1.0),
        class_prior: ArrayLike = "uniform",
        max_iter: int = 200,
        tol: float = 1e-6,
    ) -> None:
        self.skill_prior = skill_prior
        self.ease_prior = ease_prior
        self.class_prior = class_prior
        self.max_iter = max_iter
        self.tol = tol

    @property
    def skills_(self) -> pd.Series:
        check_is_fitted(self)
        return by_worker(self.log_odds_, self.workers_)

    @property
    def difficulty_(self) -> pd.Series:
        check_is_fitted(self)
        index = pd.Index(self.tasks_, name="task")
        return pd.Series(np.exp(-self.log_ease_), index=index, name="difficulty")

    def _fit(self, engine: Engine) -> Floats:
        annotations, gold = engine.collect()
        rows, mask = responses_of(annotations), gold_mask(gold, annotations.n_classes)
        of_skill = normal_prior(self.skill_prior, "skill_prior")
        of_ease = normal_prior(self.ease_prior, "ease_prior")
        fixed = fixed_prior(self.class_prior, annotations.n_classes)
        skill = np.full(annotations.n_workers, of_skill.mean)
        log_ease = np.full(annotations.n_tasks, of_ease.mean)
        prior = normalize(np.ones(annotations.n_classes)) if fixed is None else fixed
        posterior, _ = expect(rows, prior, skill, log_ease, mask)
        for em in until_converged(self.max_iter, self.tol, name="GLAD"):
            prior = posterior.mean(axis=0) if fixed is None else fixed
            right = posterior.ravel()[rows.cell]
            skill = ascend(
                skill, partial(at_skill, rows=rows, right=right, log_ease=log_ease, prior=of_skill)
            )
            log_ease = ascend(
                log_ease, partial(at_ease, rows=rows, right=right, skill=skill, prior=of_ease)
            )
            posterior, evidence = expect(rows, prior, skill, log_ease, mask)
            em.record(evidence - of_skill.penalty(skill).sum() - of_ease.penalty(log_ease).sum())
        self.prior_, self.log_odds_, self.log_ease_ = prior, skill, log_ease
        self.objective_, self.n_iter_ = em.objective, len(em.objective)
        return posterior

    def _posterior(self, engine: Engine) -> Floats:
        rows = responses_of(engine.collect()[0])
        return expect(rows, self.prior_, self.log_odds_, self.log_ease_)[0]

    def _worker_rows(self) -> Mapping[str, Floats]:
        return {"log_odds_": self.log_odds_}

    def _task_rows(self) -> Mapping[str, Floats]:
        return {"log_ease_": self.log_ease_}


def expect(
    rows: LabelResponses, prior: Floats, skill: Floats, log_ease: Floats, mask: Floats | None = None
) -> tuple[Floats, float]:
    """E-step: P(truth | labels) of each task, and the log-evidence of all.

    A label lifts its class over the others by ``log(sigmoid(x) / (sigmoid(-x) / (K - 1)))``,
    which is ``x + log(K - 1)`` where ``x = skill * ease``.
    """
    shape, others = (len(log_ease), len(prior)), np.log(max(len(prior) - 1, 1))
    x = skill[rows.worker] * np.exp(log_ease)[rows.task]
    lift = rows.total(rows.cell, shape[0] * shape[1], x + others).reshape(shape)
    with np.errstate(divide="ignore"):  # an estimated prior may be 0
        joint = np.log(prior) + lift + (0.0 if mask is None else mask)
    top = joint.max(axis=1, keepdims=True)
    share = np.exp(joint - top)
    total = share.sum(axis=1, keepdims=True)
    all_wrong = (softplus(x) + others) * (1.0 if rows.weight is None else rows.weight)
    return share / total, float((top + np.log(total)).sum() - all_wrong.sum())


def at_skill(
    skill: Floats, *, rows: LabelResponses, right: Floats, log_ease: Floats, prior: Normal
) -> Shape:
    """M-step: the expected log-posterior as a function of each worker's skill."""
    shape = at_scale(skill, np.exp(log_ease)[rows.task], rows.worker, rows, right)
    return prior.added_to(shape, skill)


def at_ease(
    log_ease: Floats, *, rows: LabelResponses, right: Floats, skill: Floats, prior: Normal
) -> Shape:
    """M-step: the expected log-posterior as a function of each task's log ease."""
    ease = np.exp(log_ease)
    shape = at_scale(ease, skill[rows.worker], rows.task, rows, right)
    # Not concave in the logarithm: where it bends upwards, leave the curvature to the prior.
    bend = np.maximum(ease**2 * shape.curvature - ease * shape.slope, 0.0)
    return prior.added_to(Shape(shape.value, ease * shape.slope, bend), log_ease)
