"""Objectives and noise models against plain loops, one annotation at a time."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy.special import expit, logsumexp
from scipy.special import softmax as plain_softmax
from torch import nn

from crowdwise import Annotations
from crowdwise.learn._data import as_data, label_shares
from crowdwise.learn._features import as_features
from crowdwise.learn.lia import LIAObjective
from crowdwise.learn.noise import (
    FreeLayer,
    FreeMatrix,
    FreeVector,
    Tensors,
    WorkerConfusion,
    WorkerEase,
    WorkerEmbedding,
)
from crowdwise.learn.objectives import CrowdNet, Direct, Expected, PerAnnotation, PerTask

N_TASKS, N_WORKERS, N_CLASSES, N_IN = 14, 5, 3, 4


def votes(*, soft=False, weighted=False, seed=0):
    """A lopsided crowd: unequal workers and labels, repeated pairs, two tasks without labels."""
    rng = np.random.default_rng(seed)
    n = 40
    return Annotations.from_codes(
        rng.integers(0, N_TASKS - 2, n),
        rng.choice(N_WORKERS, n, p=[0.5, 0.2, 0.15, 0.1, 0.05]),
        rng.choice(N_CLASSES, n, p=[0.6, 0.3, 0.1]),
        tasks=np.arange(N_TASKS),
        workers=np.arange(N_WORKERS),
        classes=np.arange(N_CLASSES),
        weight=rng.uniform(0.3, 2.0, n) if weighted else None,
        soft=rng.dirichlet(np.ones(N_CLASSES), n) if soft else None,
    )


def crowd_data(annotations, gold=None):
    X = np.random.default_rng(1).normal(size=(N_TASKS, N_IN))
    return as_data(as_features(X, annotations.tasks), annotations, gold, torch.device("cpu"))


def jiggle(module, seed=0):
    """Move every parameter off its symmetric start."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return module.double()


def make_noise(kind):
    sizes = N_WORKERS, N_CLASSES
    n_out = N_CLASSES**2 * 2
    if kind == "confusion":
        return WorkerConfusion(*sizes, 2.0, 0.5)
    if kind == "ease":
        return WorkerEase(*sizes, nn.Linear(N_IN, 1), skill=0.3, least=0.1, most=3.0)
    if kind in ("logsumexp", "dot"):
        competence = WorkerEmbedding(N_WORKERS, 3, n_out)
        return Tensors(nn.Linear(N_IN, n_out), competence, N_CLASSES, 2, kind)
    layer = FreeMatrix(*sizes) if kind == "MW" else FreeVector(*sizes, kind)
    return FreeLayer(layer, N_CLASSES)


def make_net(kind="confusion"):
    return jiggle(CrowdNet(nn.Identity(), nn.Linear(N_IN, N_CLASSES), make_noise(kind)))


def numbers(tensor):
    return tensor.detach().double().numpy()


def slow_table(noise, kind, x, worker):
    """P(label | truth) of one worker on one task, from the raw parameters."""
    if kind == "confusion":
        return plain_softmax(numbers(noise.raw.weight)[worker], axis=1)
    if kind == "ease":
        weight, bias = numbers(noise.network.weight)[0], numbers(noise.network.bias)[0]
        ease = 0.1 + 3.0 * expit(x @ weight + bias)
        right = expit(numbers(noise.skill.weight)[worker] * ease)
        table = np.full((N_CLASSES, N_CLASSES), (1 - right) / (N_CLASSES - 1))
        np.fill_diagonal(table, right)
        return table
    if kind in ("logsumexp", "dot"):
        shape = (N_CLASSES, N_CLASSES, 2)
        d = (numbers(noise.difficulty.weight) @ x + numbers(noise.difficulty.bias)).reshape(shape)
        head = noise.competence.head
        e = numbers(noise.competence.table.weight)[worker]
        c = (numbers(head.weight) @ e + numbers(head.bias)).reshape(shape)
        raw = (d * c).sum(axis=2) if kind == "dot" else np.log(np.exp(d + c).sum(axis=2))
        return plain_softmax(raw, axis=1)
    return np.array([slow_layer(noise, kind, row, worker) for row in np.eye(N_CLASSES)])


def slow_layer(noise, kind, probability, worker):
    """P(label) that Crowd-Layer gives for some class probabilities."""
    layer = noise.layer
    if kind == "MW":
        return plain_softmax(numbers(layer.matrix.weight)[worker].T @ probability)
    scale = 1.0 if layer.factor is None else numbers(layer.factor.weight)[worker]
    shift = 0.0 if layer.shift is None else numbers(layer.shift.weight)[worker]
    return plain_softmax(probability * scale + shift)


