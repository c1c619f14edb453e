"""GeoCrowdNet against plain loops, and its volumes."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy.special import softmax

from crowdwise.learn import Training
from crowdwise.learn.geo_crowd_net import GeoCrowdNet, VolumeBonus, minus_log_volume
from crowdwise.learn.noise import count_log_confusion
from crowdwise.learn.parts import WorkerConfusionNet


@pytest.fixture
def net(lopsided):
    return lopsided.net_of(WorkerConfusionNet(lopsided.n_workers, lopsided.n_classes, 1.0, 0.0))


@pytest.mark.parametrize("regularizer", ["F", "W", None])
@pytest.mark.parametrize("options", [{}, {"soft": True}, {"weighted": True}], ids=str)
def test_the_loss_equals_the_plain_loops(lopsided, net, options, regularizer):
    annotations = lopsided.votes(**options)
    data = lopsided.data_of(annotations)
    x, value, total = data.features.source.double().numpy(), 0.0, 0.0
    tables = softmax(lopsided.numbers(net.noise.raw.weight), axis=2)
    for task, worker, share, weight in lopsided.rows_of(annotations):
        chance = np.exp(np.log(tables[worker]) @ share)
        value += weight * np.log(lopsided.truth_of(net, x[task]) @ chance)
        total += weight
    gram = np.zeros((3, 3))
    for task in range(lopsided.n_tasks if regularizer == "F" else 0):
        probability = lopsided.truth_of(net, x[task])
        gram += np.outer(probability, probability)
    for worker in range(lopsided.n_workers if regularizer == "W" else 0):
        gram += tables[worker] @ tables[worker].T
    bonus = np.log(np.linalg.det(gram)) if regularizer else 0.0
    loss = VolumeBonus(regularizer, 0.3).build(net, data).loss(lopsided.double(data.whole()))
    assert_allclose(float(loss.detach()), -value / total - 0.3 * bonus)


@pytest.mark.parametrize("regularizer", ["F", "W"])
def test_gradients_are_right(lopsided, net, regularizer):
    data = lopsided.data_of(lopsided.votes())
    batch = lopsided.double(data.whole())
    assert lopsided.gradients_are_right(VolumeBonus(regularizer, 0.5).build(net, data), batch)


@pytest.mark.parametrize(
    "gram",
    [torch.ones(3, 3), torch.full((3, 3), torch.nan), torch.eye(3) * 1e-20, -torch.eye(3)],
    ids=["flat", "nan", "tiny", "negative"],
)
def test_a_volume_that_is_no_number_is_dropped_with_its_gradient(gram):
    gram = gram.double().requires_grad_()
    value = minus_log_volume(gram)
    value.backward()
    assert value.item() == 0.0
    assert_allclose(gram.grad, 0.0)


def test_one_bad_restart_leaves_the_others_their_volume():
    grams = torch.stack([torch.eye(3) * 2, torch.ones(3, 3), torch.diag(torch.tensor([1.0, 2, 3]))])
    values = torch.func.vmap(minus_log_volume)(grams)
    assert_allclose(values, [-3 * np.log(2), 0, -np.log(6)], rtol=1e-6)


def test_volumes_grow_when_they_are_asked_for(crowd):
    def volumes(**settings):
        training = Training(learning_rate=0.1, epochs=60)
        model = GeoCrowdNet(training=training, random_state=0, **settings)
        model.fit(crowd.X, crowd.votes)
        probability, tables = model.predict_proba(crowd.X), model.confusion_
        grams = probability.T @ probability, np.einsum("wkl,wml->km", tables, tables)
        return [np.linalg.slogdet(gram)[1] for gram in grams]

    plain = volumes(regularizer=None)
    assert volumes(regularizer="F", penalty=0.3)[0] > plain[0] + 0.1
    assert volumes(regularizer="W", penalty=0.3)[1] > plain[1] + 0.1


def test_starts(lopsided):
    data = lopsided.data_of(lopsided.votes())
    raw = lopsided.numbers(GeoCrowdNet()._noise().build(data).raw.weight)
    assert_allclose(raw, np.tile(np.eye(3), (lopsided.n_workers + 1, 1, 1)))
    raw = lopsided.numbers(GeoCrowdNet(start="counts")._noise().build(data).raw.weight)
    assert_allclose(raw[:-1], lopsided.numbers(count_log_confusion(data, 0.1)))


def test_batches_are_of_tasks(lopsided, net):
    data = lopsided.data_of(lopsided.votes())
    assert VolumeBonus("F", 0.1).build(net, data).by == "task"
