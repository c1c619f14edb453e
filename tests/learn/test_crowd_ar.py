"""CrowdAR against plain loops, and what reliability means."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy.special import expit, softmax
from torch import nn

from crowdwise.learn import Training
from crowdwise.learn.crowd_ar import CrowdAR, ReliabilityLoss, ReliableLayerNet


@pytest.fixture
def net(lopsided):
    difficulty = nn.Linear(lopsided.n_in, lopsided.n_classes)
    return lopsided.net_of(ReliableLayerNet(lopsided.n_workers, lopsided.n_classes, difficulty))


def slow_reliability(lopsided, net, x, worker):
    noise = net.noise
    layer = noise.difficulty
    hard = expit(lopsided.numbers(layer.weight) @ x + lopsided.numbers(layer.bias))
    skill = expit(lopsided.numbers(noise.expertise.weight)[worker])
    positive = np.log1p(np.exp(lopsided.numbers(noise.weight)))
    ahead = positive @ ((skill - hard) * lopsided.truth_of(net, x))
    return expit(ahead + float(noise.bias.detach()))


@pytest.mark.parametrize("trust", [0.9, 0.4])
@pytest.mark.parametrize("options", [{}, {"soft": True}, {"weighted": True}], ids=str)
def test_the_loss_equals_the_plain_loops(lopsided, net, options, trust):
    annotations = lopsided.votes(**options)
    data = lopsided.data_of(annotations)
    x, value, plain, total = data.features.source.double().numpy(), 0.0, 0.0, 0.0
    matrices = lopsided.numbers(net.noise.layer.matrix.weight)
    for task, worker, share, weight in lopsided.rows_of(annotations):
        truth = lopsided.truth_of(net, x[task])
        label = np.log(softmax(matrices[worker].T @ truth))
        reliable = slow_reliability(lopsided, net, x[task], worker)
        target = reliable * share + (1 - reliable) / lopsided.n_classes
        right = share[truth.argmax()]
        fit = right * np.log(reliable) + (1 - right) * np.log(1 - reliable)
        value -= weight * (trust * target @ label + (1 - trust) * fit)
        plain -= weight * share @ label
        total += weight
    objective, batch = ReliabilityLoss(net, data, trust), lopsided.double(data.whole())
    assert_allclose(float(objective.loss(batch).detach()), value / total, rtol=1e-6)
    assert_allclose(float(objective.held_out(batch).detach()), plain / total, rtol=1e-6)


def test_gradients_are_right(lopsided, net):
    data = lopsided.data_of(lopsided.votes())
    assert lopsided.gradients_are_right(
        ReliabilityLoss(net, data, 0.7), lopsided.double(data.whole())
    )


def test_gold_decides_what_is_right(lopsided, net):
    annotations = lopsided.votes()
    gold = np.full(lopsided.n_tasks, 1)
    data = lopsided.data_of(annotations, gold)
    x = data.features.source.double().numpy()
    expected = []
    for task, worker, share, _ in lopsided.rows_of(annotations):
        reliable = slow_reliability(lopsided, net, x[task], worker)
        told = np.log(lopsided.truth_of(net, x[task])[1])  # and trains the classifier
        expected.append(-np.log(reliable if share[1] else 1 - reliable) - told)
    loss = ReliabilityLoss(net, data, 0.0).loss(lopsided.double(data.whole()))
    assert_allclose(float(loss.detach()), np.mean(expected))


def test_reliability_is_what_routing_gets(crowd):
    training = Training(learning_rate=0.03, epochs=100)
    model = CrowdAR(training=training, random_state=0).fit(crowd.X, crowd.votes)
    chance = model.predict_worker_accuracy(crowd.new_X)
    assert chance.shape == (200, 12)
    net, x = model.net_, torch.as_tensor(crowd.new_X, dtype=torch.float32)
    with torch.no_grad():
        logit = net.noise.reliability(
            net.log_truth(x).exp(), net.scaler(x), torch.tensor([7]), torch.tensor([3])
        )
    assert_allclose(chance[7, 3], torch.sigmoid(logit), rtol=1e-5)
    right = np.einsum("wkk,k->w", crowd.confusion, np.bincount(crowd.truth) / 400)
    assert np.corrcoef(chance.mean(axis=0), right)[0, 1] > 0.8
    assert model.expertise_.shape == (12, 3)
    assert model.difficulty_.shape == (400,)
    assert ((model.difficulty_ > 0) & (model.difficulty_ < 1)).all()