def slow_truth(net, x):
    return plain_softmax(numbers(net.truth.weight) @ x + numbers(net.truth.bias))


def rows_of(annotations):
    for row in range(annotations.n_annotations):
        share = np.eye(N_CLASSES)[annotations.label[row]]
        if annotations.soft is not None:
            share = annotations.soft[row].astype(float)
        weight = 1.0 if annotations.weight is None else float(annotations.weight[row])
        yield int(annotations.task[row]), int(annotations.worker[row]), share, weight


TABLES = ["confusion", "ease", "logsumexp", "dot", "MW", "VW", "VB", "VW-B", "SW"]
CROWDS = [{}, {"soft": True}, {"weighted": True}]


@pytest.mark.parametrize("kind", TABLES)
def test_noise_tables_equal_the_plain_ones(kind):
    net, x = make_net(kind), crowd_data(votes()).features.source.double()
    at, worker = torch.tensor([0, 3, 3, 7]), torch.tensor([4, 0, 2, N_WORKERS])
    found = net.log_noise(x, at, worker).exp()
    for row in range(4):
        expected = slow_table(net.noise, kind, x[at[row]].numpy(), int(worker[row]))
        assert_allclose(numbers(found[row]), expected, rtol=1e-6)


def double(batch):
    return type(batch)(
        batch.x.double(),
        batch.task,
        batch.at,
        batch.worker,
        batch.label.double() if batch.label.ndim > 1 else batch.label,
        batch.weight.double(),
    )


@pytest.mark.parametrize("options", CROWDS, ids=["hard", "soft", "weighted"])
@pytest.mark.parametrize("kind", ["confusion", "ease", "logsumexp", "dot"])
def test_marginal_likelihoods_equal_the_plain_loops(kind, options):
    annotations = votes(**options)
    data, net = crowd_data(annotations), make_net(kind)
    x = data.features.source.double().numpy()
    alone, total = 0.0, 0.0
    together = np.array([np.log(slow_truth(net, x[i])) for i in range(N_TASKS)])
    for task, worker, share, weight in rows_of(annotations):
        score = np.log(slow_table(net.noise, kind, x[task], worker)) @ share
        alone += weight * logsumexp(np.log(slow_truth(net, x[task])) + score)
        together[task] += weight * score
        total += weight
    batch = double(data.whole())
    assert_allclose(float(PerAnnotation(net, data).loss(batch).detach()), -alone / total)
    shared = logsumexp(together, axis=1).sum()
    assert_allclose(float(PerTask(net, data).loss(batch).detach()), -shared / total)
    posterior = PerTask(net, data).posterior(batch).exp()
    assert_allclose(numbers(posterior), plain_softmax(together, axis=1), rtol=1e-6)


@pytest.mark.parametrize("options", CROWDS, ids=["hard", "soft", "weighted"])
def test_the_expected_likelihood_equals_the_plain_loops(options):
    annotations = votes(**options)
    data, net = crowd_data(annotations), make_net()
    target = np.random.default_rng(3).dirichlet(np.ones(N_CLASSES), N_TASKS)
    x, total = data.features.source.double().numpy(), 0.0
    value = sum(target[i] @ np.log(slow_truth(net, x[i])) for i in range(N_TASKS))
    for task, worker, share, weight in rows_of(annotations):
        table = np.log(slow_table(net.noise, "confusion", x[task], worker))
        value += weight * target[task] @ (table @ share)
        total += weight
    objective = Expected(net, data, torch.as_tensor(target))
    assert_allclose(float(objective.loss(double(data.whole())).detach()), -value / total)


@pytest.mark.parametrize("options", CROWDS, ids=["hard", "soft", "weighted"])
@pytest.mark.parametrize("kind", ["MW", "VW", "VB", "VW-B", "SW"])
def test_crowd_layers_loss_equals_the_plain_loops(kind, options):
    annotations = votes(**options)
    data, net = crowd_data(annotations), make_net(kind)
    x, value, total = data.features.source.double().numpy(), 0.0, 0.0
    for task, worker, share, weight in rows_of(annotations):
        label = slow_layer(net.noise, kind, slow_truth(net, x[task]), worker)
        value += weight * share @ np.log(label)
        total += weight
    loss = Direct(net, data).loss(double(data.whole()))
    assert_allclose(float(loss.detach()), -value / total)


