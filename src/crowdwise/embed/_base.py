"""What every embedder shares: the verbs, labels and confidence, training and bookkeeping."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
import torch
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import nn

from crowdwise.aggregate import MajorityVote
from crowdwise.annotations import Annotations, refuse_empty
from crowdwise.annotations.names import locate
from crowdwise.base.aggregator import Aggregator
from crowdwise.base.fitting import all_or_nothing
from crowdwise.base.learner import LearnerTraits
from crowdwise.base.params import at_least, checks_params
from crowdwise.embed._data import GroupData
from crowdwise.embed._objective import EmbedObjective
from crowdwise.embed.confidence import Belief, believed, refreshed
from crowdwise.embed.encoder import EmbedNet, Encoder, build_encoder, size_of
from crowdwise.embed.groups import Pool, refuse_too_few
from crowdwise.errors import ParameterError, explain
from crowdwise.io import as_annotations, as_gold
from crowdwise.learn.two_stage import names_of
from crowdwise.nets.features import (
    Features,
    as_features,
    refuse_other_features,
    remember_features,
    rows_at_once,
)
from crowdwise.nets.loop import Phase, pick_device, seeded, split, train
from crowdwise.nets.modules import Standardize
from crowdwise.nets.saved import SavedNet
from crowdwise.nets.training import Training
from crowdwise.typing import Array, Floats, Ints

MOST_GROUPS = 60_000  # of an epoch, where the number of pairs would decide


class Embedder(SavedNet, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):
    """Learn a representation of tasks from their features and disagreeing labels.

    A method says how groups are drawn and what their loss is; the rest lives here.

    Attributes
    ----------
    classes_, workers_, tasks_ : ndarray
        Names, in the order of every learned array.
    aggregator_ : Aggregator
        Who decided on the classes of the training tasks.
    posterior_ : ndarray of shape (n_tasks, n_classes)
        P(truth | labels) by the aggregator; by aggregator and representation where refreshed.
    confidence_ : ndarray of shape (n_tasks,)
        Confidence in the class of each training task; 0 for tasks without labels.
    history_ : History
        Loss per epoch, and the loss of held-out tasks where there is ``patience``.
    feature_shape_ : tuple of int
        Shape of one task's features.
    n_features_in_, feature_names_in_ : int and ndarray
        Number of features where they are rows of numbers, and their names in a frame.
    size_ : int
        Dimension of the representation.
    net_ : EmbedNet
        The fitted network, a ``torch.nn.Module``.
    """

    traits: ClassVar[LearnerTraits] = LearnerTraits(luck=("task",))
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "encoder": [Encoder, nn.Module, callable, None],
        "aggregator": [Aggregator, None],
        "scale": ["boolean"],
        "refresh_every": [at_least(1), None],
        "training": [Training, None],
        "random_state": ["random_state"],
    }
    default_encoder: ClassVar[Encoder] = Encoder()
    default_training: ClassVar[Training] = Training(learning_rate=1e-3, batch_size=256, epochs=50)

    encoder: Any
    aggregator: Any
    scale: bool
    refresh_every: int | None
    training: Training | None
    random_state: Any
    size_: int
    posterior_: Floats
    confidence_: Floats

    @checks_params
    def fit(self, X: Any, annotations: Any, gold: Any = None) -> Self:
        """Learn from features and annotations.

        Parameters
        ----------
        X : array, sparse matrix, frame, tensor or torch Dataset
            One row per task, in the order of ``annotations.tasks`` (or a frame indexed by task).
        annotations : Annotations, frame, array, dict or path
            Labels by workers; tasks without any are allowed.
        gold : mapping, Series, frame or array, optional
            Known truths of some tasks.
        """
        votes = as_annotations(annotations)
        refuse_empty(votes)
        known = None if gold is None else as_gold(gold, votes)
        features = as_features(X, votes.tasks)
        settings = self._settings()
        rng, device = check_random_state(self.random_state), pick_device(settings.device)
        with all_or_nothing(self):
            self.classes_, self.workers_, self.tasks_ = votes.classes, votes.workers, votes.tasks
            remember_features(self, features)
            belief = self._aggregate(votes, known)
            width = int(np.prod(features.shape)) * min(settings.batch_size or 1024, len(votes))
            with seeded(int(rng.randint(2**31 - 1)), device, width):
                net = self._net(features)
                self.size_ = size_of(net, features)
                objective = self._objective(net, belief).to(device)
                data = self._data(features.to(device), belief, objective, votes, device)
                learned, held = split(data, settings, rng)
                best, self.history_ = train(
                    [objective], learned, held, [Phase(settings.epochs)], settings, rng
                )
                self._settle(data)
            self.net_ = best.net.cpu().eval()
        return self

    def transform(self, X: Any) -> Any:
        """The representation of every row, shape (n_rows, size).

        A frame gives a frame with the same index, so that a later step finds its tasks by name.
        """
        check_is_fitted(self)
        features = as_features(X)
        refuse_other_features(features, self)
        size = rows_at_once(int(np.prod(features.shape)))
        device = pick_device(self._settings().device)
        net = self.net_.to(device)
        parts: list[Floats] = [np.empty((0, self._n_features_out))]
        with torch.no_grad():
            for some in torch.split(torch.arange(features.n_tasks), size):
                parts.append(net(features.rows(some.to(device))).double().cpu().numpy())
        self.net_.cpu()
        found = np.concatenate(parts)
        if isinstance(X, pd.DataFrame):
            return pd.DataFrame(found, index=X.index, columns=self.get_feature_names_out())
        return found

    def fit_transform(self, X: Any, annotations: Any, gold: Any = None) -> Any:
        """Same as ``fit(X, annotations, gold).transform(X)``."""
        return self.fit(X, annotations, gold).transform(X)

    # -- what a method fills in ----------------------------------------------------------

    @abstractmethod
    def _objective(self, net: EmbedNet, belief: Belief) -> EmbedObjective:
        """The loss and the groups, around a fresh network whose vectors have ``size_``."""

    @abstractmethod
    def _n_groups(self, belief: Belief) -> int:
        """Groups in an epoch."""

    def _confidence(self, belief: Belief) -> Floats:
        return (belief.label >= 0).astype(np.float64)

    def _towers(self) -> int:
        return 1

    def _evidence(self, votes: Annotations, posterior: Floats) -> Floats:
        """What confidence is taken from, (task, class)."""
        return posterior

    def _settle(self, data: GroupData) -> None:
        """Set what a method can tell once it is trained."""

    # -- the rest --------------------------------------------------------------------------

    def _settings(self) -> Training:
        settings = self.training if self.training is not None else self.default_training
        if settings.n_restarts != 1 or settings.worker_dropout:
            raise ParameterError(
                explain(
                    f"n_restarts={settings.n_restarts}, worker_dropout={settings.worker_dropout}.",
                    expected="n_restarts=1 and worker_dropout=0 for an embedder",
                    fix="fit several embedders with different seeds, and compare them downstream",
                )
            )
        return settings

    def _aggregate(self, votes: Annotations, known: Ints | None) -> Belief:
        first = MajorityVote() if self.aggregator is None else clone(self.aggregator)
        self.aggregator_ = first.fit(votes, names_of(known, votes))
        self.posterior_ = self.aggregator_.posterior_
        chosen = locate(votes.classes, self.aggregator_.labels_.to_numpy())
        return believed(votes, self._evidence(votes, self.posterior_), chosen, known)

    def _net(self, features: Features) -> EmbedNet:
        shape = features.shape
        n_in = shape[0] if len(shape) == 1 else None
        scaler: nn.Module = nn.Identity()
        if self.scale and n_in is not None:
            scaler = Standardize.by(*features.spread(torch.device("cpu")))
        return self._net_behind(scaler, n_in)

    def _net_behind(self, scaler: nn.Module, n_in: int | None) -> EmbedNet:
        towers = [build_encoder(self._encoder(), n_in) for _ in range(self._towers())]
        return EmbedNet(scaler, *towers)

    def _encoder(self) -> Any:
        return self.default_encoder if self.encoder is None else self.encoder

    def _blank(self, device: torch.device) -> EmbedNet:
        n_in = self.feature_shape_[0] if len(self.feature_shape_) == 1 else None
        scaler: nn.Module = nn.Identity()
        if self.scale and n_in is not None:
            scaler = Standardize(torch.zeros(n_in), torch.ones(n_in))
        return self._net_behind(scaler, n_in)

    def _data(
        self,
        features: Features,
        belief: Belief,
        objective: EmbedObjective,
        votes: Annotations,
        device: torch.device,
    ) -> GroupData:
        self.confidence_ = self._confidence(belief)
        data = GroupData(
            features,
            torch.as_tensor(belief.label, device=device).long(),
            torch.as_tensor(self.confidence_, device=device).float(),
            torch.as_tensor(belief.told),
            votes.n_classes,
            self._n_groups(belief),
            objective,
            Renewal(self, belief, votes) if self.refresh_every else None,
        )
        refuse_too_few(data.pool(), objective.sampler)
        return data

    @property
    def _n_features_out(self) -> int:
        return self.size_


class Renewal:
    """Ask labels and the current representation together, every so many epochs."""

    def __init__(self, embedder: Embedder, belief: Belief, votes: Annotations) -> None:
        self.embedder, self.belief, self.votes = embedder, belief, votes

    def __call__(self, data: GroupData) -> None:
        every = self.embedder.refresh_every
        if not data.epoch or every is None or data.epoch % every:
            return
        everyone = torch.arange(len(data.label))
        embedding = data.embedded(data.objective.net, everyone).double().cpu().numpy()
        belief = refreshed(self.belief, embedding, self.votes)
        label = torch.as_tensor(belief.label).long()
        # Tasks without labels join; those held out stay out.
        joining = everyone[(data.label.cpu() < 0) & (label >= 0)]
        tasks = torch.cat([data.tasks, joining])
        if not data.sampler.allows(Pool.of(tasks, label, data.n_classes)):
            return  # all of one class, say: better to go on with what was believed before
        self.belief, model = belief, self.embedder
        model.posterior_, model.confidence_ = belief.share, model._confidence(belief)
        data.tasks, data.label = tasks, label.to(data.device)
        data.confidence = torch.as_tensor(model.confidence_, device=data.device).float()


def ordered_pairs(belief: Belief, anchor: int | None) -> int:
    """Ordered pairs of different tasks of a class that anchors."""
    size: Array = np.bincount(belief.label[belief.told], minlength=belief.share.shape[1])
    if anchor is not None:
        size = size[[anchor]]
    return int((size.astype(np.int64) * (size - 1)).sum())
