"""Clustered personal classifiers: against a smoothed problem, clusters, and the guard."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

from crowdwise.errors import ParameterError
from crowdwise.learn import ClusteredPersonalClassifier
from crowdwise.learn.clustered_personal_classifier import ClassifierPairs, balance_step, shrink
from crowdwise.simulate import label_by_crowd

SETTINGS = {"fusion": 6.0, "ridge": 0.5, "scale": False}


def slow_loss(lopsided, X, annotations, gold, weights, smooth):
    """The penalized loss, one label and one pair at a time; lengths rounded off by a little."""
    design = torch.as_tensor(np.hstack([X, np.ones((len(X), 1))]))
    value = 0.5 * SETTINGS["ridge"] * (weights[0] ** 2).sum()
    for a in range(len(weights)):
        for b in range(a + 1, len(weights)):
            length = torch.sqrt(((weights[a] - weights[b]) ** 2).sum() + smooth**2)
            value = value + SETTINGS["fusion"] / lopsided.n_workers * length
    for task, worker, share, weight in lopsided.rows_of(annotations):
        logits = torch.log_softmax(design[task] @ weights[1 + worker], dim=0)
        value = value - weight * (torch.as_tensor(share) * logits).sum()
    for i in np.flatnonzero(gold >= 0):
        value = value - torch.log_softmax(design[i] @ weights[0], dim=0)[gold[i]]
    return value


@pytest.mark.parametrize("options", [{}, {"weighted": True}], ids=str)
def test_reaches_the_least_plain_loss(lopsided, options):
    annotations = lopsided.votes(**options)
    X = np.random.default_rng(1).normal(size=(lopsided.n_tasks, lopsided.n_in))
    X = X.astype(np.float32).astype(float)
    gold = np.where(np.arange(lopsided.n_tasks) % 6 == 5, 2, -1)
    model = ClusteredPersonalClassifier(**SETTINGS, max_iter=250, tol=0)
    model.fit(X, annotations, gold=gold)
    found = torch.as_tensor(np.concatenate([model.weights_[None], model.worker_weights_]))
    ours = float(slow_loss(lopsided, X, annotations, gold, found, 0.0))
    assert -model.objective_[-1] == pytest.approx(ours)
    weights = found.clone().requires_grad_()
    solver = torch.optim.LBFGS([weights], max_iter=25, line_search_fn="strong_wolfe")

    def closure():
        solver.zero_grad()
        loss = slow_loss(lopsided, X, annotations, gold, weights, 1e-4)
        loss.backward()
        return loss

    with torch.no_grad():
        weights.add_(0.1 * torch.randn(weights.shape, generator=torch.manual_seed(0)))
    solver.step(closure)
    least = float(slow_loss(lopsided, X, annotations, gold, weights, 0.0).detach())
    assert ours < least + 1e-3


def test_like_workers_share_a_classifier(crowd):
    # Four who see the truth, and two who name the next class.
    right, shifted = 0.9 * np.eye(3) + 0.1 / 3, 0.9 * np.roll(np.eye(3), 1, axis=1) + 0.1 / 3
    votes = label_by_crowd(
        crowd.truth, [right, shifted, right, right, shifted, right], 4, random_state=0
    )
    model = ClusteredPersonalClassifier(fusion=80.0).fit(crowd.X, votes)
    cluster = model.clusters_.to_numpy()
    assert len(set(cluster[[0, 2, 3, 5]])) == 1
    assert cluster[1] == cluster[4] != cluster[0]
    assert cluster[0] == 0  # the shared classifier sides with the majority
    assert model.score(crowd.new_X, crowd.new_truth) > 0.8
    apart = np.abs(model.worker_weights_[0] - model.worker_weights_[2]).max()
    assert apart < 0.05 < np.abs(model.worker_weights_[0] - model.worker_weights_[1]).max()


def test_more_fusion_makes_fewer_clusters(crowd):
    n_clusters = [
        ClusteredPersonalClassifier(fusion=f, ridge=10.0, tol=1e-3)
        .fit(crowd.X, crowd.votes)
        .clusters_.nunique()
        for f in (1.0, 20.0, 5000.0)
    ]
    assert n_clusters[0] == 12
    assert n_clusters[0] > n_clusters[1] > n_clusters[2] == 1


@pytest.mark.parametrize("step", [0.01, 100.0])
def test_the_step_changes_only_the_way(crowd, step):
    usual, other = (
        ClusteredPersonalClassifier(step=s, max_iter=100, tol=0).fit(crowd.X, crowd.votes)
        for s in (1.0, step)
    )
    assert other.objective_[-1] == pytest.approx(usual.objective_[-1], rel=2e-3)


def test_pairs_are_sums_and_differences():
    pairs, weights = ClassifierPairs.of(4), np.random.default_rng(0).normal(size=(4, 2, 3))
    order = [(a, b) for a in range(4) for b in range(a + 1, 4)]
    expected = [weights[a] - weights[b] for a, b in order]
    assert_allclose(pairs.differences(weights), expected)
    value, total = np.random.default_rng(1).normal(size=(6, 2, 3)), np.zeros((4, 2, 3))
    for (a, b), one in zip(order, value, strict=True):
        total[a] += one
        total[b] -= one
    assert_allclose(pairs.gather(value), total)
    equal = np.array([pair in {(0, 2), (1, 3)} for pair in order])
    assert pairs.clusters(equal).tolist() == [0, 1, 0, 1]


def test_short_matrices_shrink_to_nothing():
    value = np.array([[[3.0, 4.0]], [[0.3, 0.4]], [[0.0, 0.0]]])
    assert_allclose(shrink(value, 1.0), [[[2.4, 3.2]], [[0.0, 0.0]], [[0.0, 0.0]]])


def test_the_step_is_balanced():
    assert balance_step(1.0, np.array([30.0, 40.0]), np.array([1.0])) == 2.0
    assert balance_step(1.0, np.array([1.0]), np.array([30.0, 40.0])) == 0.5
    assert balance_step(1.0, np.array([1.0]), np.array([2.0])) == 1.0


def test_refuses_more_memory_than_allowed(crowd):
    model = ClusteredPersonalClassifier(max_memory=1e-5)
    with pytest.raises(ParameterError, match=r"78 pairs of workers with 33 weights(.|\n)*GB"):
        model.fit(crowd.X, crowd.votes)


def test_says_when_it_ran_out_of_rounds(crowd):
    with pytest.warns(ConvergenceWarning, match="ADMM stopped after max_iter=2"):
        ClusteredPersonalClassifier(max_iter=2, tol=1e-9).fit(crowd.X, crowd.votes)


@pytest.mark.parametrize(
    "settings", [{"fusion": -1.0}, {"step": 0.0}, {"max_memory": 0.0}], ids=str
)
def test_refuses_what_makes_no_sense(crowd, settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        ClusteredPersonalClassifier(**settings).fit(crowd.X, crowd.votes)
