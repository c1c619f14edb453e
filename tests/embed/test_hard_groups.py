"""The picking network predicts the loss; with the published code's squared error it cannot."""

import numpy as np
import pytest
import torch
from torch import nn

from crowdwise.embed import CosineSoftmax, Encoder, Pool, TupleSampler
from crowdwise.embed.hard_groups import HardnessNet, hardness_loss, largest
from crowdwise.embed.published import mean_over_all_pairs


def learned(error, robust=True):
    """Predictions and losses of new groups, after some steps on others."""
    torch.manual_seed(0)
    x = torch.randn(60, 5)
    label = (x[:, 0] + 0.7 * torch.randn(60) > 0).long()
    sampler, pool = TupleSampler(3, 1), Pool.of(torch.arange(60), label, 2)
    frozen = nn.Linear(5, 4)
    softmax = CosineSoftmax(3.0)
    net = HardnessNet(Encoder((32, 16), dropout=0.0, activation="tanh").build(5), 5, 16)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    generator = torch.Generator().manual_seed(0)

    def draw(n):
        groups = sampler.draw(pool, n, generator)
        vectors = frozen(x).detach()
        anchors = vectors[groups[:, 0]]
        if robust:
            anchors = anchors.mean(dim=0).expand(n, -1)
        return groups, softmax.compare(anchors, vectors[groups[:, 1:]], torch.ones(n, 4))

    for _ in range(150):
        groups, target = draw(256)
        optimizer.zero_grad()
        error(net(x, groups), target).backward()
        optimizer.step()
    groups, target = draw(2000)
    return net(x, groups).detach(), target


def test_predictions_follow_the_loss():
    predicted, target = learned(hardness_loss)
    assert np.corrcoef(predicted, target)[0, 1] > 0.8
    alone, own = learned(hardness_loss, robust=False)
    # A single unit adds members up: it sees how a candidate lies, not whether it fits an anchor.
    assert np.corrcoef(alone, own)[0, 1] > 0.35
    harder = target[largest(predicted, 500)].mean()
    assert harder > 1.5 * target.mean()


def test_the_published_squared_error_learns_the_mean():
    predicted, target = learned(mean_over_all_pairs)
    assert predicted.std() < 0.1 * target.std()
    assert predicted.mean() == pytest.approx(float(target.mean()), rel=0.2)


def test_squared_errors_by_plain_loops():
    predicted, target = torch.tensor([0.1, 0.9, 0.4]), torch.tensor([1.0, 0.2, 0.5])
    pairs = zip(predicted.tolist(), target.tolist(), strict=True)
    expected = sum((p - t) ** 2 for p, t in pairs) / 3
    assert float(hardness_loss(predicted, target)) == pytest.approx(expected)
    everyone = [(p - t) ** 2 for p in predicted.tolist() for t in target.tolist()]
    found = mean_over_all_pairs(predicted, target)
    assert float(found) == pytest.approx(sum(everyone) / 9)


def test_no_gradient_reaches_the_target():
    target = torch.ones(3, requires_grad=True)
    predicted = torch.zeros(3, requires_grad=True)
    hardness_loss(predicted, target).backward()
    assert target.grad is None
    assert predicted.grad.abs().sum() > 0


def test_a_prediction_reads_the_members_in_their_order():
    torch.manual_seed(1)
    body = nn.Linear(2, 3)
    net = HardnessNet(body, 2, 3, squash=True)
    x, groups = torch.randn(4, 2), torch.tensor([[0, 3], [3, 0], [1, 2]])
    found = net(x, groups)
    for score, (first, second) in zip(found, groups.tolist(), strict=True):
        side_by_side = torch.cat([body(x[first]), body(x[second])])
        torch.testing.assert_close(score, net.unit(side_by_side)[0].sigmoid())
    assert found[0] != found[1]


def test_the_hardest_are_kept():
    assert largest(torch.tensor([0.1, 0.9, -1.0, 0.5]), 2).tolist() == [1, 3]
    assert len(largest(torch.tensor([0.1, 0.9]), 5)) == 2
