"""LIA-ML: LIA for several yes-or-no labels of a task, which inform one another."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike
from torch import nn

from crowdwise.annotations import find_labeled
from crowdwise.base.fitting import all_or_nothing
from crowdwise.base.learner import WorkersLike
from crowdwise.base.params import one_of
from crowdwise.base.traits import LearnerTraits
from crowdwise.errors import ParameterError, explain
from crowdwise.learn.label_names import ByLabel, LabelVectors, PairTensors, average_by_name
from crowdwise.learn.label_pairs import (
    PairFeatures,
    are_annotations,
    as_pair_gold,
    as_pairs,
    label_table,
    share_right,
)
from crowdwise.learn.lia import LIA, SELU
from crowdwise.learn.parts import EM, CrowdObjective, NoisePart, ObjectivePart
from crowdwise.nets.batches import CrowdData
from crowdwise.nets.features import as_features
from crowdwise.nets.modules import NetworkLike, Standardize
from crowdwise.nets.training import Training
from crowdwise.typing import AnnotationsLike, FeaturesLike, Floats, GoldLike, RandomState


class LIAML(LIA):
    """Learn several yes-or-no labels of a task at once: LIA with a shared body.

    Every pair of a task and a label name has a truth. Classifier, difficulty and competence are
    LIA's, with one body for all label names and either a head for each or an embedding of the
    label name as an additional input.

    ``annotations`` are ``{label name: annotations}``, or a long frame with the label name in an
    additional column; labels are 0 and 1, or any two values, the second of which means yes.

    Parameters
    ----------
    heads : {"per_label", "embedding"}, default="per_label"
        A linear head per label name (the authors' code), or an embedding of each, which all
        networks read beside the features (the paper). With embeddings and
        ``fit(…, label_features=…)``, predictions can be made for new label names.
    column : str, default="label_name"
        Column of a long frame with the label names.
    truth, difficulty, n_slots, objective, scale, training, random_state
        See :class:`crowdwise.learn.LIA`. A batch counts pairs of task and label name; only
        pairs with a label or a known truth are learned from.

    Attributes
    ----------
    label_names_, tasks_, workers_, classes_ : ndarray
        Names, in the order of every learned array.
    posterior_ : DataFrame of shape (n_tasks, n_label_names)
        P(yes | features, labels) of the training tasks.
    confusion_ : ndarray of shape (n_label_names, n_workers, 2, 2)
        P(label | truth); the axes are label name, worker, truth, label. Averaged over the
        tasks that a worker labeled, or over everybody's if there are none.
    worker_accuracy_ : DataFrame of shape (n_workers, n_label_names)
        How often each worker is right about each label name.
    history_, net_
        See :class:`crowdwise.learn.CrowdClassifier`.

    References
    ----------
    Platanios, Al-Shedivat, Xing and Mitchell (2020). Learning from imperfect annotations.
    arXiv:2004.03473. doi:10.48550/arXiv.2004.03473

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from crowdwise.simulate import label_by_crowd, one_coin_confusion
    >>> X, truth = load_iris(return_X_y=True)
    >>> confusion = one_coin_confusion([0.9, 0.8, 0.7, 0.6], n_classes=2)
    >>> votes = {
    ...     "setosa": label_by_crowd((truth == 0) * 1, confusion, per_task=3, random_state=0),
    ...     "large": label_by_crowd((X[:, 2] > 4) * 1, confusion, per_task=3, random_state=1),
    ... }
    >>> model = LIAML(random_state=0).fit(X, votes)
    >>> model.predict_proba(X).columns.tolist()
    ['setosa', 'large']
    """

    _parameter_constraints = {
        **LIA._parameter_constraints,
        "heads": [one_of("per_label", "embedding")],
        "column": [str],
    }
    _axes = {
        "posterior_": ("tasks_", "label_names_"),
        "confusion_": ("label_names_", "workers_", "classes_", "classes_"),
    }

    def __init__(
        self,
        *,
        heads: str = "per_label",
        column: str = "label_name",
        truth: NetworkLike = SELU,
        difficulty: NetworkLike = SELU,
        n_slots: int = 1,
        objective: ObjectivePart = EM(),  # noqa: B008  immutable
        scale: bool = True,
        training: Training | None = None,
        random_state: RandomState = None,
    ) -> None:
        super().__init__(
            truth=truth,
            difficulty=difficulty,
            n_slots=n_slots,
            objective=objective,
            scale=scale,
            training=training,
            random_state=random_state,
        )
        self.heads = heads
        self.column = column

    def fit(
        self,
        X: FeaturesLike,
        annotations: AnnotationsLike,
        worker_features: FeaturesLike = None,
        gold: GoldLike = None,
        label_features: FeaturesLike = None,
    ) -> Self:
        """Learn from features and annotations of several label names.

        ``gold`` is ``{label name: {task: truth}}`` or a frame tasks x label names;
        ``label_features`` an array or frame with one row per label name.
        """
        pairs = as_pairs(annotations, self.column)
        table = label_table(label_features, pairs.names)
        known = None if gold is None else as_pair_gold(gold, pairs)
        used = find_labeled(pairs.annotations)
        used[list(known or ())] = True
        order = np.flatnonzero(used)  # nothing is learned from pairs without labels
        features = PairFeatures(as_features(X, pairs.tasks), order, len(pairs.names))
        with all_or_nothing(self):
            self.label_names_, self.label_features_ = pairs.names, table
            super().fit(features, pairs.annotations[order], worker_features, known)
            self.tasks_ = pairs.tasks
            self.posterior_.index = pd.Index(pairs.tasks, name="task")
        return self

    def predict_proba(
        self,
        X: FeaturesLike,
        label_names: ArrayLike | None = None,
        label_features: FeaturesLike = None,
    ) -> Any:
        """Return P(yes | features) of every row and label name, a frame.

        ``label_names`` and their ``label_features`` ask for label names unknown in training.
        """
        if label_names is not None:
            return self.for_labels(label_names, label_features).predict_proba(X)
        proba = super().predict_proba(self._pairs(X))[:, 1].reshape(-1, len(self.label_names_))
        index = X.index if isinstance(X, pd.DataFrame) else None
        return pd.DataFrame(proba, index, pd.Index(self.label_names_))

    def predict(self, X: FeaturesLike) -> Any:
        """Return whether each label name applies to every row, a frame of the two classes."""
        proba = self.predict_proba(X)
        chosen = self.classes_[(proba.to_numpy() > 0.5).astype(int)]
        return pd.DataFrame(chosen, proba.index, proba.columns)

    def score(
        self, X: FeaturesLike, y: AnnotationsLike, sample_weight: ArrayLike | None = None
    ) -> float:
        """Return the share of right predictions, or mean log-likelihood for annotations.

        Truths are an array (row, label name), or a frame or dict by label name; NaN if unknown.
        """
        if are_annotations(y, self.column):
            return self.log_likelihood(X, y)
        return share_right(self.predict(X), y, X, self.classes_, sample_weight)

    def log_likelihood(self, X: FeaturesLike, annotations: AnnotationsLike) -> float:
        """Return the mean log P(label | features, worker), which needs no truths."""
        pairs = as_pairs(annotations, self.column, self.label_names_)
        features = PairFeatures(as_features(X, pairs.tasks), n_names=len(self.label_names_))
        return self._log_likelihood(features, pairs.annotations)

    def predict_worker_proba(
        self,
        X: FeaturesLike,
        workers: WorkersLike | None = None,
        worker_features: FeaturesLike = None,
    ) -> Floats:
        """Return P(yes) by each worker, shape (n_rows, n_workers, n_label_names)."""
        proba = super().predict_worker_proba(self._pairs(X), workers, worker_features)
        return self._by_worker(proba[:, :, 1])

    def predict_worker_accuracy(
        self,
        X: FeaturesLike,
        workers: WorkersLike | None = None,
        worker_features: FeaturesLike = None,
    ) -> Floats:
        """Return P(worker is right), shape (n_rows, n_workers, n_label_names)."""
        right = super().predict_worker_accuracy(self._pairs(X), workers, worker_features)
        return self._by_worker(right)

    def for_labels(self, label_names: ArrayLike, label_features: FeaturesLike) -> Self:
        """Return the same model for other label names, of which only features are known."""
        other = copy.copy(self)
        other.label_names_ = np.asarray(label_names)
        table = label_table(label_features, other.label_names_)
        if self.heads != "embedding" or self.label_features_ is None or table is None:
            raise ParameterError(
                explain(
                    "This model cannot distinguish new label names.",
                    expected="heads='embedding', and label_features in fit and here",
                    fix="fit it again with these",
                )
            )
        other.net_ = copy.deepcopy(self.net_)
        for part in other.net_.modules():
            if isinstance(part, LabelVectors):
                part.table = table
        return other

    # -- the model -------------------------------------------------------------------------

    @property
    def traits(self) -> LearnerTraits:
        return LearnerTraits(random_per=("worker",), multi_label=True)

    def _noise(self) -> NoisePart:
        return PairTensors(self.difficulty, self.n_slots, self._by_label())

    def _build_truth(self, data: CrowdData) -> nn.Module:
        return self._by_label().build(self.truth, data.n_in, data.n_classes)

    def _by_label(self) -> ByLabel:
        return ByLabel(self.heads, len(self.label_names_), self.label_features_)

    def _front(self, scaler: nn.Module, data: CrowdData) -> nn.Module:
        if isinstance(scaler, Standardize):  # the last feature is the label name's number
            scaler.mean[-1], scaler.scale[-1] = 0.0, 1.0
        return self._by_label().front(scaler)

    # -- the rest --------------------------------------------------------------------------

    def _pairs(self, X: FeaturesLike) -> PairFeatures:
        return PairFeatures(as_features(X), n_names=len(self.label_names_))

    def _by_worker(self, values: Floats) -> Floats:
        """Rearrange (row x name, worker) to (row, worker, name)."""
        return values.reshape(-1, len(self.label_names_), values.shape[1]).swapaxes(1, 2)

    @torch.no_grad()
    def _describe(self, objective: CrowdObjective, data: CrowdData) -> None:
        batch = next(data.chunks(data.n_tasks))
        posterior = objective.posterior(batch).exp().double()  # (pair, truth)
        table = self.net_.log_noise(batch.x, batch.at, batch.worker).exp().double()
        n_names, columns = len(self.label_names_), pd.Index(self.label_names_)
        name, sizes = batch.x[batch.at, -1].long(), (n_names, len(self.workers_))
        self.confusion_ = average_by_name(
            table, posterior[batch.at], name, batch.worker, sizes
        ).numpy()
        assert isinstance(data.features, PairFeatures)
        everything = PairFeatures(data.features.source.to(batch.x.device), None, n_names)
        yes = super().predict_proba(everything)[:, 1]
        yes[data.features.order] = posterior[:, 1].numpy()
        yes = yes.reshape(-1, n_names)
        share = np.stack([1.0 - yes.mean(axis=0), yes.mean(axis=0)], axis=1)  # (name, truth)
        right = np.einsum("nwkk,nk->wn", self.confusion_, share)
        who = pd.Index(self.workers_, name="worker")
        self.worker_accuracy_: pd.DataFrame = pd.DataFrame(right, who, columns)
        self.posterior_: pd.DataFrame = pd.DataFrame(yes, None, columns)
