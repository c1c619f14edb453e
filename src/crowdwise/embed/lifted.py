"""Lifted structure: every pair of a class against all negatives of both."""

from __future__ import annotations

import torch
from torch import Tensor

from crowdwise.base.params import at_least
from crowdwise.embed.balanced_tasks import BalancedTasks
from crowdwise.embed.confidence import Certain
from crowdwise.embed.embedder import CrowdEmbedder
from crowdwise.embed.losses import EmbeddedGroups, PlainLoss, average, pairs_of_one_class


class LiftedStructureLoss(PlainLoss):
    """Every pair of one class against all negatives of both in the batch.

    Parameters
    ----------
    margin : float, default=1
        Distance at which a negative counts 1.
    """

    _parameter_constraints = {"margin": [at_least(0.0)]}

    def __init__(self, margin: float = 1.0) -> None:
        self.margin = margin

    def losses(self, groups: EmbeddedGroups) -> Tensor:
        return average(self.compare(groups.anchors, groups.label))

    def compare(self, embedding: Tensor, label: Tensor) -> Tensor:
        """Return the loss of each pair of one class, (pair,)."""
        distance = distances(embedding)
        other = label[:, None] != label
        push = torch.where(other, self.margin - distance, -torch.inf).logsumexp(dim=1)  # (task,)
        first, second = pairs_of_one_class(label, ordered=False)
        both = torch.logaddexp(push[first], push[second])
        found = 0.5 * (both + distance[first, second]).clamp_min(0) ** 2
        return found[other.any(dim=1)[first]]


class LiftedStructure(CrowdEmbedder):
    """Learn a representation from all distances in a batch.

    The distance of a pair of one class is compared with the distances of both to every task of
    another class. Treats the aggregator's classes as true.

    Parameters
    ----------
    groups : Groups, optional
        Which tasks are compared; ``BalancedTasks()`` if not given.
    loss : Loss, optional
        What training lowers; ``LiftedStructureLoss(margin=1.0)`` if not given.
    groups_per_epoch : int, optional
        Tasks drawn in an epoch; 2,560 if not given.
    anchor, confidence, encoder, aggregator, scale, refresh_every, training, random_state
        See :class:`CrowdEmbedder`; every class counts as certain, and
        ``aggregator=DawidSkene()`` is what papers call "+EM".

    Notes
    -----
    The maths::

        J = |z_a - z_p|
            + log sum over n of (exp(margin - |z_a - z_n|) + exp(margin - |z_p - z_n|))
        loss = mean over pairs of max(0, J)^2 / 2

    Works when batches are large: every distance in them is used.

    Fails when labels are noisy, since the nearest negatives count most, and when batches are
    small.

    References
    ----------
    Oh Song, Xiang, Jegelka and Savarese (2016). Deep metric learning via lifted structured
    feature embedding. CVPR. doi:10.1109/CVPR.2016.434

    Examples
    --------
    >>> import numpy as np
    >>> X, labels = np.eye(6), [[0, 0], [1, 1], [0, 0], [1, 1], [0, 1], [1, 1]]
    >>> LiftedStructure(groups_per_epoch=8, random_state=0).fit_transform(X, labels).shape
    (6, 32)
    """

    default_groups = BalancedTasks()
    default_confidence = Certain()
    default_loss = LiftedStructureLoss()
    default_groups_per_epoch = 2560


def distances(points: Tensor) -> Tensor:
    """Return Euclidean distances of all pairs, with gradient 0 where they are 0."""
    return torch.linalg.vector_norm(points[:, None] - points, dim=-1)
