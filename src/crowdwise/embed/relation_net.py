"""Relation network: a learned comparison of a query with the supports of each class."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from crowdwise.base.params import at_least
from crowdwise.embed._base import Embedder
from crowdwise.embed._batches import CriterionObjective
from crowdwise.embed._data import GroupBatch
from crowdwise.embed.confidence import Belief
from crowdwise.embed.encoder import EmbedNet, Encoder
from crowdwise.embed.groups import EpisodeSampler
from crowdwise.embed.losses import RelationLoss
from crowdwise.nets.training import Training


class RelationNet(Embedder):
    """Learn a representation in which a small network tells which class a task goes with.

    An episode has supports and queries of every class; a query is compared with the sum of each
    class's supports. Takes the aggregator's classes at their word.

    Parameters
    ----------
    n_supports, n_queries : int, default=5
        Tasks of each class in an episode that are compared with, and that are compared.
    hidden : int, default=16
        Size of the comparing network's hidden layer.
    episodes_per_epoch : int, default=600
        Episodes in an epoch; ``training.batch_size`` counts episodes too.
    encoder, aggregator, scale, refresh_every, training, random_state
        As for :class:`RLL`, with rectified units in the encoder; ``aggregator=DawidSkene()`` is
        a paper's "+EM".

    References
    ----------
    Sung, Yang, Zhang, Xiang, Torr and Hospedales (2018). Learning to compare: Relation network
    for few-shot learning. CVPR. doi:10.1109/CVPR.2018.00131

    Examples
    --------
    >>> import numpy as np
    >>> X, labels = np.eye(6), [[0, 0], [1, 1], [0, 0], [1, 1], [0, 1], [1, 1]]
    >>> RelationNet(episodes_per_epoch=8, random_state=0).fit_transform(X, labels).shape
    (6, 32)
    """

    # Sums of sigmoids are all alike at first, and the comparing network never gets going.
    default_encoder = Encoder(activation="relu")
    default_training = Training(learning_rate=1e-3, batch_size=16, epochs=50)
    _parameter_constraints = {
        **Embedder._parameter_constraints,
        "n_supports": [at_least(1)],
        "n_queries": [at_least(1)],
        "hidden": [at_least(1)],
        "episodes_per_epoch": [at_least(1)],
    }

    def __init__(
        self,
        *,
        n_supports: int = 5,
        n_queries: int = 5,
        hidden: int = 16,
        episodes_per_epoch: int = 600,
        encoder: Any = None,
        aggregator: Any = None,
        scale: bool = True,
        refresh_every: int | None = None,
        training: Training | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_supports = n_supports
        self.n_queries = n_queries
        self.hidden = hidden
        self.episodes_per_epoch = episodes_per_epoch
        self.encoder = encoder
        self.aggregator = aggregator
        self.scale = scale
        self.refresh_every = refresh_every
        self.training = training
        self.random_state = random_state

    def _n_groups(self, belief: Belief) -> int:
        return self.episodes_per_epoch

    def _objective(self, net: EmbedNet, belief: Belief) -> EpisodeObjective:
        sampler = EpisodeSampler(self.n_supports, self.n_queries)
        return EpisodeObjective(net, sampler, RelationLoss(self.size_, self.hidden))


class EpisodeObjective(CriterionObjective):
    """Queries of all classes against the supports of each."""

    sampler: EpisodeSampler

    def loss(self, batch: GroupBatch) -> Tensor:
        sizes = [self.sampler.n_supports, self.sampler.n_queries]
        members = self.net(batch.x)[batch.groups]  # (episode, class x member, dimension)
        by_class = members.unflatten(1, (-1, sum(sizes)))
        support, query = by_class.split(sizes, dim=2)
        n_classes = by_class.shape[1]
        label = torch.arange(n_classes, device=query.device).repeat_interleave(sizes[1])
        label = label.expand(len(query), -1)  # (episode, query)
        return self.criterion(support, query.flatten(1, 2), label).mean()
