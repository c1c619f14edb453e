"""The safe set against brute force, and what is drawn from it."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal

from crowdwise.embed import Pool, hard_groups, safe_tasks
from crowdwise.embed.hard_groups import safe_pool
from crowdwise.embed.published import safe_or_tied


def drawn(n, n_classes, seed=0):
    rng = np.random.default_rng(seed)
    label = rng.choice(n_classes, n, p=np.arange(1, n_classes + 1) / sum(range(n_classes + 1)))
    points = rng.normal(size=(n, 3)) + 1.2 * label[:, None]
    return points, label, rng.uniform(0, 1, n)


def brute(points, label, weight, k, margin, legacy):
    """One task at a time, one neighbor at a time."""
    safe = []
    for i in range(len(points)):
        others = [j for j in range(len(points)) if legacy or j != i]
        others.sort(key=lambda j: np.linalg.norm(points[i] - points[j]))
        voice = {kind: 0.0 for kind in set(label)}
        for j in others[:k]:
            voice[label[j]] += weight[j]
        own = voice.pop(label[i])
        other = max(voice.values(), default=-np.inf)
        safe.append(own >= other if legacy else own > other + margin)
    return safe


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    ("k", "margin", "legacy"), [(1, 0.0, False), (7, 0.0, False), (7, 0.8, False), (8, 0.0, True)]
)
def test_the_safe_set_is_that_of_brute_force(n_classes, k, margin, legacy):
    points, label, weight = drawn(80, n_classes)
    columns = torch.tensor(points), torch.tensor(label), torch.tensor(weight)
    found = safe_or_tied(*columns, k) if legacy else safe_tasks(*columns, k, margin=margin)
    expected = brute(points, label, weight, k, margin, legacy)
    assert_array_equal(found, expected)
    assert 5 < sum(expected) < 80  # or there is nothing to tell apart


def test_few_distances_are_held_at_a_time(monkeypatch):
    points, label, weight = (torch.tensor(column) for column in drawn(60, 2))
    expected = safe_tasks(points, label, weight, 5)
    sizes = []
    plain = torch.cdist

    def watched(left, right):
        sizes.append(len(left) * len(right))
        return plain(left, right)

    monkeypatch.setattr(torch, "cdist", watched)
    for cells, most in ((200, 180), (10, 60)):  # 3 rows of 60 tasks; never less than one
        sizes.clear()
        monkeypatch.setattr(hard_groups, "CELLS_AT_ONCE", cells)
        assert_array_equal(safe_tasks(points, label, weight, 5), expected)
        assert max(sizes) == most


def test_a_tie_is_not_safe_but_for_the_published_code():
    points = torch.tensor([[0.0], [1.0], [-1.1]])
    label, weight = torch.tensor([0, 0, 1]), torch.tensor([1.0, 0.5, 0.5])
    assert not safe_tasks(points, label, weight, 2)[0]
    assert safe_or_tied(points, label, torch.tensor([0.0, 0.5, 0.5]), 3)[0]


def test_more_neighbors_than_tasks_and_a_single_task():
    points, label, weight = (torch.tensor(column) for column in drawn(6, 2))
    assert_array_equal(safe_tasks(points, label, weight, 50), safe_tasks(points, label, weight, 5))
    assert safe_tasks(points[:1], label[:1], weight[:1], 3).tolist() == [True]


def test_safe_tasks_stay_and_few_others_are_let_in():
    label = torch.tensor([0, 1] * 500)
    pool = Pool.of(torch.arange(1000), label, 2)
    safe = torch.arange(1000) % 4 == 0
    found = safe_pool(pool, safe, 0.1, torch.Generator().manual_seed(0), label)
    kept = set(found.order.tolist())
    assert set(pool.order[safe].tolist()) <= kept
    assert 40 < len(kept) - 250 < 110  # a tenth of 750
    assert (label[found.order[: int(found.size[0])]] == 0).all()
    none = safe_pool(pool, safe, 0.0, torch.Generator().manual_seed(0), label)
    assert len(none) == 250
