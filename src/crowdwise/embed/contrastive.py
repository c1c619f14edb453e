"""Contrastive: pairs of one class together, pairs of different classes apart."""

from __future__ import annotations

import torch
from torch import Tensor

from crowdwise.base.params import at_least
from crowdwise.embed.confidence import Certain
from crowdwise.embed.embedder import CrowdEmbedder
from crowdwise.embed.groups import EveryClass, RandomGroups
from crowdwise.embed.losses import EmbeddedGroups, PlainLoss, triplets


class ContrastiveLoss(PlainLoss):
    """Pull pairs of one class together and push pairs of different classes ``margin`` apart.

    Needs groups of an anchor, a task of its class and one of another; both pairs count equally.

    Parameters
    ----------
    margin : float, default=1
        Distance beyond which pairs of different classes are ignored.
    """

    _parameter_constraints = {"margin": [at_least(0.0)]}

    def __init__(self, margin: float = 1.0) -> None:
        self.margin = margin

    def losses(self, groups: EmbeddedGroups) -> Tensor:
        anchor, positive, negative = triplets(groups)
        same = torch.ones(len(anchor), dtype=torch.bool, device=anchor.device)
        near = self.compare(anchor, positive, same)
        return 0.5 * (near + self.compare(anchor, negative, ~same))

    def compare(self, first: Tensor, second: Tensor, same: Tensor) -> Tensor:
        """Return the loss of each pair, (pair,)."""
        distance = torch.linalg.vector_norm(first - second, dim=-1)
        return torch.where(same, distance**2, (self.margin - distance).clamp_min(0) ** 2)


class Contrastive(CrowdEmbedder):
    """Learn a representation from pairs, as a Siamese network does.

    Pairs of one class are pulled together and pairs of different classes pushed apart, equally
    many of each kind. Treats the aggregator's classes as true.

    Parameters
    ----------
    groups : Groups, optional
        Which tasks are compared; ``RandomGroups(negatives=1, anchors=EveryClass())`` if not
        given.
    loss : Loss, optional
        What training lowers; ``ContrastiveLoss(margin=1.0)`` if not given.
    groups_per_epoch : int, optional
        Comparisons in an epoch; 6,000 if not given.
    anchor, confidence, encoder, aggregator, scale, refresh_every, training, random_state
        See :class:`CrowdEmbedder`; every class counts as certain, and
        ``aggregator=DawidSkene()`` is what papers call "+EM".

    Notes
    -----
    The maths::

        loss = |z_i - z_j|^2 for tasks of one class, max(0, margin - |z_i - z_j|)^2 for others

    Works when classes are compact and the aggregated labels are mostly right.

    Fails when classes have several clusters or many labels are wrong: a wrong pair counts as
    much as a right one.

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

    default_groups = RandomGroups(negatives=1, anchors=EveryClass())
    default_confidence = Certain()
    default_loss = ContrastiveLoss()
    default_groups_per_epoch = 6000
