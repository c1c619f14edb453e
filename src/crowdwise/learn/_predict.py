"""What a fitted network says of tasks and of workers, some rows at a time."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
import pandas as pd
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from crowdwise import progress
from crowdwise.base.fitting import column_names, refuse_other_columns
from crowdwise.base.learner import CrowdLearner, worker_names
from crowdwise.errors import ParameterError
from crowdwise.learn.noise import WorkerFeatures
from crowdwise.nets.batches import worker_table
from crowdwise.nets.features import Features, as_features, refuse_other_features, rows_at_once
from crowdwise.typing import Floats, Ints

HIDDEN = 128  # numbers that a noise model has in passing for a task and a worker, about


class NetPredictions(CrowdLearner):
    """A learner that asks its network, ``net_``."""

    net_: Any
    feature_shape_: tuple[int, ...]

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
        codes = self._codes(workers)
        return self._over_rows(X, lambda x: self._worker_labels(x, codes), len(codes))

    def predict_worker_accuracy(
        self, X: Any, workers: Any = None, worker_features: Any = None
    ) -> Floats:
        """How likely each worker is right, shape (n_rows, n_workers)."""
        if worker_features is not None:
            return self.for_workers(workers, worker_features).predict_worker_accuracy(X)
        codes = self._codes(workers)
        return self._over_rows(X, lambda x: self._worker_rights(x, codes), len(codes))

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
        known = getattr(self, "worker_feature_names_in_", None)
        refuse_other_columns(column_names(worker_features), known, "worker_features")
        names = pd.DataFrame(worker_features).index if workers is None else workers
        other: Any = copy.copy(self)
        other.workers_ = worker_names(names)
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
        check_is_fitted(self)
        return torch.as_tensor(self._worker_codes(workers))

    def _pair_cells(self) -> int:
        """Numbers in passing for a task and a worker."""
        return max(len(self.classes_) ** 2, HIDDEN)

    @torch.no_grad()
    def _label_proba(self, X: Any, row: Ints, worker: Ints) -> Floats:
        features, parts = self._known_features(X), [np.empty((0, len(self.classes_)))]
        size = rows_at_once(max(self._pair_cells(), int(np.prod(features.shape))))
        for start in range(0, len(row), size):
            some = slice(start, start + size)
            rows, at = np.unique(row[some], return_inverse=True)
            who = torch.as_tensor(worker[some]).long()
            log_labels = self.net_.log_labels(
                features.rows(torch.as_tensor(rows).long()), torch.as_tensor(at), who
            )
            parts.append(log_labels.double().exp().numpy())
        return np.concatenate(parts)

    @torch.no_grad()
    def _over_rows(self, X: Any, work: Any, n_workers: int = 0) -> Floats:
        """What ``work`` makes of all rows, each with so many workers."""
        features = self._known_features(X)
        size = rows_at_once(max(int(np.prod(features.shape)), n_workers * self._pair_cells()))
        rows = torch.split(torch.arange(features.n_tasks), size)
        counted = progress.track(rows, "predicting", unit="block")
        parts = [work(features.rows(some)).double().numpy() for some in counted]
        return np.concatenate(parts) if parts else np.empty((0, len(self.classes_)))

    def _known_features(self, X: Any) -> Features:
        """Features of the kind that the model was fitted with."""
        check_is_fitted(self)
        features = as_features(X)
        refuse_other_features(features, self)
        return features


def grid(n_rows: int, workers: Tensor) -> tuple[Tensor, Tensor]:
    """Every row with every worker: which row, and which worker."""
    return torch.arange(n_rows).repeat_interleave(len(workers)), workers.repeat(n_rows)
