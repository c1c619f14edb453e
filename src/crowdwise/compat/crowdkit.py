"""crowd-kit's aggregators, with its arguments and its tables.

Data is a frame with the columns task, worker and label; results are pandas series and frames as
in ``crowdkit.aggregation``. If the two differ on purpose, the class says so.
"""

from __future__ import annotations

from typing import Self

import numpy as np
import pandas as pd

from crowdwise import aggregate
from crowdwise.aggregate.dawid_skene import WorkerHistory
from crowdwise.annotations import Annotations
from crowdwise.compat._crowdkit_base import (
    EPSILON,
    Fitted,
    Table,
    annotations_of,
    errors_of,
    mean_accuracy,
    one_mean,
    priors_of,
)
from crowdwise.compat._crowdkit_votes import (
    MMSR,
    GoldMajorityVote,
    MajorityVote,
    Wawa,
    ZeroBasedSkill,
)
from crowdwise.errors import ParameterError, explain
from crowdwise.inference.simplex import one_coin_confusion
from crowdwise.typing import Floats, GoldLike, RandomState

__all__ = [
    "GLAD",
    "KOS",
    "MACE",
    "MMSR",
    "DawidSkene",
    "GoldMajorityVote",
    "MajorityVote",
    "OneCoinDawidSkene",
    "Wawa",
    "ZeroBasedSkill",
]


class DawidSkene(Fitted):
    """A confusion matrix for every worker, fitted by EM.

    Stops by the likelihood per label, unlike crowd-kit, whose bound counts the prior once per
    label, so that it may stop too early or too late. With ``tol=0`` both take ``n_iter`` steps
    and end in the same place. Counts of ``initial_error`` ("addition") are kept in every step,
    as past labels; crowd-kit drops them after the first.
    """

    def __init__(
        self, n_iter: int = 100, tol: float = 1e-5, initial_error_strategy: str | None = None
    ) -> None:
        self.n_iter = n_iter
        self.tol = tol
        self.initial_error_strategy = initial_error_strategy

    def fit(
        self, data: Table, true_labels: GoldLike = None, initial_error: pd.DataFrame | None = None
    ) -> Self:
        """Learn from labels, known truths (a series by task) and past counts."""
        votes = annotations_of(data)
        model = aggregate.DawidSkene(
            smoothing=EPSILON,
            history=self._history(votes, initial_error),
            max_iter=self.n_iter,
            tol=max(self.tol, 0.0),
        )
        self._fit(model, votes, data, true_labels)
        if votes.n_annotations:
            self.errors_ = errors_of(votes, model.history_.counts, data)
            self.priors_ = priors_of(model.posterior_, votes)
        return self

    def _history(
        self, votes: Annotations, initial_error: pd.DataFrame | None
    ) -> WorkerHistory | None:
        """Convert counts by worker, observed label (rows) and true label (columns) to ours."""
        if initial_error is None or self.initial_error_strategy is None:
            return None
        if self.initial_error_strategy != "addition":
            raise ParameterError(
                explain(
                    f"initial_error_strategy={self.initial_error_strategy!r} is not supported.",
                    expected="'addition', with counts of labels as initial_error",
                    fix="multiply your matrices by the number of labels they are based on",
                )
            )
        table = initial_error.reindex(columns=votes.classes).fillna(0.0)
        wide = table.unstack("label").swaplevel(axis=1)
        columns = pd.MultiIndex.from_product([votes.classes, votes.classes])  # label, truth
        wide = wide.reindex(index=votes.workers, columns=columns).fillna(0.0)
        counts = wide.to_numpy().reshape(votes.n_workers, votes.n_classes, votes.n_classes)
        return WorkerHistory(votes.workers, votes.classes, counts.swapaxes(1, 2))


class OneCoinDawidSkene(DawidSkene):
    """One accuracy for every worker, fitted by EM; stops as :class:`DawidSkene` does."""

    def fit(
        self, data: Table, true_labels: GoldLike = None, initial_error: pd.DataFrame | None = None
    ) -> Self:
        """Learn from labels, and from known truths, which crowd-kit does not accept here."""
        votes = annotations_of(data)
        model = aggregate.OneCoin(
            smoothing=EPSILON,
            class_prior="estimate",
            max_iter=self.n_iter,
            tol=max(self.tol, 0.0),
        )
        self._fit(model, votes, data, true_labels)
        if votes.n_annotations:
            self.skills_ = mean_accuracy(votes, model.posterior_)
            confusion = one_coin_confusion(self.skills_.to_numpy(), votes.n_classes)
            self.errors_ = errors_of(votes, confusion, data, normalized=True)
            self.priors_ = priors_of(model.posterior_, votes)
        return self


