"""MaDL against plain loops: tables, kernels and the prior of gamma."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy.special import expit, softmax
from scipy.stats import gamma as gamma_distribution
from torch import nn

from crowdwise.errors import ParameterError
from crowdwise.learn import Training
from crowdwise.learn.embedded import EmbeddedConfusionNet, worker_vectors
from crowdwise.learn.madl import MaDL, SharedWeightLoss
from crowdwise.learn.objectives import PerTaskLoss
from crowdwise.nets.loop import loss_of
from crowdwise.simulate import label_by_crowd, one_coin_confusion

SIZE = 4
KINDS = ["full", "diagonal", "isotropic"]


def make_net(lopsided, kind="full", *, product=True, by_task=True):
    noise = EmbeddedConfusionNet(
        worker_vectors(lopsided.n_workers, SIZE, None),
        nn.Linear(lopsided.n_in, SIZE) if by_task else None,
        SIZE,
        lopsided.n_classes,
        kind=kind,
        product=product,
        accuracy=0.8,
    )
    return lopsided.net_of(noise)


def slow_table(lopsided, noise, x, worker):
    """P(label | truth) of one task and worker, from the raw parameters."""

    def linear(layer, vector):
        return lopsided.numbers(layer.weight) @ vector + lopsided.numbers(layer.bias)

    mine = lopsided.numbers(noise.worker.weight)[worker]
    parts, both = [mine], mine
    if noise.task is not None:
        parts.append(linear(noise.task, x))
        both = mine + parts[1]
    if noise.product is not None:
        weights = lopsided.numbers(noise.product)
        parts.append(np.array([both @ weights[p] @ both for p in range(SIZE)]))
    hidden = np.maximum(linear(noise.hidden, np.concatenate(parts)) + mine, 0)
    output, n = linear(noise.output, hidden), lopsided.n_classes
    if noise.kind == "full":
        return softmax(output.reshape(n, n), axis=1)
    table = np.empty((n, n))
    for truth in range(n):
        right = expit(output[truth] if noise.kind == "diagonal" else output[0])
        table[truth] = (1 - right) / (n - 1)
        table[truth, truth] = right
    return table


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("by_task", [True, False])
@pytest.mark.parametrize("product", [True, False])
def test_tables_equal_the_plain_ones(lopsided, kind, by_task, product):
    net = make_net(lopsided, kind, product=product, by_task=by_task)
    x = lopsided.data_of(lopsided.votes()).features.source.double()
    at, worker = torch.tensor([0, 3, 3, 7]), torch.tensor([4, 0, 2, lopsided.n_workers])
    found = net.log_noise(x, at, worker).exp()
    for row in range(4):
        expected = slow_table(lopsided, net.noise, x[at[row]].numpy(), int(worker[row]))
        assert_allclose(lopsided.numbers(found[row]), expected, rtol=1e-6)


@pytest.mark.parametrize("options", [{}, {"soft": True}, {"weighted": True}], ids=str)
def test_the_loss_equals_the_plain_loops(lopsided, options):
    annotations, net = lopsided.votes(**options), make_net(lopsided)
    data = lopsided.data_of(annotations)
    objective = SharedWeightLoss(net, data, 1.5, 0.25).double()
    with torch.no_grad():
        objective.log_gamma.fill_(np.log(0.07))
    vectors = lopsided.numbers(net.noise.worker.weight)[:-1]
    crowded = [sum(np.exp(-0.07 * ((v - u) ** 2).sum()) for u in vectors) for v in vectors]
    share = 1 / np.array(crowded)
    share /= share.mean()
    x, value, total = data.features.source.double().numpy(), 0.0, 0.0
    for task, worker, label, weight in lopsided.rows_of(annotations):
        chance = np.exp(np.log(slow_table(lopsided, net.noise, x[task], worker)) @ label)
        value += weight * share[worker] * np.log(lopsided.truth_of(net, x[task]) @ chance)
        total += weight
    prior = gamma_distribution.logpdf(0.07, 1.5, scale=1 / 0.25) / total
    loss = objective.loss(lopsided.double(data.whole()))
    assert_allclose(float(loss.detach()), -value / total - prior, rtol=1e-6)
    assert_allclose(lopsided.numbers(objective.worker_weight()), [*share, 1.0], rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_right(lopsided, kind):
    data, net = lopsided.data_of(lopsided.votes()), make_net(lopsided, kind)
    assert lopsided.gradients_are_right(PerTaskLoss(net, data), lopsided.double(data.whole()))


def test_weights_train_gamma_and_not_the_embeddings(lopsided):
    data, net = lopsided.data_of(lopsided.votes()), make_net(lopsided)
    objective, batch = (
        SharedWeightLoss(net, data, 1.25, 0.25).double(),
        lopsided.double(data.whole()),
    )
    with torch.no_grad():
        objective.log_gamma.fill_(np.log(0.1))

    def loss(log_gamma):
        return torch.func.functional_call(objective, {"log_gamma": log_gamma}, (loss_of, batch))

    assert torch.autograd.gradcheck(loss, objective.log_gamma, eps=1e-6, atol=1e-6)
    vectors = net.noise.worker.weight
    assert torch.autograd.grad(objective.worker_weight()[0], vectors, allow_unused=True) == (None,)


@pytest.mark.parametrize("kind", KINDS)
def test_starts_at_the_prior_accuracy(lopsided, kind):
    data = lopsided.data_of(lopsided.votes())
    model = MaDL(confusion=kind, accuracy=0.7)
    noise = model._noise().build(data)
    at = torch.zeros(lopsided.n_workers, dtype=torch.long)
    table = noise(data.features.source, at, torch.arange(lopsided.n_workers)).exp()
    expected = np.full((3, 3), 0.15) + 0.55 * np.eye(3)
    assert_allclose(lopsided.numbers(table), np.tile(expected, (5, 1, 1)), rtol=1e-5)


def test_refuses_a_certain_prior(crowd):
    with pytest.raises(ParameterError, match="less than 1"):
        MaDL(accuracy=1.0).fit(crowd.X, crowd.votes)


def test_copies_share_their_weight():
    """Six workers who copy each other count less than four who think for themselves."""
    rng = np.random.default_rng(0)
    X = 2 * rng.normal(size=(400, 3))
    truth = X.argmax(axis=1)
    alone = label_by_crowd(truth, one_coin_confusion([0.8] * 4, 3), 4, random_state=0).to_matrix()
    copied = rng.integers(0, 3, size=(400, 1)).repeat(6, axis=1)  # and they copy a spammer
    table = np.hstack([alone.to_numpy(), copied]).astype(int)
    model = MaDL(task=None, product=False, random_state=0).fit(X, table)
    assert_allclose(model.worker_weight_.mean(), 1, rtol=1e-5)
    assert model.worker_weight_[4:].max() < model.worker_weight_[:4].min() - 0.1
    assert model.embedding_.shape == (10, 16)
    plain = MaDL(task=None, weigh=False, training=Training(epochs=2)).fit(X, table)
    assert_allclose(plain.worker_weight_, 1)


def test_finds_workers_who_are_good_at_some_tasks_only():
    rng = np.random.default_rng(0)
    X = 2 * rng.normal(size=(500, 3))
    truth = (X[:, 0] > 0).astype(int)
    easy = X[:, 2] > 0
    good, bad = one_coin_confusion([0.95] * 5, 2), one_coin_confusion([0.5] * 5, 2)
    table = label_by_crowd(truth, good, 5, random_state=0).to_matrix().to_numpy()
    guess = label_by_crowd(truth, bad, 5, random_state=1).to_matrix().to_numpy()
    table = np.where(easy[:, None], table, guess).astype(int)
    model = MaDL(confusion="isotropic", product=False, random_state=0).fit(X, table)
    right = model.predict_worker_accuracy(X).mean(axis=1)
    assert right[easy].mean() > right[~easy].mean() + 0.2
