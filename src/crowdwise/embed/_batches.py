"""What the metric-learning baselines share."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from torch import Tensor, nn

from crowdwise.base.params import at_least
from crowdwise.embed._base import Embedder
from crowdwise.embed._data import GroupBatch
from crowdwise.embed._objective import EmbedObjective
from crowdwise.embed.confidence import Belief
from crowdwise.embed.encoder import EmbedNet
from crowdwise.embed.groups import Sampler, TaskSampler, TupleSampler


class TripletEmbedder(Embedder):
    """A method that learns from an anchor, a positive and a negative, of any class."""

    _parameter_constraints = {
        **Embedder._parameter_constraints,
        "margin": [at_least(0.0)],
        "groups_per_epoch": [at_least(1)],
    }
    groups_per_epoch: int

    def _n_groups(self, belief: Belief) -> int:
        return self.groups_per_epoch

    @abstractmethod
    def _criterion(self) -> nn.Module:
        """The loss of this method."""

    def _objective(self, net: EmbedNet, belief: Belief) -> EmbedObjective:
        return TripletObjective(net, TupleSampler(1), self._criterion())


class BatchEmbedder(Embedder):
    """A method that compares all tasks of a batch, which has as many of each class."""

    _parameter_constraints = {
        **Embedder._parameter_constraints,
        "margin": [at_least(0.0), None],
        "tasks_per_epoch": [at_least(2)],
    }
    tasks_per_epoch: int

    def _n_groups(self, belief: Belief) -> int:
        return self.tasks_per_epoch

    @abstractmethod
    def _criterion(self) -> nn.Module:
        """The loss of this method."""

    def _objective(self, net: EmbedNet, belief: Belief) -> EmbedObjective:
        return BatchObjective(net, TaskSampler(), self._criterion())


class CriterionObjective(EmbedObjective):
    """An objective around one of the loss modules."""

    def __init__(self, net: EmbedNet, sampler: Sampler, criterion: nn.Module) -> None:
        super().__init__(net, sampler)
        self.criterion = criterion


class TripletObjective(CriterionObjective):
    def loss(self, batch: GroupBatch) -> Tensor:
        members: Any = self.net(batch.x)[batch.groups].unbind(dim=1)
        return self.criterion(*members).mean()


class BatchObjective(CriterionObjective):
    def loss(self, batch: GroupBatch) -> Tensor:
        rows = batch.groups[:, 0]
        losses = self.criterion(self.net(batch.x)[rows], batch.label[rows])
        return losses.sum() / max(len(losses), 1)  # a batch may hold no pair at all
