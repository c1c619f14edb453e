"""What every learner shares: the verbs, the device, the seed and the bookkeeping."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
import torch
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from crowdwise._params import checks_params
from crowdwise.data import Annotations, as_annotations, as_gold
from crowdwise.data.names import as_names
from crowdwise.errors import AnnotationError, ParameterError
from crowdwise.learn._data import Batch, CrowdData, as_data, worker_table
from crowdwise.learn._features import Features, as_features, refuse_other_shape
from crowdwise.learn._learner import CrowdLearner
from crowdwise.learn._saved import SavedNet
from crowdwise.learn._settings import Training, pick_device
from crowdwise.learn._train import History, Phase, seeded, split, train
from crowdwise.learn.noise import Noise, WorkerFeatures, WorkerTable
from crowdwise.learn.objectives import CrowdNet, Objective, PerAnnotation
from crowdwise.learn.truth import MLP, Standardize, build_truth
from crowdwise.typing import Floats, Ints

ROWS_AT_ONCE = 8192


class CrowdClassifier(SavedNet, CrowdLearner):
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
        if not votes.n_annotations:
            raise AnnotationError("There are no annotations to learn from.")
        known = None if gold is None else as_gold(gold, votes)
        features = as_features(X, votes.tasks)
        settings = self.training if self.training is not None else self.default_training
        rng, device = check_random_state(self.random_state), pick_device(settings.device)
        self.classes_, self.workers_, self.tasks_ = votes.classes, votes.workers, votes.tasks
        self.worker_features_ = worker_table(worker_features, votes.workers)
        self.feature_shape_ = features.shape
        data = as_data(features, votes, known, device)
        with seeded(int(rng.randint(2**31 - 1)), device, work_of(data, settings)):
            best, self.history_ = self._learn(data, votes, known, settings, rng)
        self._settle(best, settings)
        self._describe(data)
        return self

    def predict_proba(self, X: Any) -> Floats:
        """P(truth | features) of every row, shape (n_rows, n_classes)."""
        # In double precision, so that rows sum to one as closely as scikit-learn's metrics ask.
        return self._over_rows(X, lambda x: self.net_.log_truth(x).double().softmax(dim=-1))

    def predict_worker_proba(
        self, X: Any, workers: Any = None, worker_features: Any = None
    ) -> Floats:
        """What each worker would say, shape (n_rows, n_workers, n_classes).

        A worker never seen is the unknown one; or, where the model was learned with worker
        features, what the features given here make of a new worker (see :meth:`for_workers`).
        """
        if worker_features is not None:
            return self.for_workers(workers, worker_features).predict_worker_proba(X)
        return self._over_rows(X, lambda x: self._worker_labels(x, self._codes(workers)))

    def predict_worker_accuracy(
        self, X: Any, workers: Any = None, worker_features: Any = None
    ) -> Floats:
        """How likely each worker is right, shape (n_rows, n_workers)."""
        if worker_features is not None:
            return self.for_workers(workers, worker_features).predict_worker_accuracy(X)
        return self._over_rows(X, lambda x: self._worker_rights(x, self._codes(workers)))

    def for_workers(self, workers: Any, worker_features: Any) -> Self:
        """The same model for other workers, of whom it knows only features.

        Parameters
        ----------
        workers : array or None
            Their names; None for the index of ``worker_features``.
        worker_features : array or frame
            One row per worker, with the columns that the model was learned with.
        """
        check_is_fitted(self)
        names = pd.DataFrame(worker_features).index if workers is None else workers
        other = copy.copy(self)
        other.workers_ = np.atleast_1d(as_names(names))
        table = other.worker_features_ = worker_table(worker_features, other.workers_)
        other.net_ = copy.deepcopy(self.net_)
        for learned in ("confusion_", "worker_accuracy_", "embedding_"):  # of workers in training
            other.__dict__.pop(learned, None)
        readers = [part for part in other.net_.modules() if isinstance(part, WorkerFeatures)]
        if not readers or table is None:
            raise ParameterError(
                f"This {type(self).__name__} knows nothing of worker features.\n"
                "  fix:      use a method that reads them (LIA, MaDL, AnnotMix), and give\n"
                "            fit(X, annotations, worker_features=…)"
            )
        for part in readers:
            part.meet(table)
        return other

    # -- what a method fills in ----------------------------------------------------------

    @abstractmethod
    def _noise(self, data: CrowdData, n_in: int | None) -> Noise:
        """The noise model, freshly initialised."""

    def _describe_noise(self, batch: Batch) -> None:
        """Set what a method's own noise model can tell, such as ``difficulty_``."""

    def _objective(self, net: CrowdNet, data: CrowdData) -> Objective:
        return PerAnnotation(net, data)

    def _phases(self, settings: Training) -> Sequence[Phase]:
        return [Phase(settings.epochs)]

    def _truth(self, data: CrowdData, n_in: int | None) -> nn.Module:
        return build_truth(self.truth, n_in, data.n_classes)

    def _learn(
        self, data: CrowdData, votes: Annotations, gold: Ints | None, settings: Training, rng: Any
    ) -> tuple[Objective, History]:
        """Train; return the restart that is kept, and what happened."""
        data, held = split(data, settings, rng)
        members = [self._member(data).to(data.device) for _ in range(settings.n_restarts)]
        return train(members, data, held, self._phases(settings), settings, rng)

    # -- the rest --------------------------------------------------------------------------

    def _member(self, data: CrowdData) -> Objective:
        shape = data.features.shape
        n_in = shape[0] if len(shape) == 1 else None
        scaler: nn.Module = nn.Identity()
        if self.scale and n_in is not None:
            tasks = torch.arange(data.n_tasks, device=data.device)
            scaler = Standardize.of(data.features.rows(tasks))
        net = CrowdNet(scaler, self._truth(data, n_in), self._noise(data, n_in))
        return self._objective(net, data)

    def _settle(self, best: Objective, settings: Training) -> None:
        self.net_ = best.net.cpu()
        self._objective_ = best.cpu()
        if not settings.worker_dropout:
            for part in self.net_.modules():
                if isinstance(part, WorkerTable):
                    part.average_unknown()

    @torch.no_grad()
    def _describe(self, data: CrowdData) -> None:
        """Posterior, confusion and accuracy on the training tasks."""
        tasks = torch.arange(data.n_tasks)
        here = data.of_tasks(tasks.to(data.device))
        moved = Batch(*(getattr(here, name).cpu() for name in Batch.__dataclass_fields__))
        self.posterior_: Floats = self._objective_.posterior(moved).exp().double().numpy()
        self.posterior_ /= self.posterior_.sum(axis=1, keepdims=True)
        self.confusion_ = self._average_confusion(moved)
        right = np.einsum("wkk,k->w", self.confusion_, self.posterior_.mean(axis=0))
        index = pd.Index(self.workers_, name="worker")
        self.worker_accuracy_ = pd.Series(right, index=index, name="accuracy")
        self._describe_noise(moved)

    def _average_confusion(self, batch: Batch) -> Floats:
        """P(label | truth) of each worker, averaged over the training tasks by posterior."""
        n_workers, n_classes = len(self.workers_), len(self.classes_)
        total = torch.zeros(n_workers, n_classes, n_classes, dtype=torch.float64)
        weight = torch.as_tensor(self.posterior_)  # (task, truth)
        for worker in torch.split(
            torch.arange(n_workers), max(1, ROWS_AT_ONCE // max(len(weight), 1))
        ):
            table = self._tables(batch.x, worker).double()  # (task, worker, truth, label)
            total[worker] = torch.einsum("twkl,tk->wkl", table, weight)
        floor = weight.sum(dim=0)[None, :, None].clamp_min(1e-12)
        return (total / floor).numpy()

    def _tables(self, x: Tensor, workers: Tensor) -> Tensor:
        """P(label | truth) of workers on tasks, (task, worker, truth, label)."""
        at, everyone = grid(len(x), workers)
        table = self.net_.log_noise(x, at, everyone).exp()
        return table.reshape(len(x), len(workers), *table.shape[1:])

    def _worker_labels(self, x: Tensor, workers: Tensor) -> Tensor:
        at, everyone = grid(len(x), workers)
        labels = self.net_.log_labels(x, at, everyone).exp()
        return labels.reshape(len(x), len(workers), labels.shape[-1])

    def _worker_rights(self, x: Tensor, workers: Tensor) -> Tensor:
        truth = self.net_.log_truth(x).exp()
        return torch.einsum("tk,twkk->tw", truth, self._tables(x, workers))

    def _codes(self, workers: Any) -> Tensor:
        return torch.as_tensor(self._worker_codes(workers))

    @torch.no_grad()
    def _label_proba(self, X: Any, row: Ints, worker: Ints) -> Floats:
        check_is_fitted(self)
        features, parts = as_features(X), [np.empty((0, len(self.classes_)))]
        for start in range(0, len(row), ROWS_AT_ONCE):
            some = slice(start, start + ROWS_AT_ONCE)
            rows, at = np.unique(row[some], return_inverse=True)
            who = torch.as_tensor(worker[some]).long()
            log_labels = self.net_.log_labels(
                features.rows(torch.as_tensor(rows).long()), torch.as_tensor(at), who
            )
            parts.append(log_labels.double().exp().numpy())
        return np.concatenate(parts)

    @torch.no_grad()
    def _over_rows(self, X: Any, work: Any) -> Floats:
        check_is_fitted(self)
        features: Features = as_features(X)
        refuse_other_shape(features, self.feature_shape_)
        rows = torch.split(torch.arange(features.n_tasks), ROWS_AT_ONCE)
        parts = [work(features.rows(some)).double().numpy() for some in rows]
        return np.concatenate(parts) if parts else np.empty((0, len(self.classes_)))


def grid(n_rows: int, workers: Tensor) -> tuple[Tensor, Tensor]:
    """Every row with every worker: which row, and which worker."""
    return torch.arange(n_rows).repeat_interleave(len(workers)), workers.repeat(n_rows)


def work_of(data: CrowdData, settings: Training) -> int:
    """About how many numbers a training step touches."""
    rows = min(settings.batch_size or data.n_annotations, data.n_annotations)
    width = int(np.prod(data.features.shape)) + data.n_classes**2
    return rows * width * settings.n_restarts


__all__ = ["CrowdClassifier", "History", "Training"]