class GLAD(Fitted):
    """Skilled workers and easy tasks; takes Newton steps instead of crowd-kit's gradient steps.

    ``silent``, ``m_step_max_iter`` and ``m_step_tol`` are accepted and ignored. Prior means must
    be the same for all workers, and for all tasks.
    """

    def __init__(
        self,
        n_iter: int = 100,
        tol: float = 1e-5,
        silent: bool = True,
        labels_priors: pd.Series | None = None,
        alphas_priors_mean: pd.Series | None = None,
        betas_priors_mean: pd.Series | None = None,
        m_step_max_iter: int = 25,
        m_step_tol: float = 1e-2,
    ) -> None:
        self.n_iter = n_iter
        self.tol = tol
        self.silent = silent
        self.labels_priors = labels_priors
        self.alphas_priors_mean = alphas_priors_mean
        self.betas_priors_mean = betas_priors_mean
        self.m_step_max_iter = m_step_max_iter
        self.m_step_tol = m_step_tol

    def fit(self, data: Table) -> Self:
        """Learn the skills of workers (``alphas_``) and the ease of tasks (``betas_``)."""
        votes = annotations_of(data)
        prior: str | Floats = "uniform"
        if self.labels_priors is not None:
            prior = pd.Series(self.labels_priors).reindex(votes.classes).to_numpy()
        model = aggregate.GLAD(
            skill_prior=(one_mean(self.alphas_priors_mean, "alphas_priors_mean"), 1.0),
            ease_prior=(one_mean(self.betas_priors_mean, "betas_priors_mean"), 1.0),
            class_prior=prior,
            max_iter=self.n_iter,
            tol=max(self.tol, 0.0),
        )
        self._fit(model, votes)
        if votes.n_annotations:
            self.alphas_ = model.skills_.rename("alpha")
            index = pd.Index(votes.tasks, name="task")
            self.betas_ = pd.Series(model.log_ease_, index=index, name="beta")
            self.priors_ = pd.Series(model.prior_, index=votes.classes)
        return self


class MACE(Fitted):
    """Workers who sometimes know the truth and otherwise make it up.

    crowd-kit mixes up the workers' rows, so its results depend on the order of the data; ours
    do not. ``smoothing`` is accepted and ignored: crowd-kit never uses it.
    """

    def __init__(
        self,
        n_restarts: int = 10,
        n_iter: int = 50,
        method: str = "vb",
        smoothing: float = 0.1,
        default_noise: float = 0.5,
        alpha: float = 0.5,
        beta: float = 0.5,
        random_state: RandomState = 0,
        verbose: int = 0,
    ) -> None:
        self.n_restarts = n_restarts
        self.n_iter = n_iter
        self.method = method
        self.smoothing = smoothing
        self.default_noise = default_noise
        self.alpha = alpha
        self.beta = beta
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, data: Table) -> Self:
        """Learn ``spamming_`` (worker x spamming, knowing) and ``thetas_`` (worker x label)."""
        votes = annotations_of(data)
        model = aggregate.MACE(
            inference=self.method,
            knowing_prior=(self.beta, self.alpha),
            n_restarts=self.n_restarts,
            max_iter=self.n_iter,
            random_state=self.random_state,
        )
        self._fit(model, votes, data)
        if votes.n_annotations:
            known = model.skills_.to_numpy()
            self.spamming_ = np.column_stack([1.0 - known, known])
            self.thetas_ = model.spam_
        return self


class KOS(Fitted):
    """Two classes, by messages between tasks and workers."""

    def __init__(self, n_iter: int = 100, random_state: RandomState = 0) -> None:
        self.n_iter = n_iter
        self.random_state = random_state

    def fit(self, data: Table) -> Self:
        """Exchange messages ``n_iter`` times."""
        model = aggregate.KOS(max_iter=self.n_iter, random_state=self.random_state)
        self._fit(model, annotations_of(data))
        return self
