"""Contrastive: pairs of one class together, others apart."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from crowdwise.embed._batches import TripletEmbedder, TripletObjective
from crowdwise.embed._data import GroupBatch
from crowdwise.embed.confidence import Belief
from crowdwise.embed.encoder import EmbedNet
from crowdwise.embed.groups import TupleSampler
from crowdwise.embed.losses import ContrastiveLoss
from crowdwise.nets.training import Training


class Contrastive(TripletEmbedder):
    """Learn a representation from pairs, as a Siamese network.

    Pairs of one class are pulled together and pairs of two pushed ``margin`` apart; there are as
    many of one kind as of the other. Takes the aggregator's classes at their word.

    Parameters
    ----------
    margin : float, default=1
        Distance beyond which pairs of two classes are let be.
    groups_per_epoch : int, default=6000
        Comparisons in an epoch.
    encoder, aggregator, scale, refresh_every, training, random_state
        As for :class:`RLL`; ``aggregator=DawidSkene()`` is a paper's "+EM".

    References
    ----------
    Hadsell, Chopra and LeCun (2006). Dimensionality reduction by learning an invariant mapping.
    CVPR. doi:10.1109/CVPR.2006.100

    Examples
    --------
    >>> import numpy as np
    >>> X, labels = np.eye(6), [[0, 0], [1, 1], [0, 0], [1, 1], [0, 1], [1, 1]]
    >>> Contrastive(groups_per_epoch=64, random_state=0).fit_transform(X, labels).shape
    (6, 32)
    """

    def __init__(
        self,
        *,
        margin: float = 1.0,
        groups_per_epoch: int = 6000,
        encoder: Any = None,
        aggregator: Any = None,
        scale: bool = True,
        refresh_every: int | None = None,
        training: Training | None = None,
        random_state: Any = None,
    ) -> None:
        self.margin = margin
        self.groups_per_epoch = groups_per_epoch
        self.encoder = encoder
        self.aggregator = aggregator
        self.scale = scale
        self.refresh_every = refresh_every
        self.training = training
        self.random_state = random_state

    def _criterion(self) -> ContrastiveLoss:
        return ContrastiveLoss(self.margin)

    def _objective(self, net: EmbedNet, belief: Belief) -> PairObjective:
        return PairObjective(net, TupleSampler(1), self._criterion())


class PairObjective(TripletObjective):
    """Each anchor with its positive, and with its negative."""

    def loss(self, batch: GroupBatch) -> Tensor:
        anchor, positive, negative = self.net(batch.x)[batch.groups].unbind(dim=1)
        same = torch.ones(len(anchor), dtype=torch.bool, device=anchor.device)
        near = self.criterion(anchor, positive, same)
        return 0.5 * (near + self.criterion(anchor, negative, ~same)).mean()
