"""Max-MIG against plain loops, pair by pair."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy.special import softmax

from crowdwise.errors import ParameterError
from crowdwise.learn import Training
from crowdwise.learn.max_mig import InformationGain, InformationGainLoss, LabelEvidenceNet, MaxMIG
from crowdwise.learn.noise import count_log_confusion

PRIOR = np.array([0.5, 0.3, 0.2])
DIVERGENCES = ["kl", "pearson", "hellinger", "reverse_kl"]


@pytest.fixture
def net(lopsided):
    start = torch.randn(lopsided.n_workers, 3, 3, generator=torch.Generator().manual_seed(2))
    return lopsided.net_of(LabelEvidenceNet(start))


def objective_of(net, data, divergence, prior=PRIOR):
    return InformationGainLoss(net, data, torch.as_tensor(prior), divergence).double()


def slow_f(divergence):
    """f, its derivative, and its convex conjugate."""
    return {
        "kl": (lambda t: np.log(t) + 1, lambda u: np.exp(u - 1)),
        "pearson": (lambda t: 2 * (t - 1), lambda u: u * u / 4 + u),
        "hellinger": (lambda t: 1 - 1 / np.sqrt(t), lambda u: u / (1 - u)),
        "reverse_kl": (lambda t: -1 / t, lambda u: -1 - np.log(-u)),
    }[divergence]


def slow_sides(lopsided, net, annotations, x):
    """What the classifier and the aggregator say of each task, and which tasks have labels."""
    votes = np.tile(np.log(PRIOR), (lopsided.n_tasks, 1))
    raw, labeled = lopsided.numbers(net.noise.raw.weight), set()
    for task, worker, share, weight in lopsided.rows_of(annotations):
        votes[task] += weight * raw[worker] @ share
        labeled.add(task)
    truth = np.array([lopsided.truth_of(net, x[task]) for task in range(lopsided.n_tasks)])
    return truth, softmax(votes, axis=1), sorted(labeled)


@pytest.mark.parametrize("divergence", DIVERGENCES)
@pytest.mark.parametrize("options", [{}, {"soft": True}, {"weighted": True}], ids=str)
def test_the_gain_equals_the_plain_loops(lopsided, net, options, divergence):
    annotations = lopsided.votes(**options)
    data = lopsided.data_of(annotations)
    x = data.features.source.double().numpy()
    truth, crowd, labeled = slow_sides(lopsided, net, annotations, x)
    slope, conjugate = slow_f(divergence)
    same, other = [], []
    for i in labeled:
        for j in labeled:
            ratio = (truth[i] * crowd[j] / PRIOR).sum()
            (same if i == j else other).append(slope(ratio) if i == j else conjugate(slope(ratio)))
    loss = objective_of(net, data, divergence).loss(lopsided.double(data.whole()))
    assert_allclose(float(loss.detach()), np.mean(other) - np.mean(same))


def test_the_posterior_is_what_both_say(lopsided, net):
    annotations = lopsided.votes()
    data = lopsided.data_of(annotations)
    x = data.features.source.double().numpy()
    truth, crowd, _ = slow_sides(lopsided, net, annotations, x)
    both = truth * crowd / PRIOR
    found = objective_of(net, data, "kl").posterior(lopsided.double(data.whole())).exp()
    assert_allclose(lopsided.numbers(found), both / both.sum(axis=1, keepdims=True), rtol=1e-6)


def test_held_out_labels_are_judged_by_their_likelihood(lopsided, net):
    annotations = lopsided.votes(weighted=True)
    data = lopsided.data_of(annotations)
    x, value, total = data.features.source.double().numpy(), 0.0, 0.0
    tables = softmax(lopsided.numbers(net.noise.raw.weight), axis=2)
    for task, worker, share, weight in lopsided.rows_of(annotations):
        value += weight * share @ np.log(lopsided.truth_of(net, x[task]) @ tables[worker])
        total += weight
    held = objective_of(net, data, "kl").held_out(lopsided.double(data.whole()))
    assert_allclose(float(held.detach()), -value / total)


@pytest.mark.parametrize("divergence", DIVERGENCES)
def test_gradients_are_right(lopsided, net, divergence):
    data = lopsided.data_of(lopsided.votes())
    objective = objective_of(net, data, divergence)
    assert lopsided.gradients_are_right(objective, lopsided.double(data.whole()))


def test_weights_start_from_counts(lopsided):
    data = lopsided.data_of(lopsided.votes())
    raw = lopsided.numbers(MaxMIG(smoothing=0.4)._noise().build(data).raw.weight)
    assert_allclose(raw[:-1], lopsided.numbers(count_log_confusion(data, 0.4)))
    assert_allclose(raw[-1], raw[:-1].mean(axis=0), rtol=1e-5)


def test_gold_speaks_for_the_crowd(lopsided, net):
    annotations = lopsided.votes()
    gold = np.full(lopsided.n_tasks, -1)
    gold[[0, lopsided.n_tasks - 1]] = 2  # the last task has no labels
    data = lopsided.data_of(annotations, gold)
    x = data.features.source.double().numpy()
    truth, crowd, labeled = slow_sides(lopsided, net, annotations, x)
    crowd[gold == 2], labeled = [0, 0, 1], sorted({*labeled, lopsided.n_tasks - 1})
    ratio = (truth / PRIOR)[labeled] @ crowd[labeled].T
    apart = ratio[~np.eye(len(labeled), dtype=bool)]
    objective, batch = objective_of(net, data, "kl"), lopsided.double(data.whole())
    loss = objective.loss(batch)
    assert_allclose(float(loss.detach()), apart.mean() - (1 + np.log(np.diag(ratio))).mean())
    loss.backward()
    assert all(torch.isfinite(p.grad).all() for p in net.parameters())


@pytest.mark.parametrize(
    ("prior", "expected"),
    [("uniform", [1 / 3] * 3), ([2, 1, 1], [0.5, 0.25, 0.25]), ("labels", None)],
    ids=str,
)
def test_priors(lopsided, prior, expected):
    annotations = lopsided.votes()
    found = InformationGain(prior=prior)._class_prior(lopsided.data_of(annotations))
    told = annotations.shares()[annotations.redundancy > 0]
    assert len(told) < annotations.n_tasks
    assert_allclose(found, told.mean(axis=0) if expected is None else expected, rtol=1e-6)


def test_refuses_a_prior_of_the_wrong_size(lopsided):
    with pytest.raises(ParameterError, match="3 positive numbers"):
        InformationGain(prior=[0.5, 0.5])._class_prior(lopsided.data_of(lopsided.votes()))


@pytest.mark.parametrize("divergence", DIVERGENCES)
def test_every_divergence_learns(crowd, divergence):
    training = Training(learning_rate=0.03, batch_size=128, epochs=30)
    model = MaxMIG(divergence=divergence, training=training, random_state=0)
    model.fit(crowd.X, crowd.votes)
    assert model.score(crowd.new_X, crowd.new_truth) > 0.8
    assert (model.posterior_.argmax(axis=1) == crowd.truth).mean() > 0.95
