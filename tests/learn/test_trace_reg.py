"""TraceReg against plain loops, and what its penalty does."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy.special import softmax

from crowdwise.learn import Training
from crowdwise.learn.parts import WorkerConfusionNet
from crowdwise.learn.trace_reg import TracePenaltyLoss, TraceReg


@pytest.fixture
def net(lopsided):
    return lopsided.net_of(WorkerConfusionNet(lopsided.n_workers, lopsided.n_classes, 1.0, -5.0))


@pytest.mark.parametrize("options", [{}, {"soft": True}, {"weighted": True}], ids=str)
def test_the_loss_equals_the_plain_loops(lopsided, net, options):
    annotations = lopsided.votes(**options)
    data = lopsided.data_of(annotations)
    x, value, total = data.features.source.double().numpy(), 0.0, 0.0
    tables = softmax(lopsided.numbers(net.noise.raw.weight), axis=2)
    for task, worker, share, weight in lopsided.rows_of(annotations):
        chance = np.exp(np.log(tables[worker]) @ share)
        value += weight * np.log(lopsided.truth_of(net, x[task]) @ chance)
        total += weight
    traces = [np.trace(tables[worker]) for worker in range(lopsided.n_workers)]
    loss = TracePenaltyLoss(net, data, 0.7).loss(lopsided.double(data.whole()))
    assert_allclose(float(loss.detach()), -value / total + 0.7 * np.mean(traces))


def test_the_penalty_is_the_same_for_any_batch(lopsided, net):
    data = lopsided.data_of(lopsided.votes())
    for rows in (torch.arange(40), torch.tensor([3, 17, 31])):
        batch = lopsided.double(data.some(rows))
        with_penalty, without = (TracePenaltyLoss(net, data, p).loss(batch) for p in (1.0, 0.0))
        tables = softmax(lopsided.numbers(net.noise.raw.weight)[:-1], axis=2)
        expected = np.trace(tables, axis1=1, axis2=2).mean()
        assert_allclose(float((with_penalty - without).detach()), expected)


def test_gradients_are_right(lopsided, net):
    data = lopsided.data_of(lopsided.votes())
    batch = lopsided.double(data.whole())
    assert lopsided.gradients_are_right(TracePenaltyLoss(net, data, 0.5), batch)


def test_starts_with_good_workers(lopsided):
    data = lopsided.data_of(lopsided.votes())
    table = softmax(lopsided.numbers(TraceReg()._noise().build(data).raw.weight), axis=2)
    assert_allclose(table[:, [0, 1, 2], [0, 1, 2]], 1 / (1 + 2 * np.exp(-6)), rtol=1e-6)


def test_a_larger_penalty_blames_the_workers_more(crowd):
    training, sure, accuracy = Training(learning_rate=0.1, epochs=100), [], []
    for penalty in (0.0, 0.2):
        model = TraceReg(trace=penalty, training=training, random_state=0)
        model.fit(crowd.X, crowd.votes)
        sure.append(model.predict_proba(crowd.X).max(axis=1).mean())
        accuracy.append(model.worker_accuracy_.mean())
    assert sure[1] > sure[0] + 0.02
    assert accuracy[1] < accuracy[0] - 0.03
