"""LIA: difficulty of tasks and competence of workers as learned functions, by EM."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import torch
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from crowdwise.annotations import Annotations
from crowdwise.base.learner import WorkersLike
from crowdwise.base.params import at_least, one_of
from crowdwise.errors import ParameterError, explain
from crowdwise.io import as_annotations
from crowdwise.learn.crowd_classifier import CrowdClassifier
from crowdwise.learn.noise import WorkerFeatures
from crowdwise.learn.parts import (
    EM,
    CrowdNet,
    CrowdObjective,
    EMLoss,
    Noise,
    NoisePart,
    ObjectivePart,
    WorkerTable,
)
from crowdwise.learn.response import ResponseModel
from crowdwise.learn.search import Settings
from crowdwise.learn.starting_points import LabelsAlone, Start
from crowdwise.nets.batches import CrowdData
from crowdwise.nets.modules import MLP, NetworkLike, build_network
from crowdwise.nets.training import Training
from crowdwise.typing import (
    AnnotationsLike,
    Array,
    FeaturesLike,
    Floats,
    GoldLike,
    Ints,
    RandomState,
)

EMBEDDING = 16
SELU = MLP(hidden=(16, 16, 16, 16), activation="selu")


@dataclass(eq=False, repr=False)
class DifficultyTensors(NoisePart):
    """LIA: the difficulty of the task plus the competence of the worker, in L slots.

    ``P(label l | truth k) ~ sum_m exp(D(x)[k, l, m] + C(w)[k, l, m])``, rows normalized.
    Adds ``difficulty_`` and ``embedding_``; reads ``worker_features``.

    Parameters
    ----------
    difficulty : MLP and others, default=MLP((16, 16, 16, 16), activation="selu")
        Network from features to difficulty tensors.
    n_slots : int, default=1
        Size L of the tensors' last axis.
    """

    difficulty: NetworkLike = SELU
    n_slots: int = 1

    random_per = ("worker",)  # embeddings of workers start at random
    _parameter_constraints = {
        "difficulty": [MLP, nn.Module, callable],
        "n_slots": [at_least(1)],
    }

    def build(self, data: CrowdData) -> TensorsNet:
        n_out = data.n_classes**2 * self.n_slots
        difficulty = network_for(self.difficulty, data, n_out)
        given = data.worker_features
        competence = (
            WorkerEmbedding(data.n_workers, EMBEDDING, n_out, data.active)
            if given is None
            else WorkerFeatures(given, n_out)
        )
        return self._net(difficulty, competence, data.n_classes)

    def _net(self, difficulty: nn.Module, competence: nn.Module, n_classes: int) -> TensorsNet:
        return TensorsNet(difficulty, competence, n_classes, self.n_slots)


class DotTensors(DifficultyTensors):
    """:class:`DifficultyTensors`, with the softmax of the inner product over the slots.

    The text of the paper suggests it; the authors' code adds logarithms.
    """

    def _net(self, difficulty: nn.Module, competence: nn.Module, n_classes: int) -> TensorsNet:
        return DotTensorsNet(difficulty, competence, n_classes, self.n_slots)


class LIA(CrowdClassifier):
    """Learn from imperfect annotations: truth, difficulty and competence as functions.

    Worker ``w`` turns truth ``k`` into label ``l`` with probability proportional to
    ``sum_m exp(D(x)[k, l, m] + C(w)[k, l, m])``: a difficulty tensor of the task's features plus
    a competence tensor of the worker. EM starts from each task's share of labels, with warm
    starts from round to round; then the marginal likelihood is maximized directly.

    Without features (``fit(None, annotations)``), every task gets a learned embedding, which
    both networks read: LIA-E.

    Parameters
    ----------
    truth : MLP and others, default="auto"
        Network from features to classes. With "auto" it is linear, or with ``training`` the
        paper's ``MLP((16, 16, 16, 16), activation="selu")``.
    penalty, prior : float or "auto", default="auto"
        Regularization of the classifier and of the noise model; see
        :class:`crowdwise.learn.CrowdClassifier`. Held-out labels also choose the rounds; with
        "auto", the prior is 1.
    start : {"auto", "shares", "IBCC"}, default="auto"
        EM's initial truths: each task's share of labels, or what IBCC infers from all labels.
        With "auto", held-out labels choose; with ``training``, it is the shares.
    difficulty : MLP and others, default=MLP((16, 16, 16, 16), activation="selu")
        Network from features to difficulty tensors.
    n_slots : int, default=1
        Size L of the tensors' last axis.
    objective : ObjectivePart, default=EM()
        EM rounds and fine-tuning; see :class:`EM`, and :class:`ColumnEM`, :class:`LabelsOnlyEM`
        and :class:`HardEM` for other variants in the paper and its code.
    response : ResponseModel, optional
        A model of who answers what, to be learned from the same features and labels with
        ``posterior_`` as the truth: see :meth:`predict_response`. Nothing else is affected.
    scale : bool, default=True
        Whether to standardize features to mean 0 and deviation 1 on the training rows.
    training : Training, optional
        How to train; ``LIA.default_training`` if not given; EM has its own epochs.
    random_state : int or RandomState, optional
        Random seed of initialization, batches, dropout and held-out labels.

    Attributes
    ----------
    difficulty_ : ndarray of shape (n_tasks,)
        Probability that the average worker errs on each training task.
    embedding_ : ndarray of shape (n_workers, n_classes * n_classes * n_slots)
        Competence tensor of each worker, as a row.
    response_ : ResponseModel or None
        The fitted model of who answers what, if there is one.
    posterior_, confusion_, worker_accuracy_, history_, search_, net_
        See :class:`crowdwise.learn.CrowdClassifier`.

    Notes
    -----
    The maths::

        P(w gives i the label l | truth k)
            proportional to sum over m of exp(D(x_i)[k, l, m] + C(w)[k, l, m])
        EM: targets from all labels of a task; then the marginal likelihood, warm-started

    Works when difficulty shows in the features, and workers are many with few labels, or have
    features of their own.

    Fails when there are so few labels that the difficulty network explains the classes as noise.
    It is slow.

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
    >>> bool(LIA(random_state=0).fit(X, votes).score(X, truth) > 0.8)
    True
    """

    _parameter_constraints = {
        **CrowdClassifier._parameter_constraints,
        **DifficultyTensors._parameter_constraints,
        "response": [ResponseModel, None],
        "start": [one_of("auto", "shares", "IBCC")],
    }
    default_training = Training(optimizer="amsgrad", learning_rate=1e-3)
    penalties = (0.3, 0.1, 0.03, 0.01)
    truth: NetworkLike
    response_: ResponseModel | None

    def __init__(
        self,
        *,
        truth: NetworkLike = "auto",
        penalty: float | str = "auto",
        prior: float | str = "auto",
        start: str = "auto",
        difficulty: NetworkLike = SELU,
        n_slots: int = 1,
        objective: ObjectivePart = EM(),  # noqa: B008  immutable
        response: ResponseModel | None = None,
        scale: bool = True,
        training: Training | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.truth = truth
        self.penalty = penalty
        self.prior = prior
        self.start = start
        self.difficulty = difficulty
        self.n_slots = n_slots
        self.objective = objective
        self.response = response
        self.scale = scale
        self.training = training
        self.random_state = random_state

    def _noise(self) -> NoisePart:
        return DifficultyTensors(self.difficulty, self.n_slots)

    def _front(self, scaler: nn.Module, data: CrowdData) -> nn.Module:
        return scaler if has_features(data) else TaskEmbedding(data.n_tasks, EMBEDDING)

    def _build_truth(self, data: CrowdData) -> nn.Module:
        chosen = getattr(self, "search_", None) is not None
        usual: NetworkLike = "linear" if chosen else SELU
        return network_for(usual if self.truth == "auto" else self.truth, data, data.n_classes)

    @property
    def _smooth(self) -> bool:
        return self.truth == "auto" or super()._smooth

    def _starts(
        self, data: CrowdData, votes: Annotations, gold: Ints | None
    ) -> list[tuple[Settings, Start]]:
        network = copy.copy(self)
        network.truth = "linear" if self.truth == "auto" else self.truth
        [(settings, plain)] = super(LIA, network)._starts(data, votes, gold)
        everything = torch.ones(data.n_tasks)
        if self.start == "shares" or not isinstance(plain(everything), EMLoss):
            return [(settings, plain)]
        labels = LabelsAlone(votes, gold)

        def inferred(keep: Tensor) -> CrowdObjective:
            one = plain(keep)
            assert isinstance(one, EMLoss)
            one.target.copy_(labels.posterior(keep))
            return one

        both: list[tuple[Settings, Start]] = [
            ({**settings, "start": "shares"}, plain),
            ({**settings, "start": "IBCC"}, inferred),
        ]
        return both if self.start == "auto" else both[1:]

    def fit(
        self,
        X: FeaturesLike,
        annotations: AnnotationsLike,
        worker_features: FeaturesLike = None,
        gold: GoldLike = None,
    ) -> Self:
        """Learn from features and annotations; see :meth:`CrowdClassifier.fit`.

        Without features (None), tasks get learned embeddings.
        """
        if self.response is not None and X is None:
            raise ParameterError(
                explain(
                    "Predicting who answers what needs features, but there are none.",
                    fix="give X, or leave response out",
                )
            )
        votes = as_annotations(annotations)
        fresh = copy.copy(
            self
        )  # replaces this one once all is learned, so a failure changes nothing
        super(LIA, fresh).fit(X, votes, worker_features, gold)
        fresh.response_ = None
        if self.response is not None:
            beside = clone(self.response)
            if beside.random_state is None:
                beside.set_params(random_state=self.random_state)
            fresh.response_ = beside.fit(X, votes, truth=fresh.posterior_)
        self.__dict__ = fresh.__dict__
        return self

    def predict_response(self, X: FeaturesLike, workers: WorkersLike | None = None) -> Floats:
        """Return P(worker answers) by ``response_``, shape (n_rows, n_workers).

        Multiplied by :meth:`predict_worker_accuracy`, it is the probability that asking gives a
        right label, which tells whom to send a task to. An unknown worker is the average one.
        """
        check_is_fitted(self)
        beside: ResponseModel | None = getattr(self, "response_", None)
        if beside is None:
            raise ParameterError(
                explain(
                    f"This {type(self).__name__} did not learn who answers what.",
                    fix="LIA(response=ResponseModel()).fit(X, annotations)",
                )
            )
        asked = self.workers_ if workers is None else workers
        return beside.predict_proba(X, asked, truth=self.predict_proba(X))


class TensorsNet(Noise):
    """Difficulty and competence as tensors (truth, label, slot), added and summed over slots."""

    def __init__(
        self, difficulty: nn.Module, competence: nn.Module, n_classes: int, n_slots: int
    ) -> None:
        super().__init__()
        self.difficulty, self.competence = difficulty, competence
        self.shape = (n_classes, n_classes, n_slots)

    def forward(self, x: Tensor, at: Tensor, worker: Tensor) -> Tensor:
        return self.combined(self.difficulty(x)[at], self.competence(worker))

    def combined(self, difficulty: Tensor, competence: Tensor) -> Tensor:
        """Return log P(label | truth) from both tensors, flat, for each row."""
        difficulty = difficulty.reshape(-1, *self.shape)  # (row, truth, label, slot)
        return self.log_classes(self.merge(difficulty, competence.reshape(-1, *self.shape)))

    def merge(self, difficulty: Tensor, competence: Tensor) -> Tensor:
        """Return one number for each truth and label."""
        return torch.logsumexp(difficulty + competence, dim=-1)

    def describe(self, net: CrowdNet, data: CrowdData, posterior: Floats) -> Mapping[str, Array]:
        unknown, right = torch.tensor([data.n_workers]), []
        for batch in data.chunks():
            table = net.tables(batch.x, unknown)[:, 0].double()
            share = torch.as_tensor(posterior[batch.task.numpy()])
            right.append(torch.einsum("tkk,tk->t", table, share))
        return {
            "difficulty_": 1.0 - torch.cat(right).numpy(),
            "embedding_": self.competence(torch.arange(data.n_workers)).double().numpy(),
        }


class DotTensorsNet(TensorsNet):
    """The same with the inner product over the slots."""

    def merge(self, difficulty: Tensor, competence: Tensor) -> Tensor:
        return (difficulty * competence).sum(dim=-1)


class WorkerEmbedding(nn.Module):
    """A learned vector per worker, then a linear map: competence without features."""

    def __init__(self, n_workers: int, size: int, n_out: int, active: Tensor | None = None) -> None:
        super().__init__()
        self.table = WorkerTable(n_workers, torch.zeros(size))
        self.table.draw(nn.init.xavier_uniform_, active)
        self.head = nn.Linear(size, n_out)

    def forward(self, worker: Tensor) -> Tensor:
        return self.head(self.table(worker))


class TaskEmbedding(nn.Module):
    """A learned vector for every training task, used if there are no features."""

    def __init__(self, n_tasks: int, size: int) -> None:
        super().__init__()
        self.table = nn.Embedding(n_tasks, size)
        nn.init.xavier_uniform_(self.table.weight)

    def forward(self, task: Tensor) -> Tensor:
        return self.table(task)


def has_features(data: CrowdData) -> bool:
    """Return whether tasks have features rather than only numbers."""
    return data.features.shape != ()


def network_for(kind: NetworkLike, data: CrowdData, n_out: int) -> nn.Module:
    """Build a network on features, or without any on the learned vectors of tasks."""
    return build_network(kind, data.n_in if has_features(data) else EMBEDDING, n_out)
