"""Groups chosen by a network in training: groups of safe tasks, and hard groups (NeuCrowd).

Both wrap other groups: ``HardGroups(SafeGroups(RandomGroups()))``.
"""

from __future__ import annotations

import copy
import math
from typing import TypeVar

import torch
from torch import Tensor, nn

from crowdwise.base.params import at_least, between
from crowdwise.embed.groups import (
    GroupBatch,
    Groups,
    GroupTasks,
    Pool,
    RandomGroups,
    Sampler,
    Setting,
)
from crowdwise.nets.modules import EmbedNet
from crowdwise.typing import Ints

G = TypeVar("G", bound=Groups)
CELLS_AT_ONCE = 4_000_000  # distances held at once


class SafeGroups(Groups):
    """Groups of safe tasks, and a few others, from the second epoch on.

    A task is safe if its neighbors in the current embedding support its class: among them, those
    of its class must have a larger sum of confidences than those of any other (NeuCrowd,
    definition 3).

    Parameters
    ----------
    groups : Groups, optional
        How groups are drawn from these tasks; ``RandomGroups()`` if not given.
    margin : float, default=0
        Margin by which the sum of confidences must be larger (delta).
    neighbors : int, optional
        Number of neighbors; the square root of the batch size if not given.
    unsafe_share : float, default=0.02
        Share of the other tasks that may be drawn, chosen again in each epoch.
    """

    _parameter_constraints = {
        "groups": [Groups, None],
        "margin": [at_least(0.0)],
        "neighbors": [at_least(1), None],
        "unsafe_share": [between(0.0, 1.0)],
    }

    def __init__(
        self,
        groups: Groups | None = None,
        *,
        margin: float = 0.0,
        neighbors: int | None = None,
        unsafe_share: float = 0.02,
    ) -> None:
        self.groups = groups
        self.margin = margin
        self.neighbors = neighbors
        self.unsafe_share = unsafe_share

    def sampler(self, setting: Setting) -> SafeSampler:
        return SafeSampler(inner_sampler(self.groups, setting), self, setting.batch_size)

    def safe(self, tasks: GroupTasks, pool: Pool, batch_size: int | None) -> Tensor:
        """Return which tasks of the pool are safe in the current embedding, by position."""
        order = pool.order.to(tasks.device)
        points = tasks.embedded(order), tasks.label[order], tasks.confidence[order]
        return self.is_safe(*points, batch_size)

    def is_safe(
        self, embedding: Tensor, label: Tensor, confidence: Tensor, batch_size: int | None
    ) -> Tensor:
        """Return whether each task is safe, (task,)."""
        k = self.neighbors or math.isqrt(batch_size or len(label))
        return safe_tasks(embedding, label, confidence, k, margin=self.margin)


class HardGroups(Groups):
    """The hardest of several times as many groups, from the second epoch on.

    A second network learns to predict each group's loss from its members, side by side, and
    training uses the groups with the largest predictions (NeuCrowd, section 3.3.4). Its body is a
    copy of the encoder without dropout, whose noise would drown out the predictions.

    Parameters
    ----------
    groups : Groups, optional
        How groups are drawn; ``RandomGroups()`` if not given.
    rate : int, default=2
        Number of groups drawn for each one that is used.
    """

    _parameter_constraints = {"groups": [Groups, None], "rate": [at_least(1)]}

    def __init__(self, groups: Groups | None = None, *, rate: int = 2) -> None:
        self.groups = groups
        self.rate = rate

    def sampler(self, setting: Setting) -> Sampler:
        inner = inner_sampler(self.groups, setting)
        return inner if self.rate == 1 else self.picker(inner, setting)

    def picker(self, inner: Sampler, setting: Setting) -> HardSampler:
        """Build the network that predicts losses, around the sampler of candidates."""
        body = copy.deepcopy(setting.net.encoder)
        for part in body.modules():
            if isinstance(part, nn.Dropout):
                part.p = 0.0
        return HardSampler(inner, HardnessNet(body, inner.n_members, setting.size), self.rate)


class WrappedSampler(Sampler):
    """A sampler around another one."""

    def __init__(self, inner: Sampler) -> None:
        super().__init__()
        self.inner, self.n_members = inner, inner.n_members

    def draw(self, pool: Pool, n: int, generator: torch.Generator) -> Tensor:
        return self.inner.draw(pool, n, generator)

    def allows(self, pool: Pool) -> bool:
        return self.inner.allows(pool)

    def n_groups(self, size: Ints) -> int:
        return self.inner.n_groups(size)

    def begin(self, tasks: GroupTasks, generator: torch.Generator) -> Pool:
        return self.inner.begin(tasks, generator)

    def pick(self, tasks: GroupTasks, pool: Pool, n: int, generator: torch.Generator) -> Tensor:
        return self.inner.pick(tasks, pool, n, generator)

    def loss(self, losses: Tensor, batch: GroupBatch, net: EmbedNet) -> Tensor:
        return self.inner.loss(losses, batch, net)


class SafeSampler(WrappedSampler):
    """Leaves out most tasks that are not safe."""

    def __init__(self, inner: Sampler, rule: SafeGroups, batch_size: int | None) -> None:
        super().__init__(inner)
        self.rule, self.batch_size = rule, batch_size

    def begin(self, tasks: GroupTasks, generator: torch.Generator) -> Pool:
        pool = self.inner.begin(tasks, generator)
        if not tasks.epoch:
            return pool
        safe = self.rule.safe(tasks, pool, self.batch_size)
        few = safe_pool(pool, safe, self.rule.unsafe_share, generator, tasks.label.cpu())
        return few if self.allows(few) else pool


