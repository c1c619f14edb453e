"""Robust anchors against plain loops."""

import pytest
import torch

from crowdwise.embed import robust_anchor

torch.manual_seed(0)
ANCHORS = torch.randn(9, 4, dtype=torch.float64)
WEIGHT = torch.tensor([0.9, 0.1, 0.5, 0.0, 1.0, 0.3, 0.7, 0.2, 0.4], dtype=torch.float64)
KIND = torch.tensor([0, 2, 0, 0, 2, 2, 0, 2, 0])  # class 1 does not anchor here


def slow(scale):
    made = {}
    for kind in (0, 2):
        rows = [i for i in range(9) if KIND[i] == kind]
        total = sum(WEIGHT[i] * ANCHORS[i] for i in rows)
        made[kind] = {
            "sum": total,
            "batch": total / len(rows),
            "weights": total / sum(WEIGHT[i] for i in rows),
        }[scale]
    return torch.stack([made[int(kind)] for kind in KIND])


@pytest.mark.parametrize("scale", ["weights", "batch", "sum"])
def test_equal_to_plain_loops(scale):
    found = robust_anchor(ANCHORS, WEIGHT, KIND, 3, scale=scale)
    torch.testing.assert_close(found, slow(scale))


def test_anchors_of_no_weight_count_alike():
    nothing = torch.zeros(9, dtype=torch.float64)
    found = robust_anchor(ANCHORS, nothing, torch.zeros(9, dtype=torch.long), 2)
    torch.testing.assert_close(found, ANCHORS.mean(dim=0).expand(9, -1))


def test_features_of_any_shape():
    pictures = ANCHORS.reshape(9, 2, 2)
    found = robust_anchor(pictures, WEIGHT, KIND, 3)
    torch.testing.assert_close(found, robust_anchor(ANCHORS, WEIGHT, KIND, 3).reshape(9, 2, 2))


def test_an_outlier_without_assurance_moves_nothing():
    moved = ANCHORS.clone()
    moved[3] = 1e6
    torch.testing.assert_close(
        robust_anchor(moved, WEIGHT, KIND, 3), robust_anchor(ANCHORS, WEIGHT, KIND, 3)
    )
