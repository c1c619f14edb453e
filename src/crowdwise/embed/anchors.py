"""What stands for a class in a batch: every anchor itself, or one made of all of them."""

from __future__ import annotations

import torch
from torch import Tensor

SCALES = ("weights", "batch", "sum")


def robust_anchor(
    anchors: Tensor, weight: Tensor, kind: Tensor, n_classes: int, *, scale: str = "weights"
) -> Tensor:
    """The anchors of a batch, each replaced by the weighted mean of its class, (group, …).

    NeuCrowd's definition 4, with one anchor a class where several classes anchor. ``scale`` is
    what the weighted sum is divided by: ``"weights"``, their sum; ``"batch"``, the number of
    anchors, as in the published code; ``"sum"``, nothing, as the paper writes it. Anchors that
    all weigh nothing count alike.
    """
    flat = anchors.flatten(start_dim=1)  # (group, dimension)
    member = torch.eye(n_classes, dtype=flat.dtype, device=flat.device)[kind]  # (group, class)
    shares = member * weight[:, None]
    silent = shares.sum(dim=0) <= 0
    shares = torch.where(silent, member, shares)
    if scale == "weights":
        shares = shares / shares.sum(dim=0).clamp_min(torch.finfo(flat.dtype).tiny)
    elif scale == "batch":
        shares = shares / member.sum(dim=0).clamp_min(1.0)
    return (shares.T @ flat)[kind].reshape(anchors.shape)