class HardSampler(WrappedSampler):
    """Draws more groups than needed, and keeps the hardest."""

    def __init__(self, inner: Sampler, hardness: HardnessNet, rate: int) -> None:
        super().__init__(inner)
        self.hardness, self.rate = hardness, rate

    @torch.no_grad()
    def pick(self, tasks: GroupTasks, pool: Pool, n: int, generator: torch.Generator) -> Tensor:
        if not tasks.epoch:
            return self.inner.pick(tasks, pool, n, generator)
        candidates = self.inner.pick(tasks, pool, n * self.rate, generator)
        batch = tasks.batch(candidates)
        self.hardness.eval()
        score = self.hardness(tasks.net.scaler(batch.x), batch.groups)
        self.hardness.train()
        return candidates[self.hardest(score, n).cpu()]

    def loss(self, losses: Tensor, batch: GroupBatch, net: EmbedNet) -> Tensor:
        """Return the groups' loss; its gradient includes that of the prediction error."""
        value = self.inner.loss(losses, batch, net)
        if not self.training:
            return value
        error = self.error(self.hardness(net.scaler(batch.x), batch.groups), losses)
        # The two networks share no parameters, so one step on the sum is a step for each. The
        # reported loss remains that of the representation.
        return value + error - error.detach()

    def error(self, predicted: Tensor, losses: Tensor) -> Tensor:
        """Return the error of the predicted losses."""
        return hardness_loss(predicted, losses)

    def hardest(self, score: Tensor, n: int) -> Tensor:
        """Return positions of the ``n`` groups to keep."""
        return largest(score, n)


class HardnessNet(nn.Module):
    """Predicts a group's loss from its members, side by side.

    ``body`` maps features to vectors of ``size``, the same for every member; a single unit reads
    all of them. ``squash`` adds a sigmoid, for probabilities as targets.
    """

    def __init__(self, body: nn.Module, n_members: int, size: int, *, squash: bool = False) -> None:
        super().__init__()
        self.body, self.squash = body, squash
        self.unit = nn.Linear(n_members * size, 1)

    def forward(self, x: Tensor, groups: Tensor) -> Tensor:
        """Return one number per group, (group,); ``groups`` are rows of ``x``, encoded once."""
        members = self.body(x).flatten(start_dim=1)[groups]  # (group, member, dimension)
        score = self.unit(members.flatten(start_dim=1))[:, 0]
        return score.sigmoid() if self.squash else score


def inner_sampler(groups: Groups | None, setting: Setting) -> Sampler:
    """Return the sampler of the wrapped groups."""
    chosen = RandomGroups() if groups is None else groups
    chosen.check()
    return chosen.sampler(setting)


def find_groups(groups: Groups, kind: type[G]) -> G | None:
    """Return the first of a kind among nested groups."""
    parts = [groups, *groups.get_params().values()]
    return next((part for part in parts if isinstance(part, kind)), None)


def hardness_loss(predicted: Tensor, target: Tensor) -> Tensor:
    """Return the mean squared error of predictions; the target gets no gradient."""
    return ((predicted - target.detach()) ** 2).mean()


def largest(score: Tensor, n: int) -> Tensor:
    """Return the positions of the ``n`` largest scores."""
    return torch.topk(score, min(n, len(score))).indices


@torch.no_grad()
def safe_tasks(
    embedding: Tensor, label: Tensor, confidence: Tensor, n_neighbors: int, *, margin: float = 0.0
) -> Tensor:
    """Return whether each task's neighbors support its class by over ``margin``, (task,)."""
    k = min(n_neighbors, len(label) - 1)
    if k < 1:
        return torch.ones(len(label), dtype=torch.bool, device=label.device)
    own, other = neighbor_support(embedding, label, confidence, k)
    return own > other + margin


def neighbor_support(
    embedding: Tensor, label: Tensor, confidence: Tensor, k: int, *, itself: bool = False
) -> tuple[Tensor, Tensor]:
    """Sum confidences over the k nearest: of the own class, and the largest other, (task,).

    Distances are computed for some tasks at a time, so that memory grows with the number of tasks
    and not with its square. ``itself`` lets a task be its own neighbor.
    """
    n_tasks, n_classes = len(label), int(label.max()) + 1
    at_once, parts = max(1, CELLS_AT_ONCE // n_tasks), []
    for rows in torch.split(torch.arange(n_tasks, device=label.device), at_once):
        distance = torch.cdist(embedding[rows], embedding)
        if not itself:
            distance[torch.arange(len(rows), device=label.device), rows] = torch.inf
        near = distance.topk(k, largest=False).indices  # (row, neighbor)
        support = torch.zeros(len(rows), n_classes, device=label.device, dtype=confidence.dtype)
        support.scatter_add_(1, label[near], confidence[near])
        own = support.gather(1, label[rows, None])[:, 0]
        other = support.scatter(1, label[rows, None], -torch.inf).amax(dim=1)
        parts.append(torch.stack([own, other]))
    own, other = torch.cat(parts, dim=1)
    return own, other


def safe_pool(
    pool: Pool, safe: Tensor, unsafe_share: float, generator: torch.Generator, label: Tensor
) -> Pool:
    """Return all safe tasks and a random share of the others; ``safe`` is by position."""
    admitted = torch.rand(len(pool), generator=generator) < unsafe_share
    kept = pool.order[safe.cpu() | admitted]
    return Pool.of(kept, label, len(pool.size))
