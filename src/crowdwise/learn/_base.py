"""What every learner shares: the verbs, the device, the seed and the bookkeeping."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
import torch
from sklearn.utils import check_random_state
from torch import Tensor, nn

from crowdwise.annotations import Annotations, refuse_empty
from crowdwise.base.fitting import all_or_nothing, column_names
from crowdwise.base.params import checks_params
from crowdwise.errors import ParameterError, explain
from crowdwise.io import as_annotations, as_gold
from crowdwise.learn._predict import NetPredictions
from crowdwise.learn.noise import Noise, WorkerTable
from crowdwise.learn.objectives import CrowdNet, CrowdObjective, PerAnnotation
from crowdwise.nets.batches import Batch, CrowdData, as_data, worker_table
from crowdwise.nets.features import as_features, refuse_misfit, remember_features, rows_at_once
from crowdwise.nets.loop import History, Phase, pick_device, seeded, split, train
from crowdwise.nets.modules import MLP, Standardize, build_truth
from crowdwise.nets.saved import SavedNet
from crowdwise.nets.training import Training
from crowdwise.typing import Floats, Ints


class CrowdClassifier(SavedNet, NetPredictions):
    """Learn a classifier from features and disagreeing labels.

    A method says what its noise model and its objective are; training, prediction and
    everything about workers live here.

    Attributes
    ----------
    classes_, workers_, tasks_ : ndarray
        Names, in the order of every learned array.
    posterior_ : ndarray of shape (n_tasks, n_classes)
        P(truth | features, labels) of the training tasks.
    confusion_ : ndarray of shape (n_workers, n_classes, n_classes)
        P(label | truth); the axes are worker, truth, label. The average over the training
        tasks where it depends on the task.
    worker_accuracy_ : Series
        How often each worker is right on the training tasks, by this model.
    history_ : History
        Loss and held-out loss per epoch and restart.
    feature_shape_ : tuple of int
        Shape of one task's features.
    n_features_in_, feature_names_in_ : int and ndarray
        Number of features where they are rows of numbers, and their names in a frame.
    net_ : torch.nn.Module
        The fitted truth and noise models.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "truth": [str, MLP, nn.Module, callable],
        "scale": ["boolean"],
        "training": [Training, None],
        "random_state": ["random_state"],
    }
    default_training: ClassVar[Training] = Training()
    recipes: ClassVar[dict[str, dict[str, Any]]] = {}

    truth: Any
    scale: bool
    training: Training | None
    random_state: Any

    @classmethod
    def recipe(cls, name: str, **changes: Any) -> Self:
        """The method with a paper's settings; ``recipes`` lists the names."""
        if name not in cls.recipes:
            known = ", ".join(cls.recipes) or "none; it is used as it is"
            what = f"{cls.__name__} has no recipe {name!r}."
            raise ParameterError(explain(what, expected=known))
        return cls(**{**copy.deepcopy(cls.recipes[name]), **changes})

    @checks_params
    def fit(self, X: Any, annotations: Any, worker_features: Any = None, gold: Any = None) -> Self:
        """Learn from features and annotations.

        Parameters
        ----------
        X : array, sparse matrix, frame, tensor or torch Dataset
            One row per task, in the order of ``annotations.tasks`` (or a frame indexed by task).
        annotations : Annotations, frame, array, dict or path
            Labels by workers; tasks without any are allowed.
        worker_features : array or frame, optional
            One row per worker, for methods that use them.
        gold : mapping, Series, frame or array, optional
            Known truths of some tasks: the classifier learns from them, and so does the rest.
        """
        votes = as_annotations(annotations)
        refuse_empty(votes)
        known = None if gold is None else as_gold(gold, votes)
        features = as_features(X, votes.tasks)
        settings = self.training if self.training is not None else self.default_training
        rng, device = check_random_state(self.random_state), pick_device(settings.device)
        table = worker_table(worker_features, votes.workers)
        data = as_data(features, votes, known, device)
        with all_or_nothing(self):
            self.classes_, self.workers_, self.tasks_ = votes.classes, votes.workers, votes.tasks
            remember_features(self, features)
            self.worker_features_ = table
            self.worker_feature_names_in_ = column_names(worker_features)
            with seeded(int(rng.randint(2**31 - 1)), device, work_of(data, settings)):
                best, self.history_ = self._learn(data, votes, known, settings, rng)
            self._settle(best, settings)
            self._describe(data)
        return self

    # -- what a method fills in ----------------------------------------------------------

    @abstractmethod
    def _noise(self, data: CrowdData, n_in: int | None) -> Noise:
        """The noise model, freshly initialised."""

    def _describe_noise(self, data: CrowdData) -> None:
        """Set what a method's own noise model can tell, such as ``difficulty_``."""

    def _objective(self, net: CrowdNet, data: CrowdData) -> CrowdObjective:
        return PerAnnotation(net, data)

    def _phases(self, settings: Training) -> Sequence[Phase[Any, Batch]]:
        return [Phase(settings.epochs)]

    def _truth(self, data: CrowdData, n_in: int | None) -> nn.Module:
        return build_truth(self.truth, n_in, data.n_classes)

    def _learn(
        self, data: CrowdData, votes: Annotations, gold: Ints | None, settings: Training, rng: Any
    ) -> tuple[CrowdObjective, History]:
        """Train; return the restart that is kept, and what happened."""
        data, held = split(data, settings, rng)
        members = [self._member(data).to(data.device) for _ in range(settings.n_restarts)]
        return train(members, data, held, self._phases(settings), settings, rng)

    # -- the rest --------------------------------------------------------------------------

    def _member(self, data: CrowdData) -> CrowdObjective:
        shape = data.features.shape
        n_in = shape[0] if len(shape) == 1 else None
        scaler: nn.Module = nn.Identity()
        if self.scale and n_in is not None:
            scaler = Standardize.by(*data.features.spread(data.device))
        truth = self._truth(data, n_in)
        if not isinstance(self.truth, str | MLP | None):
            refuse_misfit(truth, data.features.some(), data.n_classes)
        net = CrowdNet(scaler, truth, self._noise(data, n_in))
        return self._objective(net, data)

    def _settle(self, best: CrowdObjective, settings: Training) -> None:
        self.net_ = best.net.cpu()
        self._objective_ = best.cpu()
        if not settings.worker_dropout:
            for part in self.net_.modules():
                if isinstance(part, WorkerTable):
                    part.average_unknown()

    @torch.no_grad()
    def _describe(self, data: CrowdData) -> None:
        """Posterior, confusion and accuracy on the training tasks."""
        n_workers, n_classes = len(self.workers_), len(self.classes_)
        total, shares = torch.zeros(n_workers, n_classes, n_classes, dtype=torch.float64), []
        often = torch.zeros(n_classes, dtype=torch.float64)
        for batch in self._chunks(data):
            share = self._objective_.posterior(batch).exp().double().numpy()  # (task, truth)
            shares.append(share / share.sum(axis=1, keepdims=True))
            weight = torch.as_tensor(shares[-1]).clamp_min(1e-12)  # also where no task has a truth
            self._add_confusion(total, batch.x, weight)
            often += weight.sum(dim=0)
        self.posterior_: Floats = np.concatenate(shares)
        # An average over the tasks, by posterior.
        self.confusion_: Floats = (total / often[:, None]).numpy()
        right = np.einsum("wkk,k->w", self.confusion_, self.posterior_.mean(axis=0))
        index = pd.Index(self.workers_, name="worker")
        self.worker_accuracy_ = pd.Series(right, index=index, name="accuracy")
        self._describe_noise(data)

    def _chunks(self, data: CrowdData) -> Iterator[Batch]:
        """All tasks, as many at a time as memory takes."""
        return data.chunks()

    def _add_confusion(self, total: Tensor, x: Tensor, share: Tensor) -> None:
        """Add P(label | truth) of each worker on some tasks, as often as they have the truth."""
        size = rows_at_once(len(x) * self._pair_cells())
        for worker in torch.split(torch.arange(len(total)), size):
            table = self._tables(x, worker).double()  # (task, worker, truth, label)
            total[worker] += torch.einsum("twkl,tk->wkl", table, share)


def work_of(data: CrowdData, settings: Training) -> int:
    """About how many numbers a training step touches."""
    rows = min(settings.batch_size or data.n_annotations, data.n_annotations)
    width = int(np.prod(data.features.shape)) + data.n_classes**2
    return rows * width * settings.n_restarts


__all__ = ["CrowdClassifier", "History", "Training"]
