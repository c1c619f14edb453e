"""Triplets: an anchor nearer to its own class than to another, at random or semi-hard."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import normalize

from crowdwise.base.params import at_least
from crowdwise.embed.balanced_tasks import BalancedTasks
from crowdwise.embed.confidence import Certain
from crowdwise.embed.embedder import CrowdEmbedder
from crowdwise.embed.groups import EveryClass, RandomGroups
from crowdwise.embed.losses import (
    EmbeddedGroups,
    PlainLoss,
    average,
    pairs_of_one_class,
    triplets,
)
from crowdwise.nets.training import Training


class TripletLoss(PlainLoss):
    """Keep the negative farther from the anchor than the positive, by ``margin``.

    Parameters
    ----------
    margin : float, default=0.2
        Minimum difference, in squared distance.
    unit_length : bool, default=True
        Whether distances are between vectors scaled to length 1.
    """

    _parameter_constraints = {"margin": [at_least(0.0)], "unit_length": ["boolean"]}

    def __init__(self, margin: float = 0.2, *, unit_length: bool = True) -> None:
        self.margin = margin
        self.unit_length = unit_length

    def losses(self, groups: EmbeddedGroups) -> Tensor:
        return self.compare(*triplets(groups))

    def compare(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """Return the loss of each triplet, (group,)."""
        if self.unit_length:
            anchor, positive, negative = (
                normalize(v, dim=-1) for v in (anchor, positive, negative)
            )
        near = ((anchor - positive) ** 2).sum(dim=-1)
        far = ((anchor - negative) ** 2).sum(dim=-1)
        return (near - far + self.margin).clamp_min(0)


class SemiHardTripletLoss(PlainLoss):
    """A triplet for every pair of one class in a batch, with a semi-hard negative.

    The negative is the nearest one that is farther than the positive, or the farthest one if
    none is. Parameters as for :class:`TripletLoss`.
    """

    _parameter_constraints = TripletLoss._parameter_constraints

    def __init__(self, margin: float = 0.2, *, unit_length: bool = True) -> None:
        self.margin = margin
        self.unit_length = unit_length

    def losses(self, groups: EmbeddedGroups) -> Tensor:
        return average(self.compare(groups.anchors, groups.label))

    def compare(self, embedding: Tensor, label: Tensor) -> Tensor:
        """Return the loss of each pair of one class, (pair,)."""
        points = normalize(embedding, dim=-1) if self.unit_length else embedding
        distance = squared_distances(points)  # (task, task)
        anchor, positive = pairs_of_one_class(label)
        other = label[anchor, None] != label  # (pair, task)
        to_all, to_positive = distance[anchor], distance[anchor, positive]
        farther = other & (to_all > to_positive[:, None])
        nearest = torch.where(farther, to_all, torch.inf).amin(dim=1)
        farthest = torch.where(other, to_all, -torch.inf).amax(dim=1)
        negative = torch.where(farther.any(dim=1), nearest, farthest)
        loss = (to_positive - negative + self.margin).clamp_min(0)
        return loss[other.any(dim=1)]


class Triplet(CrowdEmbedder):
    """Learn a representation from random triplets.

    An anchor must be nearer to a task of its class than to one of another, by a margin. Treats
    the aggregator's classes as true.

    Parameters
    ----------
    groups : Groups, optional
        Which tasks are compared; ``RandomGroups(negatives=1, anchors=EveryClass())`` if not
        given.
    loss : Loss, optional
        What training lowers; ``TripletLoss(margin=0.2)`` if not given.
    groups_per_epoch : int, optional
        Comparisons in an epoch; 6,000 if not given.
    anchor, confidence, encoder, aggregator, scale, refresh_every, training, random_state
        See :class:`CrowdEmbedder`; every class counts as certain, and
        ``aggregator=DawidSkene()`` is what papers call "+EM".

    Notes
    -----
    The maths::

        loss = max(0, |z_a - z_p|^2 - |z_a - z_n|^2 + margin)

    Works when tasks are few: there are still millions of triplets.

    Fails when most random triplets are easy, after which nothing is learned; wrong labels
    count in full.

    References
    ----------
    Schroff, Kalenichenko and Philbin (2015). FaceNet: A unified embedding for face recognition
    and clustering. CVPR. doi:10.1109/CVPR.2015.7298682

    Examples
    --------
    >>> import numpy as np
    >>> X, labels = np.eye(6), [[0, 0], [1, 1], [0, 0], [1, 1], [0, 1], [1, 1]]
    >>> Triplet(groups_per_epoch=64, random_state=0).fit_transform(X, labels).shape
    (6, 32)
    """

    default_groups = RandomGroups(negatives=1, anchors=EveryClass())
    default_confidence = Certain()
    default_loss = TripletLoss()
    default_groups_per_epoch = 6000


class SemiHardTriplet(CrowdEmbedder):
    """Learn a representation from all pairs of a batch, each with a semi-hard negative.

    The negative is the nearest task of another class that is farther than the positive, or the
    farthest one if there is none. Treats the aggregator's classes as true; wrong ones are often
    the nearest.

    Parameters
    ----------
    groups : Groups, optional
        Which tasks are compared; ``BalancedTasks()`` if not given.
    loss : Loss, optional
        What training lowers; ``SemiHardTripletLoss(margin=0.2)`` if not given.
    groups_per_epoch : int, optional
        Tasks drawn in an epoch; 2,560 if not given.
    anchor, confidence, encoder, aggregator, scale, refresh_every, training, random_state
        See :class:`CrowdEmbedder`; every class counts as certain, and
        ``aggregator=DawidSkene()`` is what papers call "+EM".

    Notes
    -----
    The maths::

        loss = max(0, |z_a - z_p|^2 - |z_a - z_n|^2 + margin)
        n is the nearest negative that is farther from the anchor than the positive

    Works when labels are clean and batches contain many tasks of each class.

    Fails when labels are noisy: mislabeled tasks are the nearest negatives, and are selected
    most often.

    References
    ----------
    Schroff, Kalenichenko and Philbin (2015). FaceNet: A unified embedding for face recognition
    and clustering. CVPR. doi:10.1109/CVPR.2015.7298682

    Examples
    --------
    >>> import numpy as np
    >>> X, labels = np.eye(6), [[0, 0], [1, 1], [0, 0], [1, 1], [0, 1], [1, 1]]
    >>> SemiHardTriplet(groups_per_epoch=8, random_state=0).fit_transform(X, labels).shape
    (6, 32)
    """

    default_groups = BalancedTasks()
    default_confidence = Certain()
    default_loss = SemiHardTripletLoss()
    default_groups_per_epoch = 2560
    default_training = Training(learning_rate=1e-3, batch_size=128, epochs=50)


def squared_distances(points: Tensor) -> Tensor:
    """Return squared Euclidean distances of all pairs, never below 0."""
    return ((points[:, None] - points) ** 2).sum(dim=-1)
