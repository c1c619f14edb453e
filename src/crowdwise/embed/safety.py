"""Which tasks lie among their own kind, in the embedding as it is now."""

from __future__ import annotations

import torch
from torch import Tensor

from crowdwise.embed.groups import Pool

CELLS_AT_ONCE = 4_000_000  # distances held at a time


@torch.no_grad()
def safe_tasks(
    embedding: Tensor,
    label: Tensor,
    assurance: Tensor,
    n_neighbors: int,
    *,
    margin: float = 0.0,
    legacy: bool = False,
) -> Tensor:
    """Whether each task's neighbours speak for its class (NeuCrowd definition 3), (task,).

    Among its nearest neighbours, those of its own class must have a larger sum of assurance than
    those of any other class, by more than ``margin``. ``legacy=True`` follows the published
    code: a task is a neighbour of itself, a draw is enough, and there is no margin.

    Distances are taken for some tasks at a time, so that memory grows with the number of tasks
    and not with its square.
    """
    n_tasks, n_classes = len(label), int(label.max()) + 1 if len(label) else 1
    k = min(n_neighbors, n_tasks if legacy else n_tasks - 1)
    if k < 1:
        return torch.ones(n_tasks, dtype=torch.bool, device=label.device)
    parts = []
    for rows in torch.split(torch.arange(n_tasks, device=label.device), _at_once(n_tasks)):
        distance = torch.cdist(embedding[rows], embedding)
        if not legacy:
            distance[torch.arange(len(rows), device=label.device), rows] = torch.inf
        near = distance.topk(k, largest=False).indices  # (row, neighbour)
        voice = torch.zeros(len(rows), n_classes, device=label.device, dtype=assurance.dtype)
        voice.scatter_add_(1, label[near], assurance[near])
        own = voice.gather(1, label[rows, None])[:, 0]
        other = voice.scatter(1, label[rows, None], -torch.inf).amax(dim=1)
        parts.append(own >= other if legacy else own > other + margin)
    return torch.cat(parts)


def safe_pool(
    pool: Pool, safe: Tensor, unsafe_share: float, generator: torch.Generator, label: Tensor
) -> Pool:
    """All safe tasks and a random share of the others; ``safe`` goes by place in the pool."""
    lucky = torch.rand(len(pool), generator=generator) < unsafe_share
    kept = pool.order[safe.cpu() | lucky]
    return Pool.of(kept, label, len(pool.size))


def _at_once(n_tasks: int) -> int:
    return max(1, CELLS_AT_ONCE // max(n_tasks, 1))
