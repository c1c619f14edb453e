"""Triplets: an anchor nearer to its own class than to another, at random or semi-hard."""

from __future__ import annotations

from typing import Any

from crowdwise.embed._batches import BatchEmbedder, TripletEmbedder
from crowdwise.embed.losses import SemiHardTripletLoss, TripletLoss
from crowdwise.nets.training import Training


class Triplet(TripletEmbedder):
    """Learn a representation from random triplets.

    An anchor must be nearer to a task of its class than to one of another, by ``margin``. Takes
    the aggregator's classes at their word.

    Parameters
    ----------
    margin : float, default=0.2
        By how much, in squared distance.
    unit_length : bool, default=True
        Whether distances are between vectors scaled to length 1.
    groups_per_epoch : int, default=6000
        Comparisons in an epoch.
    encoder, aggregator, scale, refresh_every, training, random_state
        As for :class:`RLL`; ``aggregator=DawidSkene()`` is a paper's "+EM".

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

    _parameter_constraints = {
        **TripletEmbedder._parameter_constraints,
        "unit_length": ["boolean"],
    }

    def __init__(
        self,
        *,
        margin: float = 0.2,
        unit_length: bool = True,
        groups_per_epoch: int = 6000,
        encoder: Any = None,
        aggregator: Any = None,
        scale: bool = True,
        refresh_every: int | None = None,
        training: Training | None = None,
        random_state: Any = None,
    ) -> None:
        self.margin = margin
        self.unit_length = unit_length
        self.groups_per_epoch = groups_per_epoch
        self.encoder = encoder
        self.aggregator = aggregator
        self.scale = scale
        self.refresh_every = refresh_every
        self.training = training
        self.random_state = random_state

    def _criterion(self) -> TripletLoss:
        return TripletLoss(self.margin, scale=self.unit_length)


class SemiHardTriplet(BatchEmbedder):
    """Learn a representation from all pairs of a batch, each with a semi-hard negative.

    The negative is the nearest task of another class that is farther than the positive, or the
    farthest one if there is none. Takes the aggregator's classes at their word; wrong ones are
    often the nearest.

    Parameters
    ----------
    margin, unit_length
        As for :class:`Triplet`.
    tasks_per_epoch : int, default=2560
        Tasks drawn in an epoch.
    encoder, aggregator, scale, refresh_every, training, random_state
        As for :class:`RLL`; ``aggregator=DawidSkene()`` is a paper's "+EM".

    References
    ----------
    Schroff, Kalenichenko and Philbin (2015). FaceNet: A unified embedding for face recognition
    and clustering. CVPR. doi:10.1109/CVPR.2015.7298682

    Examples
    --------
    >>> import numpy as np
    >>> X, labels = np.eye(6), [[0, 0], [1, 1], [0, 0], [1, 1], [0, 1], [1, 1]]
    >>> SemiHardTriplet(tasks_per_epoch=8, random_state=0).fit_transform(X, labels).shape
    (6, 32)
    """

    default_training = Training(learning_rate=1e-3, batch_size=128, epochs=50)
    _parameter_constraints = {
        **BatchEmbedder._parameter_constraints,
        "unit_length": ["boolean"],
    }

    def __init__(
        self,
        *,
        margin: float = 0.2,
        unit_length: bool = True,
        tasks_per_epoch: int = 2560,
        encoder: Any = None,
        aggregator: Any = None,
        scale: bool = True,
        refresh_every: int | None = None,
        training: Training | None = None,
        random_state: Any = None,
    ) -> None:
        self.margin = margin
        self.unit_length = unit_length
        self.tasks_per_epoch = tasks_per_epoch
        self.encoder = encoder
        self.aggregator = aggregator
        self.scale = scale
        self.refresh_every = refresh_every
        self.training = training
        self.random_state = random_state

    def _criterion(self) -> SemiHardTripletLoss:
        return SemiHardTripletLoss(self.margin, scale=self.unit_length)
