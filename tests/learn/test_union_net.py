"""UnionNet against plain loops, and what a union means."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy.special import softmax

from crowdwise.learn import Training
from crowdwise.learn.union_net import PerPairLoss, UnionConfusionNet, UnionNet
from crowdwise.simulate import label_by_crowd, one_coin_confusion


@pytest.fixture
def net(lopsided):
    return lopsided.net_of(UnionConfusionNet(lopsided.n_workers, lopsided.n_classes, 0.1))


def slow_union(lopsided, net):
    """P(worker, label | truth), one column at a time."""
    raw = lopsided.numbers(net.noise.raw.weight)[:-1]  # (worker, truth, label)
    table = np.empty_like(raw)
    for truth in range(lopsided.n_classes):
        table[:, truth] = softmax(raw[:, truth].ravel()).reshape(raw[:, truth].shape)
    return table


@pytest.mark.parametrize("options", [{}, {"soft": True}, {"weighted": True}], ids=str)
def test_the_loss_equals_the_plain_loops(lopsided, net, options):
    annotations = lopsided.votes(**options)
    data, union = lopsided.data_of(annotations), slow_union(lopsided, net)
    x = data.features.source.double().numpy()
    pairs, alone, total = 0.0, 0.0, 0.0
    for task, worker, share, weight in lopsided.rows_of(annotations):
        truth = lopsided.truth_of(net, x[task])
        pairs += weight * np.log(truth @ np.exp(np.log(union[worker]) @ share))
        labels = truth @ union[worker]
        alone += weight * share @ np.log(labels / labels.sum())
        total += weight
    objective, batch = PerPairLoss(net, data), lopsided.double(data.whole())
    assert_allclose(float(objective.loss(batch).detach()), -pairs / total)
    assert_allclose(float(objective.held_out(batch).detach()), -alone / total)


def test_the_posterior_counts_who_answered(lopsided, net):
    annotations = lopsided.votes(weighted=True)
    data, union = lopsided.data_of(annotations), slow_union(lopsided, net)
    x = data.features.source.double().numpy()
    joint = np.array([np.log(lopsided.truth_of(net, x[i])) for i in range(lopsided.n_tasks)])
    for task, worker, share, weight in lopsided.rows_of(annotations):
        joint[task] += weight * np.log(union[worker]) @ share
    found = PerPairLoss(net, data).posterior(lopsided.double(data.whole())).exp()
    assert_allclose(lopsided.numbers(found), softmax(joint, axis=1), rtol=1e-6)


def test_tables_are_the_union_within_each_worker(lopsided, net):
    x = torch.zeros(1, lopsided.n_in, dtype=torch.float64)
    everyone = torch.arange(lopsided.n_workers + 1)
    found = lopsided.numbers(net.noise(x, torch.zeros_like(everyone), everyone).exp())
    union = slow_union(lopsided, net)
    assert_allclose(found[:-1], union / union.sum(axis=2, keepdims=True))
    assert_allclose(found[-1], softmax(lopsided.numbers(net.noise.raw.weight)[-1], axis=1))


def test_the_unknown_worker_is_no_part_of_the_union(lopsided, net):
    union = lopsided.numbers(net.noise.union().exp())
    assert_allclose(union[:-1].sum(axis=(0, 2)), 1)
    assert_allclose(union[-1].sum(axis=1), 1 / lopsided.n_workers)


def test_gradients_are_right(lopsided, net):
    data = lopsided.data_of(lopsided.votes())
    assert lopsided.gradients_are_right(PerPairLoss(net, data), lopsided.double(data.whole()))


def test_starts_where_error_says(lopsided):
    raw = UnionNet(error=0.2)._noise().build(lopsided.data_of(lopsided.votes())).raw.weight
    assert_allclose(lopsided.numbers(raw)[2], 0.1 + 0.7 * np.eye(3), rtol=1e-6)


def test_learns_who_answers_what():
    """Only worker 0 answers tasks of class 2: the label aside, that tells the class."""
    X = 2 * np.random.default_rng(0).normal(size=(500, 3))
    truth = X.argmax(axis=1)
    votes = label_by_crowd(truth, one_coin_confusion([0.8] * 4, 3), 3, random_state=0)
    votes = votes.filter((votes.worker == 0) == (truth[votes.task] == 2))
    training = Training(learning_rate=0.1, epochs=100)
    model = UnionNet(training=training, random_state=0).fit(X, votes)
    answers = model.net_.noise.union().detach().exp().numpy().sum(axis=2)  # (worker, truth)
    assert answers[0, 2] > 0.9
    assert answers[0, :2].max() < 0.1
