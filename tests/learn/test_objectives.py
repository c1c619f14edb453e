"""Objectives and noise models against plain loops, one annotation at a time."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy.special import expit, logsumexp
from scipy.special import softmax as plain_softmax
from torch import nn

from crowdwise.learn import EM, ColumnEM, HardEM, LabelsOnlyEM, SkillByEase
from crowdwise.learn.crowd_layer import FreeLayerNet, FreeMatrix, FreeVector
from crowdwise.learn.lia import DotTensorsNet, TensorsNet, WorkerEmbedding
from crowdwise.learn.objectives import PerLabelLoss, PerTaskLoss
from crowdwise.learn.parts import CrowdObjective, EMLoss, WorkerConfusionNet
from crowdwise.learn.speelfc_d import SkillByEaseNet
from crowdwise.nets.batches import label_shares


def numbers(tensor):
    return tensor.detach().double().numpy()


def net_with(lopsided, kind="confusion"):
    """A linear truth model and a noise model of some kind, off their symmetric start."""
    n_workers, n_classes, n_in = lopsided.n_workers, lopsided.n_classes, lopsided.n_in
    sizes, n_out = (n_workers, n_classes), n_classes**2 * 2
    if kind == "confusion":
        return lopsided.net_of(WorkerConfusionNet(*sizes, 2.0, 0.5))
    if kind == "ease":
        ease = nn.Linear(n_in, 1)
        return lopsided.net_of(SkillByEaseNet(*sizes, ease, SkillByEase(None, 0.3, 0.1, 3.0)))
    if kind in ("logsumexp", "dot"):
        competence = WorkerEmbedding(n_workers, 3, n_out)
        net = DotTensorsNet if kind == "dot" else TensorsNet
        return lopsided.net_of(net(nn.Linear(n_in, n_out), competence, n_classes, 2))
    layer = FreeMatrix(*sizes) if kind == "MW" else FreeVector(*sizes, 1.0, kind)
    return lopsided.net_of(FreeLayerNet(layer, n_classes))


def slow_table(noise, kind, x, worker):
    """P(label | truth) of one worker on one task, from the raw parameters."""
    if kind == "confusion":
        return plain_softmax(numbers(noise.raw.weight)[worker], axis=1)
    if kind == "ease":
        weight, bias = numbers(noise.ease.weight)[0], numbers(noise.ease.bias)[0]
        ease = 0.1 + 3.0 * expit(x @ weight + bias)
        right = expit(numbers(noise.skill.weight)[worker] * ease)
        n = noise.n_classes
        table = np.full((n, n), (1 - right) / (n - 1))
        np.fill_diagonal(table, right)
        return table
    if kind in ("logsumexp", "dot"):
        shape = noise.shape
        d = (numbers(noise.difficulty.weight) @ x + numbers(noise.difficulty.bias)).reshape(shape)
        head = noise.competence.head
        e = numbers(noise.competence.table.weight)[worker]
        c = (numbers(head.weight) @ e + numbers(head.bias)).reshape(shape)
        raw = (d * c).sum(axis=2) if kind == "dot" else np.log(np.exp(d + c).sum(axis=2))
        return plain_softmax(raw, axis=1)
    return np.array([slow_layer(noise, kind, row, worker) for row in np.eye(noise.n_classes)])


def slow_layer(noise, kind, probability, worker):
    """P(label) that Crowd-Layer gives for some class probabilities."""
    layer = noise.layer
    if kind == "MW":
        return plain_softmax(numbers(layer.matrix.weight)[worker].T @ probability)
    scale = 1.0 if layer.factor is None else numbers(layer.factor.weight)[worker]
    shift = 0.0 if layer.shift is None else numbers(layer.shift.weight)[worker]
    return plain_softmax(probability * scale + shift)


TABLES = ["confusion", "ease", "logsumexp", "dot", "MW", "VW", "VB", "VW-B", "SW"]
CROWDS = [{}, {"soft": True}, {"weighted": True}]


@pytest.mark.parametrize("kind", TABLES)
def test_noise_tables_equal_the_plain_ones(lopsided, kind):
    net, x = net_with(lopsided, kind), lopsided.data_of(lopsided.votes()).features.source.double()
    at, worker = torch.tensor([0, 3, 3, 7]), torch.tensor([4, 0, 2, lopsided.n_workers])
    found = net.log_noise(x, at, worker).exp()
    for row in range(4):
        expected = slow_table(net.noise, kind, x[at[row]].numpy(), int(worker[row]))
        assert_allclose(numbers(found[row]), expected, rtol=1e-6)


@pytest.mark.parametrize("options", CROWDS, ids=["hard", "soft", "weighted"])
@pytest.mark.parametrize("kind", ["confusion", "ease", "logsumexp", "dot"])
def test_marginal_likelihoods_equal_the_plain_loops(lopsided, kind, options):
    annotations = lopsided.votes(**options)
    data, net = lopsided.data_of(annotations), net_with(lopsided, kind)
    x = data.features.source.double().numpy()
    alone, total = 0.0, 0.0
    together = np.array([np.log(lopsided.truth_of(net, x[i])) for i in range(lopsided.n_tasks)])
    for task, worker, share, weight in lopsided.rows_of(annotations):
        score = np.log(slow_table(net.noise, kind, x[task], worker)) @ share
        alone += weight * logsumexp(np.log(lopsided.truth_of(net, x[task])) + score)
        together[task] += weight * score
        total += weight
    batch = lopsided.double(data.whole())
    assert_allclose(float(CrowdObjective(net, data).loss(batch).detach()), -alone / total)
    shared = logsumexp(together, axis=1).sum()
    assert_allclose(float(PerTaskLoss(net, data).loss(batch).detach()), -shared / total)
    posterior = PerTaskLoss(net, data).posterior(batch).exp()
    assert_allclose(numbers(posterior), plain_softmax(together, axis=1), rtol=1e-6)


@pytest.mark.parametrize("options", CROWDS, ids=["hard", "soft", "weighted"])
def test_the_expected_likelihood_equals_the_plain_loops(lopsided, options):
    annotations = lopsided.votes(**options)
    data, net = lopsided.data_of(annotations), net_with(lopsided)
    target = np.random.default_rng(3).dirichlet(np.ones(lopsided.n_classes), lopsided.n_tasks)
    x, total = data.features.source.double().numpy(), 0.0
    told = {task for task, *_ in lopsided.rows_of(annotations)}
    assert len(told) < lopsided.n_tasks
    value = sum(target[i] @ np.log(lopsided.truth_of(net, x[i])) for i in told)
    for task, worker, share, weight in lopsided.rows_of(annotations):
        table = np.log(slow_table(net.noise, "confusion", x[task], worker))
        value += weight * target[task] @ (table @ share)
        total += weight
    objective = EMLoss(net, data, EM())
    objective.target = torch.as_tensor(target)
    assert_allclose(float(objective.loss(lopsided.double(data.whole())).detach()), -value / total)


@pytest.mark.parametrize("options", CROWDS, ids=["hard", "soft", "weighted"])
@pytest.mark.parametrize("kind", ["MW", "VW", "VB", "VW-B", "SW"])
def test_crowd_layers_loss_equals_the_plain_loops(lopsided, kind, options):
    annotations = lopsided.votes(**options)
    data, net = lopsided.data_of(annotations), net_with(lopsided, kind)
    x, value, total = data.features.source.double().numpy(), 0.0, 0.0
    for task, worker, share, weight in lopsided.rows_of(annotations):
        label = slow_layer(net.noise, kind, lopsided.truth_of(net, x[task]), worker)
        value += weight * share @ np.log(label)
        total += weight
    loss = PerLabelLoss(net, data).loss(lopsided.double(data.whole()))
    assert_allclose(float(loss.detach()), -value / total)


@pytest.mark.parametrize("kind", ["MW", "VB"])
@pytest.mark.parametrize("options", CROWDS, ids=["hard", "soft", "weighted"])
def test_known_truths_train_the_classifier_under_a_layer(lopsided, kind, options):
    annotations = lopsided.votes(**options)
    gold = np.where(
        np.arange(lopsided.n_tasks) % 3 == 0, np.arange(lopsided.n_tasks) % lopsided.n_classes, -1
    )
    data, net = lopsided.data_of(annotations, gold), net_with(lopsided, kind)
    x, value, plain, total = data.features.source.double().numpy(), 0.0, 0.0, 0.0
    for task, worker, share, weight in lopsided.rows_of(annotations):
        truth = lopsided.truth_of(net, x[task])
        plain += weight * share @ np.log(slow_layer(net.noise, kind, truth, worker))
        value += weight * np.log(truth[gold[task]]) if gold[task] >= 0 else 0.0
        total += weight
    objective, batch = PerLabelLoss(net, data), lopsided.double(data.whole())
    assert_allclose(numbers(objective.loss(batch)), -(plain + value) / total)
    assert_allclose(numbers(objective.held_out(batch)), -plain / total)
    rows = lopsided.double(
        data.some(torch.arange(data.n_annotations))
    )  # a task for each annotation
    assert_allclose(numbers(objective.loss(rows)), -(plain + value) / total)


def test_direct_equals_the_marginal_where_the_noise_is_a_table(lopsided):
    data, net = lopsided.data_of(lopsided.votes()), net_with(lopsided, "confusion")
    batch = lopsided.double(data.whole())
    assert_allclose(
        numbers(PerLabelLoss(net, data).loss(batch)), numbers(CrowdObjective(net, data).loss(batch))
    )


@pytest.mark.parametrize("kind", [EM, ColumnEM, LabelsOnlyEM, HardEM])
def test_e_steps_equal_the_plain_loops(lopsided, kind):
    annotations = lopsided.votes()
    data, net = lopsided.data_of(annotations), net_with(lopsided, "logsumexp")
    x = data.features.source.double().numpy()
    joint = np.zeros((lopsided.n_tasks, lopsided.n_classes))
    for i in range(lopsided.n_tasks) if kind is not LabelsOnlyEM else ():
        joint[i] += np.log(lopsided.truth_of(net, x[i]))
    for task, worker, share, _ in lopsided.rows_of(annotations):
        score = slow_table(net.noise, "logsumexp", x[task], worker) @ share
        joint[task] += np.log(score / score.sum() if kind is ColumnEM else score)
    objective = kind().build(net, data)
    found = objective.e_step(lopsided.double(data.whole()))
    expected = plain_softmax(joint, axis=1)
    if kind is HardEM:
        expected = (expected == expected.max(axis=1, keepdims=True)).astype(float)
        expected /= expected.sum(axis=1, keepdims=True)
    assert_allclose(numbers(found), expected, rtol=1e-6)


def test_the_printed_denominator_is_in_every_step_or_in_none(lopsided):
    """LIA eqs. 4, 7 and 9: each divides by the sum over truths at the given label."""
    annotations = lopsided.votes()
    data, net = lopsided.data_of(annotations), net_with(lopsided, "logsumexp")
    batch, x = lopsided.double(data.whole()), data.features.source.double().numpy()
    objective = ColumnEM().build(net, data).double()
    target = np.array([0.5, 0.3, 0.2])
    objective.target = torch.as_tensor(np.tile(target, (lopsided.n_tasks, 1)))
    expected = marginal = 0.0
    for i in np.unique(annotations.task):
        expected += np.dot(target, np.log(lopsided.truth_of(net, x[i])))
    for task, worker, share, _ in lopsided.rows_of(annotations):
        score = slow_table(net.noise, "logsumexp", x[task], worker) @ share
        score = score / score.sum()
        expected += np.dot(target, np.log(score))
        marginal += np.log(np.dot(lopsided.truth_of(net, x[task]), score))
    total = annotations.n_annotations
    assert_allclose(numbers(objective.loss(batch)), -expected / total)
    assert_allclose(numbers(objective.marginal(batch)), -marginal / total)
    posterior = objective.posterior(batch).exp()
    assert_allclose(numbers(posterior), numbers(objective.e_step(batch)))
    # Held-out labels are judged by the model, which is the same for both.
    plain = EM().build(net, data).double()
    assert_allclose(numbers(objective.held_out(batch)), numbers(plain.held_out(batch)))


def test_em_starts_from_the_shares_of_labels(lopsided):
    annotations = lopsided.votes(weighted=True)
    gold = np.where(np.arange(lopsided.n_tasks) == 2, 1, -1)
    found = label_shares(lopsided.data_of(annotations, gold))
    expected = annotations.shares()
    expected[2] = [0, 1, 0]
    assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("kind", TABLES)
def test_gradients_are_right(lopsided, kind):
    data, net = lopsided.data_of(lopsided.votes()), net_with(lopsided, kind)
    objective = PerLabelLoss(net, data) if kind in ("MW", "VW-B") else PerTaskLoss(net, data)
    assert lopsided.gradients_are_right(objective, lopsided.double(data.whole()))


def test_gold_rules_other_truths_out(lopsided):
    gold = np.where(np.arange(lopsided.n_tasks) < 5, 2, -1)
    data, net = lopsided.data_of(lopsided.votes(), gold), net_with(lopsided)
    posterior = PerTaskLoss(net, data).posterior(lopsided.double(data.whole())).exp()
    assert_allclose(numbers(posterior[:5]), np.tile([0, 0, 1], (5, 1)))


def test_batches_of_tasks_hold_all_their_labels(lopsided):
    annotations = lopsided.votes()
    data = lopsided.data_of(annotations)
    batch = data.of_tasks(torch.tensor([7, 2, 13]))
    expected = [
        (place, int(w), int(y))
        for place, task in enumerate([7, 2, 13])
        for t, w, y in zip(annotations.task, annotations.worker, annotations.label, strict=True)
        if t == task
    ]
    found = zip(batch.at.tolist(), batch.worker.tolist(), batch.label.tolist(), strict=True)
    assert list(found) == expected
    assert_allclose(batch.x, data.features.source[[7, 2, 13]])


@pytest.mark.parametrize("by", ["annotation", "task"])
def test_an_epoch_sees_every_annotation_once(lopsided, by):
    data = lopsided.data_of(lopsided.votes())
    seen = []
    for batch in data.batches(4, by, torch.Generator().manual_seed(0)):
        columns = (batch.task[batch.at], batch.worker, batch.label)
        seen += list(zip(*(column.tolist() for column in columns), strict=True))
    columns = (data.task, data.worker, data.label)
    assert sorted(seen) == sorted(zip(*(c.tolist() for c in columns), strict=True))


def test_held_out_annotations_are_the_rest(lopsided):
    data = lopsided.data_of(lopsided.votes())
    inside, outside = data.held_out(0.3, np.random.RandomState(0))
    assert (inside.n_annotations, outside.n_annotations) == (28, 12)
    both = torch.cat([inside.task, outside.task])
    assert sorted(both.tolist()) == sorted(data.task.tolist())
    assert int(inside.indptr[-1]) == 28
