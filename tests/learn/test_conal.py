"""CoNAL against plain loops, its gate and its penalty."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy.special import expit, softmax
from torch import nn

from crowdwise.learn import CrowdLayer, Training
from crowdwise.learn.conal import CommonConfusionNet, CoNAL, DistanceBonusLoss
from crowdwise.simulate import label_by_crowd

SIZE = 6
SHORT = Training(learning_rate=0.05, epochs=100)


def make_net(lopsided, gate):
    task = nn.Linear(lopsided.n_in, SIZE) if gate is None else None
    sizes = lopsided.n_workers, lopsided.n_classes, SIZE
    return lopsided.net_of(CommonConfusionNet(*sizes, task, gate, 2.0))


def slow_matrix(lopsided, noise, x, worker, gate):
    """The free weights of one task and worker, and the common share in them."""
    share = gate
    if gate is None:
        task = lopsided.numbers(noise.task.weight) @ x + lopsided.numbers(noise.task.bias)
        vector = lopsided.numbers(noise.worker.weight)[worker]
        share = expit(task @ vector / np.sqrt((task @ task) * (vector @ vector)))
    common, own = lopsided.numbers(noise.common), lopsided.numbers(noise.own.weight)[worker]
    return share * common + (1 - share) * own, share


@pytest.mark.parametrize("gate", [None, 0.0, 0.3, 1.0])
@pytest.mark.parametrize("options", [{}, {"soft": True}, {"weighted": True}], ids=str)
def test_the_loss_equals_the_plain_loops(lopsided, options, gate):
    annotations, net = lopsided.votes(**options), make_net(lopsided, gate)
    data = lopsided.data_of(annotations)
    x, value, total = data.features.source.double().numpy(), 0.0, 0.0
    for task, worker, share, weight in lopsided.rows_of(annotations):
        matrix, _ = slow_matrix(lopsided, net.noise, x[task], worker, gate)
        label = softmax(matrix.T @ lopsided.truth_of(net, x[task]))
        value += weight * share @ np.log(label)
        total += weight
    own, common = lopsided.numbers(net.noise.own.weight), lopsided.numbers(net.noise.common)
    apart = sum(np.linalg.norm(own[worker] - common) for worker in range(lopsided.n_workers))
    objective, batch = DistanceBonusLoss(net, data, 0.2), lopsided.double(data.whole())
    assert_allclose(float(objective.loss(batch).detach()), -value / total - 0.2 * apart)
    assert_allclose(float(objective.held_out(batch).detach()), -value / total)


def test_tables_are_what_the_layer_makes_of_certain_classes(lopsided):
    net = make_net(lopsided, None)
    x = lopsided.data_of(lopsided.votes()).features.source.double()
    at, worker = torch.tensor([0, 3, 3, 7]), torch.tensor([4, 0, 2, lopsided.n_workers])
    found = net.log_noise(x, at, worker).exp()
    for row in range(4):
        matrix, _ = slow_matrix(lopsided, net.noise, x[at[row]].numpy(), int(worker[row]), None)
        assert_allclose(lopsided.numbers(found[row]), softmax(matrix, axis=1), rtol=1e-6)


@pytest.mark.parametrize("gate", [None, 0.3])
def test_gradients_are_right(lopsided, gate):
    data, net = lopsided.data_of(lopsided.votes()), make_net(lopsided, gate)
    assert lopsided.gradients_are_right(
        DistanceBonusLoss(net, data, 0.1), lopsided.double(data.whole())
    )


def test_all_matrices_start_alike_and_still_have_a_gradient(lopsided):
    data = lopsided.data_of(lopsided.votes())
    noise = CoNAL()._noise().build(data)
    assert_allclose(lopsided.numbers(noise.common), 2 * np.eye(3))
    assert_allclose(lopsided.numbers(noise.own.weight), np.tile(2 * np.eye(3), (6, 1, 1)))
    objective = DistanceBonusLoss(lopsided.net_of(noise), data, 0.1)
    with torch.no_grad():
        noise.own.weight.copy_(noise.common)
    objective.loss(lopsided.double(data.whole())).backward()
    assert torch.isfinite(noise.own.weight.grad).all()


def test_gate_zero_is_crowd_layer(lopsided):
    data = lopsided.data_of(lopsided.votes())
    net = lopsided.net_of(CrowdLayer()._noise().build(data))
    ours = make_net(lopsided, 0.0)
    with torch.no_grad():
        ours.noise.own.weight.copy_(net.noise.layer.matrix.weight)
        ours.truth.load_state_dict(net.truth.state_dict())
    batch = lopsided.double(data.whole())
    found, expected = (m.log_labels(batch.x, batch.at, batch.worker) for m in (ours, net))
    assert_allclose(lopsided.numbers(found), lopsided.numbers(expected))


def test_describes_what_is_common(crowd):
    model = CoNAL(training=SHORT, random_state=0).fit(crowd.X, crowd.votes)
    assert_allclose(model.common_confusion_.sum(axis=1), 1, rtol=1e-6)
    assert model.common_share_.shape == (12,)
    assert (np.abs(model.common_share_ - 0.5) <= 0.24).all()
    fixed = CoNAL(gate=0.25, training=SHORT, random_state=0).fit(crowd.X, crowd.votes)
    assert_allclose(fixed.common_share_, 0.25)


def test_a_worker_without_labels_has_the_mean_share(crowd):
    votes = crowd.votes.filter(crowd.votes.worker != 3)
    model = CoNAL(training=SHORT, random_state=0).fit(crowd.X, votes)
    others = np.delete(model.common_share_, 3)
    given = np.bincount(votes.worker, minlength=12)
    assert model.common_share_[3] == pytest.approx(np.average(others, weights=np.delete(given, 3)))


def test_finds_a_confusion_that_all_workers_share():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    truth = X.argmax(axis=1)
    shared = np.array([[0.9, 0.05, 0.05], [0.05, 0.9, 0.05], [0.5, 0.05, 0.45]])
    votes = label_by_crowd(truth, np.tile(shared, (6, 1, 1)), 3, random_state=0)
    model = CoNAL(gate=1.0, training=SHORT, random_state=0).fit(X, votes)
    assert_allclose(model.common_confusion_, shared, atol=0.12)
