"""MBEM against plain loops: its loss, its posterior, its held-out likelihood, its rounds."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy.special import softmax

from crowdwise.learn import MBEM, MLP, Bootstrap, Training
from crowdwise.learn.mbem import BootstrapLoss
from crowdwise.learn.parts import CountedConfusionNet
from crowdwise.nets import batches
from crowdwise.simulate import label_by_crowd, one_coin_confusion

CROWDS = [{}, {"soft": True}, {"weighted": True}]


def setting(lopsided, options, *, prior="estimate"):
    """Annotations, their data with some gold, and an objective on a jiggled net."""
    annotations = lopsided.votes(**options)
    gold = np.where(np.arange(lopsided.n_tasks) == 4, 2, -1)
    data = lopsided.data_of(annotations, gold)
    net = lopsided.net_of(CountedConfusionNet(lopsided.n_workers, lopsided.n_classes))
    objective = BootstrapLoss(net, data, Bootstrap(class_prior=prior, smoothing=0.3)).double()
    truth = [lopsided.truth_of(net, x) for x in data.features.source.double().numpy()]
    return annotations, data, objective, np.array(truth)


def slow_confusion(lopsided, annotations, predicted, left_out=()):
    counts = np.full((lopsided.n_workers, 3, 3), 0.3)
    for row, (task, worker, share, weight) in enumerate(lopsided.rows_of(annotations)):
        if row not in left_out:
            counts[worker, predicted[task]] += weight * share
    return counts / counts.sum(axis=2, keepdims=True)


@pytest.mark.parametrize("class_prior", ["estimate", "uniform"])
@pytest.mark.parametrize("options", CROWDS, ids=str)
def test_the_posterior_equals_the_plain_loops(lopsided, options, class_prior):
    annotations, data, objective, truth = setting(lopsided, options, prior=class_prior)
    predicted = truth.argmax(axis=1)
    predicted[4] = 2  # gold
    confusion = slow_confusion(lopsided, annotations, predicted)
    prior = np.full(3, 0.3) + (
        0 if class_prior == "uniform" else np.bincount(predicted, minlength=3)
    )
    joint = np.tile(np.log(prior), (lopsided.n_tasks, 1))
    for task, worker, share, weight in lopsided.rows_of(annotations):
        joint[task] += weight * np.log(confusion[worker]) @ share
    expected = softmax(joint, axis=1)
    expected[4] = [0, 0, 1]
    batch = lopsided.double(data.whole())
    for found in (objective.e_step(batch), objective.posterior(batch).exp()):
        assert_allclose(lopsided.numbers(found), expected, rtol=1e-6)


@pytest.mark.parametrize("options", CROWDS, ids=str)
def test_the_loss_is_the_mean_over_tasks_with_labels(lopsided, options):
    annotations, data, objective, truth = setting(lopsided, options)
    target = np.random.default_rng(3).dirichlet(np.ones(3), lopsided.n_tasks)
    objective.target.copy_(torch.as_tensor(target))
    told = sorted({task for task, *_ in lopsided.rows_of(annotations)} | {4})
    expected = -np.mean([target[i] @ np.log(truth[i]) for i in told])
    batch = lopsided.double(data.whole())
    assert float(objective.loss(batch).detach()) == pytest.approx(expected)
    assert lopsided.gradients_are_right(objective, batch)


@pytest.mark.parametrize("options", CROWDS, ids=str)
def test_rounds_begin_with_shares_of_labels(lopsided, options):
    annotations, data, objective, _ = setting(lopsided, options)
    expected = annotations.shares()
    expected[4] = [0, 0, 1]
    found = objective.shares(lopsided.double(data.whole()))
    assert_allclose(lopsided.numbers(found), expected, rtol=1e-5)


@pytest.mark.parametrize("options", CROWDS, ids=str)
def test_held_out_labels_are_not_counted(lopsided, options):
    annotations, data, objective, truth = setting(lopsided, options)
    inside, outside = data.held_out(0.3, np.random.RandomState(0))
    kept = {tuple(row) for row in zip(inside.task.tolist(), range(100), strict=False)}
    assert len(kept) == 28
    out = np.zeros(40, dtype=bool)
    out[np.random.RandomState(0).permutation(40)[:12]] = True
    predicted = truth.argmax(axis=1)
    predicted[4] = 2
    left_out = set(np.flatnonzero(out).tolist())
    confusion = slow_confusion(lopsided, annotations, predicted, left_out)
    allowed = truth.copy()
    allowed[4, :2] = 0.0
    value, total = 0.0, 0.0
    for row, (task, worker, share, weight) in enumerate(lopsided.rows_of(annotations)):
        if row in left_out:
            each = np.exp(np.log(confusion[worker]) @ share)  # (truth,)
            value -= weight * np.log(allowed[task] @ each)
            total += weight
    learned = BootstrapLoss(objective.net, inside, Bootstrap(class_prior="estimate", smoothing=0.3))
    found = learned.held_out(lopsided.double(outside.whole()))
    assert float(found.detach()) == pytest.approx(value / total)


def test_losses_of_parts_add_up(lopsided, monkeypatch):
    """Whether a batch is of all tasks or of some: with gold and without a label, too."""
    _, data, objective, truth = setting(lopsided, {"weighted": True})
    objective.target.copy_(torch.rand(objective.target.shape, dtype=torch.float64))
    data, n = data.double(), data.n_tasks
    some = torch.tensor([4, 0, 2, n - 1])
    silent = data._filter(data.task.numpy() != 4)  # gold, but no label
    monkeypatch.setattr(batches, "WORTH", 0)

    def loss(batch):
        return float(objective.loss(batch).detach())

    for whole, parts in [
        (silent.whole(), silent._cut(torch.arange(n), [0, 1, 5, n], leads=True)),
        (silent.of_tasks(some), silent._shares(some, "task")),
    ]:
        assert sum(map(loss, parts)) == pytest.approx(loss(whole))
    counts = sorted({4, *silent.task.tolist()})
    expected = -(objective.target.numpy() * np.log(truth))[counts].sum() / len(counts)
    assert loss(silent.whole()) == pytest.approx(expected)


def test_confusion_is_counted_by_the_last_predictions(lopsided):
    annotations = lopsided.votes(weighted=True)
    X = np.random.default_rng(1).normal(size=(lopsided.n_tasks, lopsided.n_in))
    training = Training(epochs=20, device="cpu")
    model = MBEM(smoothing=0.3, training=training, random_state=0).fit(X, annotations)
    predicted = model.predict_proba(X).argmax(axis=1)
    expected = slow_confusion(lopsided, annotations, predicted)
    assert_allclose(model.confusion_, expected, rtol=1e-5)
    stranger = model.predict_worker_proba(X, ["nobody"])[:, 0]
    assert_allclose(stranger, model.predict_proba(X) @ expected.mean(axis=0), rtol=1e-4)


def test_rounds_are_phases(lopsided):
    training = Training(epochs=7)

    def phases(**settings):
        data = lopsided.data_of(lopsided.votes())
        return MBEM(**settings)._member(data).phases(training.epochs)

    plain = phases(rounds=3)
    first, later = BootstrapLoss.shares, BootstrapLoss.e_step
    assert [(p.epochs, p.expect) for p in plain] == [(7, first), (7, later), (7, later)]
    own = phases(rounds=2, self_training=True)
    assert [p.expect for p in own] == [first, BootstrapLoss.guess, later, BootstrapLoss.guess]


def test_single_labels_tell_hammers_from_spammers(crowd):
    # One label a task: majority vote has nothing to count, the classifier does.
    confusion = one_coin_confusion([0.95] * 5 + [1 / 3] * 5, 3)
    votes = label_by_crowd(crowd.truth, confusion, 1, random_state=1)
    fitted = {
        (rounds, prior): MBEM(
            rounds=rounds, class_prior=prior, training=Training(epochs=150), random_state=0
        ).fit(crowd.X, votes)
        for rounds, prior in ((1, "uniform"), (3, "uniform"), (3, "estimate"))
    }
    score = {key: m.score(crowd.new_X, crowd.new_truth) for key, m in fitted.items()}
    assert score[3, "uniform"] > score[1, "uniform"]
    assert score[3, "estimate"] < 0.6  # it has gone to the largest class
    right = fitted[3, "uniform"].worker_accuracy_
    assert right[:5].min() > right[5:].max() + 0.2


def test_restarts_are_chosen_by_held_out_labels(crowd):
    training = Training(epochs=20, n_restarts=3, learning_rate=0.05, batch_size=100)
    settings = {"truth": MLP((8,), dropout=0.1), "training": training, "random_state": 0}
    model = MBEM(self_training=True, **settings).fit(crowd.X, crowd.votes)
    held = np.array(model.history_.held_out)
    assert held.shape == (80, 3)
    assert model.history_.best == held.min(axis=0).argmin()
    assert model.score(crowd.new_X, crowd.new_truth) > 0.8


def test_gold_is_learned_from(crowd):
    silent = crowd.votes.filter(crowd.votes.task < 20)
    training = Training(epochs=100)
    gold = dict(enumerate(crowd.truth.tolist()))
    with_gold = MBEM(training=training, random_state=0).fit(crowd.X, silent, gold=gold)
    without = MBEM(training=training, random_state=0).fit(crowd.X, silent)
    scores = [m.score(crowd.new_X, crowd.new_truth) for m in (without, with_gold)]
    assert scores[1] > scores[0] + 0.05


@pytest.mark.parametrize(
    "settings", [{"rounds": 0}, {"class_prior": "flat"}, {"smoothing": 0.0}], ids=str
)
def test_refuses_what_makes_no_sense(crowd, settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        MBEM(**settings).fit(crowd.X, crowd.votes)