@pytest.mark.parametrize("kind", ["MW", "VB"])
@pytest.mark.parametrize("options", CROWDS, ids=["hard", "soft", "weighted"])
def test_known_truths_train_the_classifier_under_a_layer(kind, options):
    annotations = votes(**options)
    gold = np.where(np.arange(N_TASKS) % 3 == 0, np.arange(N_TASKS) % N_CLASSES, -1)
    data, net = crowd_data(annotations, gold), make_net(kind)
    x, value, plain, total = data.features.source.double().numpy(), 0.0, 0.0, 0.0
    for task, worker, share, weight in rows_of(annotations):
        truth = slow_truth(net, x[task])
        plain += weight * share @ np.log(slow_layer(net.noise, kind, truth, worker))
        value += weight * np.log(truth[gold[task]]) if gold[task] >= 0 else 0.0
        total += weight
    objective, batch = Direct(net, data), double(data.whole())
    assert_allclose(numbers(objective.loss(batch)), -(plain + value) / total)
    assert_allclose(numbers(objective.held_out(batch)), -plain / total)
    rows = double(data.some(torch.arange(data.n_annotations)))  # a task for each annotation
    assert_allclose(numbers(objective.loss(rows)), -(plain + value) / total)


def test_direct_equals_the_marginal_where_the_noise_is_a_table():
    data, net = crowd_data(votes()), make_net("confusion")
    batch = double(data.whole())
    assert_allclose(
        numbers(Direct(net, data).loss(batch)), numbers(PerAnnotation(net, data).loss(batch))
    )


@pytest.mark.parametrize("column_norm", [False, True])
@pytest.mark.parametrize("e_step_prior", [False, True])
def test_lias_e_step_equals_the_plain_loops(column_norm, e_step_prior):
    annotations = votes()
    data, net = crowd_data(annotations), make_net("logsumexp")
    x = data.features.source.double().numpy()
    joint = np.zeros((N_TASKS, N_CLASSES))
    for i in range(N_TASKS) if e_step_prior else ():
        joint[i] += np.log(slow_truth(net, x[i]))
    for task, worker, share, _ in rows_of(annotations):
        score = slow_table(net.noise, "logsumexp", x[task], worker) @ share
        joint[task] += np.log(score / score.sum() if column_norm else score)
    objective = LIAObjective(
        net, data, column_norm=column_norm, e_step_prior=e_step_prior, shared=False
    )
    found = objective.e_step(double(data.whole())).exp()
    assert_allclose(numbers(found), plain_softmax(joint, axis=1), rtol=1e-6)


def test_em_starts_from_the_shares_of_labels():
    annotations = votes(weighted=True)
    gold = np.where(np.arange(N_TASKS) == 2, 1, -1)
    found = label_shares(crowd_data(annotations, gold))
    expected = annotations.shares()
    expected[2] = [0, 1, 0]
    assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("kind", TABLES)
def test_gradients_are_right(kind):
    data, net = crowd_data(votes()), make_net(kind)
    objective = Direct(net, data) if kind in ("MW", "VW-B") else PerTask(net, data)
    batch = double(data.whole())
    names, values = zip(*net.named_parameters(), strict=True)

    def loss(*parameters):
        state = {f"net.{name}": value for name, value in zip(names, parameters, strict=True)}
        return torch.func.functional_call(objective, state, ("loss", batch))

    assert torch.autograd.gradcheck(loss, values, eps=1e-6, atol=1e-6)


def test_gold_rules_other_truths_out():
    gold = np.where(np.arange(N_TASKS) < 5, 2, -1)
    data, net = crowd_data(votes(), gold), make_net()
    posterior = PerTask(net, data).posterior(double(data.whole())).exp()
    assert_allclose(numbers(posterior[:5]), np.tile([0, 0, 1], (5, 1)))


def test_batches_of_tasks_hold_all_their_labels():
    annotations = votes()
    data = crowd_data(annotations)
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
def test_an_epoch_sees_every_annotation_once(by):
    data = crowd_data(votes())
    seen = []
    for batch in data.batches(4, by, torch.Generator().manual_seed(0)):
        columns = (batch.task[batch.at], batch.worker, batch.label)
        seen += list(zip(*(column.tolist() for column in columns), strict=True))
    columns = (data.task, data.worker, data.label)
    assert sorted(seen) == sorted(zip(*(c.tolist() for c in columns), strict=True))


def test_held_out_annotations_are_the_rest():
    data = crowd_data(votes())
    inside, outside = data.held_out(0.3, np.random.RandomState(0))
    assert (inside.n_annotations, outside.n_annotations) == (28, 12)
    both = torch.cat([inside.task, outside.task])
    assert sorted(both.tolist()) == sorted(data.task.tolist())
    assert int(inside.indptr[-1]) == 28
