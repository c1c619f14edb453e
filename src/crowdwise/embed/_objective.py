"""An encoder together with the loss it is trained on and the groups it learns from."""

from __future__ import annotations

import torch
from torch import Tensor

from crowdwise.embed._data import GroupBatch, GroupData
from crowdwise.embed.anchors import robust_anchor
from crowdwise.embed.encoder import EmbedNet
from crowdwise.embed.groups import Pool, Sampler
from crowdwise.embed.losses import GroupSoftmax
from crowdwise.nets.modules import Objective


class EmbedObjective(Objective[GroupBatch]):
    """A network for tasks, together with the loss of groups and where they come from."""

    by = "group"
    held_out_everywhere = True  # groups are drawn from all tasks that are held out

    def __init__(self, net: EmbedNet, sampler: Sampler) -> None:
        super().__init__()
        self.net, self.sampler = net, sampler

    net: EmbedNet

    def held_out(self, batch: GroupBatch) -> Tensor:
        """The loss on groups of held-out tasks: what patience looks at."""
        return self.loss(batch)

    def begin(self, data: GroupData, generator: torch.Generator) -> Pool:
        """The tasks that may be drawn in this epoch."""
        return data.pool()

    def pick(self, data: GroupData, pool: Pool, n: int, generator: torch.Generator) -> Tensor:
        """``n`` groups to learn from next, (group, member)."""
        return self.sampler.draw(pool, n, generator)


class TupleObjective(EmbedObjective):
    """Retrieve an anchor's partner among negatives: RLL, and the core of NeuCrowd.

    ``anchor`` is ``"example"`` or ``"robust"``; a robust one is made of the anchors' vectors, or
    with ``anchor_space="input"`` of their features.
    """

    def __init__(
        self,
        net: EmbedNet,
        sampler: Sampler,
        softmax: GroupSoftmax,
        n_classes: int,
        *,
        anchor: str = "example",
        anchor_space: str = "embedding",
        anchor_scale: str = "weights",
    ) -> None:
        super().__init__(net, sampler)
        self.softmax, self.n_classes = softmax, n_classes
        self.anchor, self.anchor_space = anchor, anchor_space
        self.anchor_scale = anchor_scale

    def loss(self, batch: GroupBatch) -> Tensor:
        return self.group_losses(batch).mean()

    def group_losses(self, batch: GroupBatch) -> Tensor:
        """The loss of each group, (group,)."""
        queries = self.net(batch.x)
        documents = queries if self.net.document is None else self.net.documents(batch.x)
        first, rest = batch.groups[:, 0], batch.groups[:, 1:]
        anchors = queries[first] if self.anchor == "example" else self.robust(batch, queries)
        return self.softmax(anchors, documents[rest], batch.confidence[rest])

    def robust(self, batch: GroupBatch, queries: Tensor) -> Tensor:
        """One anchor a class, in the place of each of its anchors, (group, dimension)."""
        first = batch.groups[:, 0]
        kind, weight = batch.label[first], batch.confidence[first]
        how = (weight, kind, self.n_classes)
        if self.anchor_space == "embedding":
            return robust_anchor(queries[first], *how, scale=self.anchor_scale)
        inputs = self.net.scaler(batch.x)[first]
        return self.net.encoder(robust_anchor(inputs, *how, scale=self.anchor_scale)).flatten(1)
