"""A network that foretells which groups are hard, and picks them."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class HardnessNet(nn.Module):
    """Foretell a group's loss from its members, side by side (NeuCrowd section 3.3.4).

    ``body`` maps features to vectors of ``size``, the same for every member; a single unit reads
    all of them. ``squash`` puts a sigmoid behind it, for a probability as target.
    """

    def __init__(self, body: nn.Module, n_members: int, size: int, *, squash: bool = False) -> None:
        super().__init__()
        self.body, self.squash = body, squash
        self.unit = nn.Linear(n_members * size, 1)

    def forward(self, x: Tensor, groups: Tensor) -> Tensor:
        """One number a group, (group,); ``groups`` are rows of ``x``, each encoded once."""
        members = self.body(x).flatten(start_dim=1)[groups]  # (group, member, dimension)
        score = self.unit(members.flatten(start_dim=1))[:, 0]
        return score.sigmoid() if self.squash else score


def hardness_loss(predicted: Tensor, target: Tensor, *, legacy: bool = False) -> Tensor:
    """Mean squared error of the predictions; no gradient reaches the target.

    ``legacy=True`` is the published code's: every prediction is compared with every target, so
    that the best prediction is one and the same for all groups.
    """
    aim = target.detach()
    if legacy:
        return ((predicted[:, None] - aim) ** 2).mean()
    return ((predicted - aim) ** 2).mean()


def hardest(score: Tensor, n: int) -> Tensor:
    """Places of the ``n`` highest scores."""
    return torch.topk(score, min(n, len(score))).indices


def without_dropout(body: nn.Module) -> None:
    """Silence no unit: with dropout, what a network foretells drowns in its own noise."""
    for part in body.modules():
        if isinstance(part, nn.Dropout):
            part.p = 0.0
