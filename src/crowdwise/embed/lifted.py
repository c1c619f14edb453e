"""Lifted structure: every pair of a class against all negatives of both."""

from __future__ import annotations

from typing import Any

from crowdwise.embed._batches import BatchEmbedder
from crowdwise.embed.losses import LiftedStructureLoss
from crowdwise.nets.training import Training


class LiftedStructure(BatchEmbedder):
    """Learn a representation from all distances in a batch.

    The distance of a pair of one class is weighed against the nearness of every task of another
    class to either of the two. Takes the aggregator's classes at their word.

    Parameters
    ----------
    margin : float, default=1
        Distance at which a negative counts for 1.
    tasks_per_epoch : int, default=2560
        Tasks drawn in an epoch.
    encoder, aggregator, scale, refresh_every, training, random_state
        As for :class:`RLL`; ``aggregator=DawidSkene()`` is a paper's "+EM".

    References
    ----------
    Oh Song, Xiang, Jegelka and Savarese (2016). Deep metric learning via lifted structured
    feature embedding. CVPR. doi:10.1109/CVPR.2016.434

    Examples
    --------
    >>> import numpy as np
    >>> X, labels = np.eye(6), [[0, 0], [1, 1], [0, 0], [1, 1], [0, 1], [1, 1]]
    >>> LiftedStructure(tasks_per_epoch=8, random_state=0).fit_transform(X, labels).shape
    (6, 32)
    """

    def __init__(
        self,
        *,
        margin: float = 1.0,
        tasks_per_epoch: int = 2560,
        encoder: Any = None,
        aggregator: Any = None,
        scale: bool = True,
        refresh_every: int | None = None,
        training: Training | None = None,
        random_state: Any = None,
    ) -> None:
        self.margin = margin
        self.tasks_per_epoch = tasks_per_epoch
        self.encoder = encoder
        self.aggregator = aggregator
        self.scale = scale
        self.refresh_every = refresh_every
        self.training = training
        self.random_state = random_state

    def _criterion(self) -> LiftedStructureLoss:
        return LiftedStructureLoss(self.margin)
