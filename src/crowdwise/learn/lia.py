"""LIA: difficulty of tasks and competence of workers as learned functions, by EM."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import torch
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from crowdwise.base.fitting import all_or_nothing
from crowdwise.base.learner import LearnerTraits
from crowdwise.base.params import at_least, one_of
from crowdwise.errors import ParameterError, explain
from crowdwise.io import as_annotations
from crowdwise.learn._base import CrowdClassifier
from crowdwise.learn.noise import Noise, Tensors, WorkerEmbedding, WorkerFeatures
from crowdwise.learn.objectives import (
    CrowdNet,
    CrowdObjective,
    Expected,
    best_class,
    joint,
    per_annotation,
    per_task,
)
from crowdwise.learn.response import ResponseModel
from crowdwise.nets.batches import Batch, CrowdData, label_shares
from crowdwise.nets.loop import Phase
from crowdwise.nets.modules import MLP, build_truth
from crowdwise.nets.training import Training
from crowdwise.typing import Floats

EMBEDDING = 16


class LIA(CrowdClassifier):
    """Learn from imperfect annotations: truth, difficulty and competence as functions.

    Worker ``w`` turns truth ``k`` into label ``l`` with probability proportional to
    ``sum_m exp(D(x)[k, l, m] + C(w)[k, l, m])``: a difficulty tensor of the task's features plus
    a competence tensor of the worker. EM starts from each task's share of labels, with warm
    starts from round to round; then the marginal likelihood is raised directly.

    Without features (``fit(None, annotations)``) tasks get learned embeddings: LIA-E.

    Parameters
    ----------
    truth, difficulty : MLP and others, default=MLP((16, 16, 16, 16), activation="selu")
        Networks from features to classes and to difficulty tensors.
    n_slots : int, default=1
        Size L of the tensors' last axis.
    combine : {"logsumexp", "dot"}, default="logsumexp"
        How slots combine. The authors' code adds logarithms; "dot" is the softmax of the inner
        product that the text suggests.
    em_rounds, em_epochs : int, default=5 and 40
        EM rounds, and epochs of the M-step in each.
    marginal : {"annotation", "task"} or None, default="annotation"
        Fine-tuning after EM, on every annotation alone (the paper's eq. 9) or on all labels
        of a task with one shared truth (the likelihood of the model); None for none.
    marginal_epochs : int, default=100
        Epochs of fine-tuning.
    column_norm : bool, default=False
        Whether the E-step divides by the sum over truths at the given label (the paper's eq. 4).
        It does not follow from the model, and the authors' final code leaves it out.
    e_step_prior : bool, default=True
        Whether the classifier takes part in the E-step (the paper) or not (the authors' code).
    hard : bool, default=False
        Whether E-steps give all mass to the best class.
    response : ResponseModel, optional
        A model of who answers what, to be learned beside from the same features and labels,
        with ``posterior_`` as the truth: see :meth:`predict_response`. The rest stays the same.
    scale : bool, default=True
        Whether to standardise features with the mean and deviation of the training rows.
    training : Training, optional
        How to train; ``LIA.default_training`` if not given (its ``epochs`` is not used).
    random_state : int or RandomState, optional
        Decides starts, batches, dropout and held-out labels.

    Attributes
    ----------
    difficulty_ : ndarray of shape (n_tasks,)
        Chance that the average worker errs on each training task.
    embedding_ : ndarray of shape (n_workers, n_classes * n_classes * n_slots)
        Competence tensor of each worker, as a row.
    response_ : ResponseModel or None
        The fitted model of who answers what, if there is one.
    posterior_, confusion_, worker_accuracy_, history_, net_
        See :class:`crowdwise.learn.CrowdClassifier`.

    Notes
    -----
    The maths::

        P(w gives i the label l | truth k)
            proportional to sum over m of exp(D(x_i)[k, l, m] + C(w)[k, l, m])
        EM: targets from all labels of a task; then the marginal likelihood, warm-started

    Works when difficulty shows in the features and workers are many with few labels, or have
    features of their own.

    Fails when labels are so few that the difficulty network explains the classes as noise; it
    is slow.

    References
    ----------
    Platanios, Al-Shedivat, Xing and Mitchell (2020). Learning from imperfect annotations.
    arXiv:2004.03473. doi:10.48550/arXiv.2004.03473

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from crowdwise.simulate import label_by_crowd, one_coin_confusion
    >>> X, truth = load_iris(return_X_y=True)
    >>> confusion = one_coin_confusion([0.9, 0.7, 0.6, 0.5], n_classes=3)
    >>> votes = label_by_crowd(truth, confusion, per_task=3, random_state=0)
    >>> bool(LIA(random_state=0).fit(X, votes).score(X, truth) > 0.9)
    True
    """

    traits = LearnerTraits(luck=("worker",))  # embeddings of workers start at random
    _parameter_constraints = {
        **CrowdClassifier._parameter_constraints,
        "difficulty": [MLP, nn.Module, callable],
        "n_slots": [at_least(1)],
        "combine": [one_of("logsumexp", "dot")],
        "em_rounds": [at_least(0)],
        "em_epochs": [at_least(1)],
        "marginal": [one_of("annotation", "task"), None],
        "marginal_epochs": [at_least(0)],
        "column_norm": ["boolean"],
        "e_step_prior": ["boolean"],
        "hard": ["boolean"],
        "response": [ResponseModel, None],
    }
    default_training = Training(optimizer="amsgrad", learning_rate=1e-3)

    def __init__(
        self,
        *,
        truth: Any = MLP(hidden=(16, 16, 16, 16), activation="selu"),  # noqa: B008  never changed
        difficulty: Any = MLP(hidden=(16, 16, 16, 16), activation="selu"),  # noqa: B008  never changed
        n_slots: int = 1,
        combine: str = "logsumexp",
        em_rounds: int = 5,
        em_epochs: int = 40,
        marginal: str | None = "annotation",
        marginal_epochs: int = 100,
        column_norm: bool = False,
        e_step_prior: bool = True,
        hard: bool = False,
        response: ResponseModel | None = None,
        scale: bool = True,
        training: Training | None = None,
        random_state: Any = None,
    ) -> None:
        self.truth = truth
        self.difficulty = difficulty
        self.n_slots = n_slots
        self.combine = combine
        self.em_rounds = em_rounds
        self.em_epochs = em_epochs
        self.marginal = marginal
        self.marginal_epochs = marginal_epochs
        self.column_norm = column_norm
        self.e_step_prior = e_step_prior
        self.hard = hard
        self.response = response
        self.scale = scale
        self.training = training
        self.random_state = random_state

    def fit(self, X: Any, annotations: Any, worker_features: Any = None, gold: Any = None) -> Self:
        """Learn from features and annotations; see :meth:`CrowdClassifier.fit`.

        Without features (None) tasks get learned embeddings.
        """
        if self.response is not None and X is None:
            raise ParameterError(
                explain(
                    "Who answers what is told from features, and there are none.",
                    fix="give X, or leave response out",
                )
            )
        votes = as_annotations(annotations)
        with all_or_nothing(self):
            super().fit(X, votes, worker_features, gold)
            self.response_: ResponseModel | None = None
            if self.response is not None:
                beside = clone(self.response)
                if beside.random_state is None:
                    beside.set_params(random_state=self.random_state)
                self.response_ = beside.fit(X, votes, truth=self.posterior_)
        return self

    def predict_response(self, X: Any, workers: Any = None) -> Floats:
        """P(worker answers) by ``response_``, shape (n_rows, n_workers).

        Times :meth:`predict_worker_accuracy` it is how likely asking brings a right label: whom
        to send a task to. A worker never seen is the average one.
        """
        check_is_fitted(self)
        beside: ResponseModel | None = getattr(self, "response_", None)
        if beside is None:
            raise ParameterError(
                explain(
                    f"This {type(self).__name__} learned nothing of who answers what.",
                    fix="LIA(response=ResponseModel()).fit(X, annotations)",
                )
            )
        asked = self.workers_ if workers is None else workers
        return beside.predict_proba(X, asked, truth=self.predict_proba(X))

    def _truth(self, data: CrowdData, n_in: int | None) -> nn.Module:
        return self._network(self.truth, data, n_in, data.n_classes)

    def _noise(self, data: CrowdData, n_in: int | None) -> Noise:
        n_out = data.n_classes**2 * self.n_slots
        difficulty = self._network(self.difficulty, data, n_in, n_out)
        given = self.worker_features_
        competence = (
            WorkerEmbedding(data.n_workers, EMBEDDING, n_out)
            if given is None
            else WorkerFeatures(given, n_out)
        )
        return Tensors(difficulty, competence, data.n_classes, self.n_slots, self.combine)

    def _network(self, kind: Any, data: CrowdData, n_in: int | None, n_out: int) -> nn.Module:
        if data.features.shape == ():  # no features: tasks are only numbers
            return TaskEmbedding(data.n_tasks, EMBEDDING, build_truth(kind, EMBEDDING, n_out))
        return build_truth(kind, n_in, n_out)

    def _objective(self, net: CrowdNet, data: CrowdData) -> CrowdObjective:
        return LIAObjective(
            net,
            data,
            column_norm=self.column_norm,
            e_step_prior=self.e_step_prior,
            hard=self.hard,
            shared=self.marginal == "task",
        )

    def _phases(self, settings: Training) -> Sequence[Phase[LIAObjective, Batch]]:
        first: Phase[LIAObjective, Batch] = Phase(
            self.em_epochs
        )  # its posterior is the share of labels
        later = Phase(self.em_epochs, expect=LIAObjective.e_step)
        rounds = [first, *[later] * (self.em_rounds - 1)] if self.em_rounds else []
        tuned = [Phase(self.marginal_epochs, loss=LIAObjective.marginal)] if self.marginal else []
        return [*rounds, *tuned]

    @torch.no_grad()
    def _describe_noise(self, data: CrowdData) -> None:
        unknown, right = torch.tensor([len(self.workers_)]), []
        for batch in data.chunks():
            table = self._tables(batch.x, unknown)[:, 0].double()
            share = torch.as_tensor(self.posterior_[batch.task.numpy()])
            right.append(torch.einsum("tkk,tk->t", table, share))
        self.difficulty_ = 1.0 - torch.cat(right).numpy()
        competence: Any = self.net_.noise.competence
        self.embedding_ = competence(torch.arange(len(self.workers_))).double().numpy()


class TaskEmbedding(nn.Module):
    """A learned vector for every training task, where there are no features."""

    def __init__(self, n_tasks: int, size: int, head: nn.Module) -> None:
        super().__init__()
        self.table = nn.Embedding(n_tasks, size)
        nn.init.xavier_uniform_(self.table.weight)
        self.head = head

    def forward(self, task: Tensor) -> Tensor:
        return self.head(self.table(task))


class LIAObjective(Expected):
    """EM with the paper's switches, and the marginal likelihood to finish with."""

    def __init__(
        self,
        net: CrowdNet,
        data: CrowdData,
        *,
        column_norm: bool,
        e_step_prior: bool,
        shared: bool,
        hard: bool = False,
    ) -> None:
        super().__init__(net, data, label_shares(data))
        self.hard = hard
        self.column_norm, self.e_step_prior, self.shared = column_norm, e_step_prior, shared

    def e_step(self, batch: Batch) -> Tensor:
        """Eq. 4: P(truth | features, labels), with what the switches ask for."""
        log_truth, score = self.scores(batch)
        if not self.e_step_prior:
            log_truth = torch.zeros_like(log_truth) + self.gold[batch.task]
        if self.column_norm:
            score = score - torch.logsumexp(score, dim=-1, keepdim=True)
        posterior = torch.log_softmax(joint(log_truth, score, batch), dim=-1).exp()
        return best_class(posterior) if self.hard else posterior

    def marginal(self, batch: Batch) -> Tensor:
        """Eq. 9, or the same with one truth shared by all labels of a task."""
        rule = per_task if self.shared else per_annotation
        return -rule(*self.scores(batch), batch)
