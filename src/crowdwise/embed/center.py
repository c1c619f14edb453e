"""Center losses: a learned center for every class, beside a linear classifier."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from crowdwise.base.params import at_least
from crowdwise.embed.balanced_tasks import BalancedTasks
from crowdwise.embed.confidence import Certain
from crowdwise.embed.embedder import CrowdEmbedder
from crowdwise.embed.losses import EmbeddedGroups, Loss
from crowdwise.nets.training import Training

# Centers take larger steps than the encoder.
RATES = Training(
    learning_rate={"encoder": 1e-3, "center": 1e-2, "": 1e-3}, batch_size=256, epochs=50
)


class CenterLoss(Loss):
    """Cross-entropy of a linear classifier, plus the distance to a learned class center.

    Parameters
    ----------
    weight : float, default=0.1
        Weight of the centers relative to the classifier.
    margin : float, optional
        By how much a task's own center must be nearer than any other, in half the squared
        distance (the triplet-center loss). Without it, half the squared distance to the task's
        own center.
    """

    _parameter_constraints = {"weight": [at_least(0.0)], "margin": [at_least(0.0), None]}

    def __init__(self, weight: float = 0.1, *, margin: float | None = None) -> None:
        self.weight = weight
        self.margin = margin

    def build(self, size: int, n_classes: int) -> Centers:
        return Centers(size, n_classes, self.weight, self.margin)


class Centers(nn.Module):
    """The learned centers and the classifier of :class:`CenterLoss`."""

    def __init__(self, size: int, n_classes: int, weight: float, margin: float | None) -> None:
        super().__init__()
        self.weight, self.margin = weight, margin
        self.center = nn.Parameter(torch.randn(n_classes, size) / size**0.5)
        self.head = nn.Linear(size, n_classes)

    def losses(self, groups: EmbeddedGroups) -> Tensor:
        embedding, label = groups.anchors, groups.label
        centers = self.compare(embedding, label).mean()
        return cross_entropy(self.head(embedding), label) + self.weight * centers

    def compare(self, embedding: Tensor, label: Tensor) -> Tensor:
        """Return the loss of each task from its distances to the centers, (task,)."""
        distance = 0.5 * ((embedding[:, None] - self.center) ** 2).sum(dim=-1)  # (task, class)
        own = distance.gather(1, label[:, None])[:, 0]
        if self.margin is None:
            return own
        other = distance.scatter(1, label[:, None], torch.inf).amin(dim=1)
        return (own + self.margin - other).clamp_min(0)


class Center(CrowdEmbedder):
    """Learn a representation by classification, with every task drawn to its class center.

    The loss is cross-entropy of a linear classifier plus half the squared distance to the class
    center, which is learned too. Treats the aggregator's classes as true.

    Parameters
    ----------
    groups : Groups, optional
        Which tasks are compared; ``BalancedTasks()`` if not given.
    loss : Loss, optional
        What training lowers; ``CenterLoss(weight=0.1)`` if not given.
    groups_per_epoch : int, optional
        Tasks drawn in an epoch; 2,560 if not given.
    anchor, confidence, encoder, aggregator, scale, refresh_every, training, random_state
        See :class:`CrowdEmbedder`; every class counts as certain, and
        ``aggregator=DawidSkene()`` is what papers call "+EM".

    Notes
    -----
    The maths::

        loss = cross-entropy(linear(z_i)) + weight / 2 * |z_i - center of its class|^2

    Works when each class forms one cluster, and a plain classifier would work as well.

    Fails when classes have several clusters; wrong labels move the centers.

    References
    ----------
    Wen, Zhang, Li and Qiao (2016). A discriminative feature learning approach for deep face
    recognition. ECCV. doi:10.1007/978-3-319-46478-7_31

    Examples
    --------
    >>> import numpy as np
    >>> X, labels = np.eye(6), [[0, 0], [1, 1], [0, 0], [1, 1], [0, 1], [1, 1]]
    >>> Center(groups_per_epoch=8, random_state=0).fit_transform(X, labels).shape
    (6, 32)
    """

    default_groups = BalancedTasks()
    default_confidence = Certain()
    default_loss = CenterLoss()
    default_groups_per_epoch = 2560
    default_training = RATES


class TripletCenter(CrowdEmbedder):
    """Learn a representation by classification, with tasks nearest to their own class center.

    The loss is cross-entropy of a linear classifier plus the amount by which a task's distances
    to the nearest other center and to its own miss a margin. Treats the aggregator's classes as
    true.

    Parameters
    ----------
    groups : Groups, optional
        Which tasks are compared; ``BalancedTasks()`` if not given.
    loss : Loss, optional
        What training lowers; ``CenterLoss(weight=0.1, margin=1.0)`` if not given.
    groups_per_epoch : int, optional
        Tasks drawn in an epoch; 2,560 if not given.
    anchor, confidence, encoder, aggregator, scale, refresh_every, training, random_state
        See :class:`CrowdEmbedder`; every class counts as certain, and
        ``aggregator=DawidSkene()`` is what papers call "+EM".

    Notes
    -----
    The maths::

        loss = cross-entropy(linear(z_i)) + weight * max(0, own + margin - other)
        own, other: half the squared distances to the own and to the nearest other center

    Works when ``Center`` does; it also pushes classes apart.

    Fails when classes have several clusters, or many labels are wrong.

    References
    ----------
    He, Zhou, Zhou, Bai and Bai (2018). Triplet-center loss for multi-view 3D object retrieval.
    CVPR. doi:10.1109/CVPR.2018.00208

    Examples
    --------
    >>> import numpy as np
    >>> X, labels = np.eye(6), [[0, 0], [1, 1], [0, 0], [1, 1], [0, 1], [1, 1]]
    >>> TripletCenter(groups_per_epoch=8, random_state=0).fit_transform(X, labels).shape
    (6, 32)
    """

    default_groups = BalancedTasks()
    default_confidence = Certain()
    default_loss = CenterLoss(margin=1.0)
    default_groups_per_epoch = 2560
    default_training = RATES
