"""One-coin Dawid-Skene against plain loops, recovery, and real crowds."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from crowdwise import Annotations
from crowdwise.aggregate import MajorityVote, OneCoin, ZenCrowd
from crowdwise.errors import ParameterError
from crowdwise.simulate import confused_crowd, one_coin_confusion


def slow_fit(annotations, n_steps, right=0.01, wrong=0.01, *, prior=None, gold=None):
    """EM as loops: too slow to ship, too plain to be wrong. ``prior=None`` estimates it."""
    rows = list(zip(annotations.task, annotations.worker, annotations.label, strict=True))
    weights = np.ones(len(rows)) if annotations.weight is None else annotations.weight
    n_classes, estimated, objective = annotations.n_classes, prior is None, []
    gold = np.full(annotations.n_tasks, -1) if gold is None else gold
    posterior = annotations.shares()
    posterior[gold >= 0] = np.eye(n_classes)[gold[gold >= 0]]
    for _ in range(n_steps):
        if estimated:
            prior = posterior.sum(axis=0) + (right + wrong) / 2
            prior = prior / prior.sum()
        hits = np.full(annotations.n_workers, float(right))
        total = np.full(annotations.n_workers, float(right + wrong))
        for (i, w, label), weight in zip(rows, weights, strict=True):
            hits[w] += weight * posterior[i, label]
            total[w] += weight
        accuracy = hits / total
        joint = np.tile(prior, (annotations.n_tasks, 1))
        for (i, w, label), weight in zip(rows, weights, strict=True):
            for k in range(n_classes):
                chance = accuracy[w] if k == label else (1 - accuracy[w]) / (n_classes - 1)
                joint[i, k] *= chance**weight
        joint[gold >= 0] *= np.eye(n_classes)[gold[gold >= 0]]
        evidence = joint.sum(axis=1, keepdims=True)
        posterior = joint / evidence
        penalty = right * np.log(accuracy).sum() + wrong * np.log(1 - accuracy).sum()
        if estimated:
            penalty += (right + wrong) / 2 * np.log(prior).sum()
        objective.append(np.log(evidence).sum() + penalty)
    return prior, accuracy, posterior, objective


def same(model, expected):
    prior, accuracy, posterior, objective = expected
    assert_allclose(model.prior_, prior)
    assert_allclose(model.accuracy_, accuracy)
    assert_allclose(model.confusion_, one_coin_confusion(accuracy, len(prior)))
    assert_allclose(model.skills_, accuracy)
    assert_allclose(model.posterior_, posterior, atol=1e-12)
    assert_allclose(model.objective_, objective)


@pytest.mark.parametrize("prior", ["uniform", "estimate", [0.2, 0.5, 0.3]], ids=str)
def test_equals_the_plain_loops(voters, prior):
    model = OneCoin(class_prior=prior, max_iter=3, tol=0.0).fit(voters.annotations)
    fixed = {"uniform": np.full(3, 1 / 3), "estimate": None}.get(
        str(prior), np.array([0.2, 0.5, 0.3])
    )
    same(model, slow_fit(voters.annotations, 3, prior=fixed))


@pytest.mark.parametrize("prior", ["uniform", "estimate"])
def test_a_pair_of_pseudo_counts_is_a_beta_prior(voters, prior):
    model = OneCoin(smoothing=(4.0, 1.5), class_prior=prior, max_iter=3, tol=0.0)
    fixed = np.full(3, 1 / 3) if prior == "uniform" else None
    same(model.fit(voters.annotations), slow_fit(voters.annotations, 3, 4.0, 1.5, prior=fixed))


def test_equals_the_plain_loops_with_weights_and_gold(weighted_voters, voters):
    gold = np.where(np.arange(80) < 30, voters.truth[:80], -1)
    model = OneCoin(max_iter=4, tol=0.0).fit(weighted_voters, gold=gold)
    expected = slow_fit(weighted_voters, 4, prior=np.full(3, 1 / 3), gold=gold)
    same(model, expected)


def test_recovers_the_crowd_it_was_drawn_from():
    accuracy = np.linspace(0.35, 0.95, 12)
    crowd = confused_crowd(
        one_coin_confusion(accuracy, 4), 2000, 6, prior=[0.4, 0.3, 0.2, 0.1], random_state=0
    )
    model = OneCoin(class_prior="estimate").fit(crowd.annotations)
    assert_allclose(model.accuracy_, accuracy, atol=0.04)
    assert_allclose(model.prior_, [0.4, 0.3, 0.2, 0.1], atol=0.03)
    majority = MajorityVote().fit_predict(crowd.annotations)
    assert np.mean(model.labels_ == crowd.truth) > np.mean(majority == crowd.truth) + 0.02


def test_gold_labels_teach_about_workers(voters):
    right = np.einsum("wkk,k->w", voters.confusion, [0.5, 0.3, 0.2])
    gold = {task: voters.truth[task] for task in range(200)}
    taught, plain = (OneCoin().fit(voters.annotations, g) for g in (gold, None))
    errors = [np.abs(m.accuracy_ - right).mean() for m in (taught, plain)]
    assert errors[0] < errors[1]
    assert_array_equal(taught.labels_[:200], voters.truth[:200])


def test_one_class_is_no_trouble():
    model = OneCoin(class_prior="estimate").fit([[1, 1], [1, 1]])
    assert_allclose(model.posterior_, 1.0)


@pytest.mark.parametrize("method", [OneCoin, ZenCrowd])
def test_huge_weights_make_nobody_certain(method):
    votes = Annotations.from_matrix([[0, 0, 1], [1, 1, 0], [0, 0, 1]])
    model = method().fit(replace(votes, weight=np.full(9, 1e30)))
    assert ((model.accuracy_ > 0) & (model.accuracy_ < 1)).all()
    assert np.isfinite(model.objective_).all()


def test_says_when_it_runs_out_of_steps(voters):
    with pytest.warns(ConvergenceWarning, match=r"max_iter=2 .* Raise max_iter"):
        OneCoin(max_iter=2).fit(voters.annotations)


@pytest.mark.parametrize("smoothing", [(1.0, 0.0), (1.0, 2.0, 3.0)], ids=str)
def test_refuses_pseudo_counts_that_are_not_a_pair_of_positive_numbers(smoothing):
    with pytest.raises(ParameterError, match=r"a pair \(right, wrong\)"):
        OneCoin(smoothing=smoothing).fit([[0, 1], [1, 1]])


@pytest.mark.parametrize(
    ("name", "prior", "accuracy"),
    [
        ("bluebirds", "estimate", 0.5833),  # all of it in one class
        ("bluebirds", "uniform", 0.7222),
        ("wordsim", "estimate", 0.9333),
        ("rte", "estimate", 0.9250),
        ("mgc", "estimate", 0.7929),
    ],
)
def test_reaches_the_reference_accuracy_on_real_crowds(real_accuracy, name, prior, accuracy):
    assert real_accuracy(OneCoin(class_prior=prior), name) == pytest.approx(accuracy, abs=0.005)
