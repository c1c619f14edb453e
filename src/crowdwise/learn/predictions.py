"""Predictions of a fitted network for tasks and workers, some rows at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from crowdwise import progress
from crowdwise.learn.parts import CrowdNet, pair_cells
from crowdwise.nets.features import Features, rows_at_once
from crowdwise.typing import Floats, Ints


@torch.no_grad()
def predict_rows(
    features: Features, work: Callable[[Tensor], Tensor], n_classes: int, n_workers: int = 0
) -> Floats:
    """Apply ``work`` to all rows, each with this many workers."""
    size = rows_at_once(max(int(np.prod(features.shape)), n_workers * pair_cells(n_classes)))
    rows = torch.split(torch.arange(features.n_tasks), size)
    blocks = progress.track(rows, "predicting", unit="block")
    parts = [work(features.rows(some)).double().numpy() for some in blocks]
    return np.concatenate(parts) if parts else np.empty((0, n_classes))


@torch.no_grad()
def predict_labels(
    net: CrowdNet, features: Features, row: Ints, worker: Ints, n_classes: int
) -> Floats:
    """Return P(label) of each given row of features and worker number, (row, label)."""
    parts = [np.empty((0, n_classes))]
    size = rows_at_once(max(pair_cells(n_classes), int(np.prod(features.shape))))
    for start in range(0, len(row), size):
        some = slice(start, start + size)
        rows, at = np.unique(row[some], return_inverse=True)
        x = features.rows(torch.as_tensor(rows).long())
        who = torch.as_tensor(worker[some]).long()
        log_labels = net.log_labels(x, torch.as_tensor(at), who)
        parts.append(log_labels.double().exp().numpy())
    return np.concatenate(parts)
