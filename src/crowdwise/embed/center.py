"""Center losses: a learned center for every class, beside a linear classifier."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from crowdwise.base.params import at_least
from crowdwise.embed._batches import BatchEmbedder, CriterionObjective
from crowdwise.embed._data import GroupBatch
from crowdwise.embed.confidence import Belief
from crowdwise.embed.encoder import EmbedNet
from crowdwise.embed.groups import TaskSampler
from crowdwise.embed.losses import TripletCenterLoss
from crowdwise.nets.training import Training

RATES = Training(
    learning_rate={"encoder": 1e-3, "center": 1e-2, "": 1e-3}, batch_size=256, epochs=50
)


class CenterEmbedder(BatchEmbedder):
    """A method with centers, whose steps are larger than the encoder's."""

    default_training = RATES
    margin: float | None
    center_weight: float
    _parameter_constraints = {
        **BatchEmbedder._parameter_constraints,
        "center_weight": [at_least(0.0)],
    }

    def _criterion(self) -> TripletCenterLoss:
        margin = getattr(self, "margin", None)
        return TripletCenterLoss(len(self.classes_), self.size_, margin=margin)

    def _objective(self, net: EmbedNet, belief: Belief) -> CenterObjective:
        return CenterObjective(net, self._criterion(), self.center_weight)


class Center(CenterEmbedder):
    """Learn a representation by classifying, with every task drawn to the center of its class.

    Cross-entropy of a linear classifier plus half the squared distance to the class's center,
    which is learned too. Takes the aggregator's classes at their word.

    Parameters
    ----------
    center_weight : float, default=0.1
        How much the centers count beside the classifier.
    tasks_per_epoch : int, default=2560
        Tasks drawn in an epoch.
    encoder, aggregator, scale, refresh_every, training, random_state
        As for :class:`RLL`; ``aggregator=DawidSkene()`` is a paper's "+EM".

    References
    ----------
    Wen, Zhang, Li and Qiao (2016). A discriminative feature learning approach for deep face
    recognition. ECCV. doi:10.1007/978-3-319-46478-7_31

    Examples
    --------
    >>> import numpy as np
    >>> X, labels = np.eye(6), [[0, 0], [1, 1], [0, 0], [1, 1], [0, 1], [1, 1]]
    >>> Center(tasks_per_epoch=8, random_state=0).fit_transform(X, labels).shape
    (6, 32)
    """

    def __init__(
        self,
        *,
        center_weight: float = 0.1,
        tasks_per_epoch: int = 2560,
        encoder: Any = None,
        aggregator: Any = None,
        scale: bool = True,
        refresh_every: int | None = None,
        training: Training | None = None,
        random_state: Any = None,
    ) -> None:
        self.center_weight = center_weight
        self.tasks_per_epoch = tasks_per_epoch
        self.encoder = encoder
        self.aggregator = aggregator
        self.scale = scale
        self.refresh_every = refresh_every
        self.training = training
        self.random_state = random_state


class TripletCenter(CenterEmbedder):
    """Learn a representation by classifying, with every task nearer to its center than to others.

    Cross-entropy of a linear classifier plus what is missing to ``margin`` between a task's
    distances to the nearest other center and to its own. Takes the aggregator's classes at their
    word.

    Parameters
    ----------
    margin : float, default=1
        By how much, in half the squared distance.
    center_weight : float, default=0.1
        How much the centers count beside the classifier.
    tasks_per_epoch : int, default=2560
        Tasks drawn in an epoch.
    encoder, aggregator, scale, refresh_every, training, random_state
        As for :class:`RLL`; ``aggregator=DawidSkene()`` is a paper's "+EM".

    References
    ----------
    He, Zhou, Zhou, Bai and Bai (2018). Triplet-center loss for multi-view 3D object retrieval.
    CVPR. doi:10.1109/CVPR.2018.00208

    Examples
    --------
    >>> import numpy as np
    >>> X, labels = np.eye(6), [[0, 0], [1, 1], [0, 0], [1, 1], [0, 1], [1, 1]]
    >>> TripletCenter(tasks_per_epoch=8, random_state=0).fit_transform(X, labels).shape
    (6, 32)
    """

    def __init__(
        self,
        *,
        margin: float = 1.0,
        center_weight: float = 0.1,
        tasks_per_epoch: int = 2560,
        encoder: Any = None,
        aggregator: Any = None,
        scale: bool = True,
        refresh_every: int | None = None,
        training: Training | None = None,
        random_state: Any = None,
    ) -> None:
        self.margin = margin
        self.center_weight = center_weight
        self.tasks_per_epoch = tasks_per_epoch
        self.encoder = encoder
        self.aggregator = aggregator
        self.scale = scale
        self.refresh_every = refresh_every
        self.training = training
        self.random_state = random_state


class CenterObjective(CriterionObjective):
    """Cross-entropy of a linear classifier, and the centers' loss."""

    def __init__(self, net: EmbedNet, criterion: TripletCenterLoss, weight: float) -> None:
        super().__init__(net, TaskSampler(), criterion)
        n_classes, size = criterion.center.shape
        self.head, self.weight = nn.Linear(size, n_classes), weight

    def loss(self, batch: GroupBatch) -> Tensor:
        rows = batch.groups[:, 0]
        embedding, label = self.net(batch.x)[rows], batch.label[rows]
        centers = self.criterion(embedding, label).mean()
        return cross_entropy(self.head(embedding), label) + self.weight * centers
