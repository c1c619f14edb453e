"""annot-mix against plain loops: the mixtures, and the draws they are made with."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy.special import softmax
from scipy.stats import beta, kstest
from torch import nn

from crowdwise.learn import Training
from crowdwise.learn.annot_mix import AnnotMix, MixupLoss
from crowdwise.learn.embedded import EmbeddedConfusionNet, worker_vectors
from crowdwise.learn.parts import CrowdObjective

SIZE = 4


def make_net(lopsided, *, by_task=True):
    noise = EmbeddedConfusionNet(
        worker_vectors(lopsided.n_workers, SIZE, None),
        nn.Linear(lopsided.n_in, SIZE) if by_task else None,
        SIZE,
        lopsided.n_classes,
        kind="full",
        product=False,
        accuracy=0.9,
    )
    return lopsided.net_of(noise)


def slow_labels(lopsided, net, x, mine):
    """P(label) for features and a worker's vector, mixed or not."""
    noise = net.noise

    def linear(layer, vector):
        return lopsided.numbers(layer.weight) @ vector + lopsided.numbers(layer.bias)

    parts = [mine] if noise.task is None else [mine, linear(noise.task, x)]
    hidden = np.maximum(linear(noise.hidden, np.concatenate(parts)) + mine, 0)
    table = softmax(linear(noise.output, hidden).reshape(3, 3), axis=1)
    return lopsided.truth_of(net, x) @ table


@pytest.mark.parametrize("by_task", [True, False])
@pytest.mark.parametrize("options", [{}, {"soft": True}, {"weighted": True}], ids=str)
def test_mixtures_equal_the_plain_loops(lopsided, options, by_task):
    annotations, net = lopsided.votes(**options), make_net(lopsided, by_task=by_task)
    data, rows = lopsided.data_of(annotations), list(lopsided.rows_of(annotations))
    rng = np.random.default_rng(0)
    part, partner = rng.random(len(rows)), rng.permutation(len(rows))
    x = data.features.source.double().numpy()
    vectors, value, total = lopsided.numbers(net.noise.worker.weight), 0.0, 0.0
    for row, (task, worker, label, weight) in enumerate(rows):
        task_2, worker_2, label_2, weight_2 = rows[partner[row]]
        a, b = part[row], 1 - part[row]
        mine = a * vectors[worker] + b * vectors[worker_2]
        chance = slow_labels(lopsided, net, a * x[task] + b * x[task_2], mine)
        value += (a * weight + b * weight_2) * (a * label + b * label_2) @ np.log(chance)
        total += a * weight + b * weight_2
    objective = MixupLoss(net, data, 1.0, within_task=False)
    loss = objective.mixture(
        lopsided.double(data.whole()), torch.as_tensor(part), torch.as_tensor(partner)
    )
    assert_allclose(float(loss.detach()), -value / total, rtol=1e-6)


def test_nothing_mixed_is_the_plain_likelihood(lopsided):
    data, net = lopsided.data_of(lopsided.votes(weighted=True)), make_net(lopsided)
    batch = lopsided.double(data.whole())
    ones, partner = torch.ones(len(batch.at)), torch.arange(len(batch.at)).flip(0)
    found = MixupLoss(net, data, 1.0, within_task=False).mixture(batch, ones, partner)
    expected = CrowdObjective(net, data).loss(batch)
    assert_allclose(float(found.detach()), float(expected.detach()))


def test_gradients_are_right(lopsided):
    data, net = lopsided.data_of(lopsided.votes()), make_net(lopsided)
    objective = MixupLoss(net, data, 1.0, within_task=False)
    batch = lopsided.double(data.whole())
    generator = torch.Generator().manual_seed(0)
    share = torch.rand(len(batch.at), generator=generator).double()
    partner = torch.randperm(len(batch.at), generator=generator)

    def fixed(objective, batch):
        return objective.mixture(batch, share, partner)

    assert lopsided.gradients_are_right(objective, batch, fixed)


@pytest.mark.parametrize("alpha", [0.3, 1.0, 4.0])
def test_shares_come_from_the_beta_distribution(lopsided, alpha):
    data, net = lopsided.data_of(lopsided.votes()), make_net(lopsided)
    torch.manual_seed(0)
    draws = MixupLoss(net, data, alpha, within_task=False).shares(4000).numpy()
    assert kstest(draws, beta(alpha, alpha).cdf).pvalue > 0.01


@pytest.mark.parametrize("within_task", [True, False])
def test_partners_are_a_random_order(lopsided, within_task):
    data, net = lopsided.data_of(lopsided.votes()), make_net(lopsided)
    objective = MixupLoss(net, data, 1.0, within_task=within_task)
    at = torch.tensor([2, 0, 2, 1, 0, 2, 2])  # rows need not be grouped by task
    torch.manual_seed(0)
    drawn = torch.stack([objective.partners(at) for _ in range(300)])
    assert (drawn.sort(dim=1).values == torch.arange(7)).all()
    met = {(row, int(other)) for row in range(7) for other in drawn[:, row]}
    allowed = {(i, j) for i in range(7) for j in range(7) if at[i] == at[j] or not within_task}
    assert met == allowed


def test_annotations_with_gold_are_not_mixed(lopsided):
    gold = np.full(lopsided.n_tasks, 2)
    data, net = lopsided.data_of(lopsided.votes(), gold), make_net(lopsided)
    batch = lopsided.double(data.whole())
    found = MixupLoss(net, data, 1.0, within_task=False).loss(batch)
    expected = CrowdObjective(net, data).loss(batch)
    assert_allclose(float(found.detach()), float(expected.detach()))


def test_alpha_zero_mixes_nothing(lopsided):
    data, net = lopsided.data_of(lopsided.votes()), make_net(lopsided)
    assert type(AnnotMix(alpha=0.0)._objective().build(net, data)) is CrowdObjective
    assert type(AnnotMix(alpha=0.5)._objective().build(net, data)) is MixupLoss
    assert AnnotMix(within_task=True)._objective().build(net, data).within_task


def test_mixing_makes_it_less_sure(crowd):
    def sure(**settings):
        training = Training(learning_rate={"truth": 0.1, "noise": 1e-3}, epochs=60)
        model = AnnotMix(training=training, random_state=0, **settings)
        model.fit(crowd.X, crowd.votes)
        return model.predict_proba(crowd.X).max(axis=1).mean()

    assert sure(alpha=1.0) < sure(alpha=0.0) - 0.05
