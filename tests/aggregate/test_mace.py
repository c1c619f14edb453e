"""MACE against plain loops, recovery, and real crowds."""

from math import exp, lgamma, log

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import digamma
from sklearn.exceptions import ConvergenceWarning

from crowdwise import Annotations
from crowdwise.aggregate.mace import MACE
from crowdwise.errors import ParameterError
from crowdwise.simulate import confused_crowd


def mean_log(counts):
    return np.array([digamma(c) - digamma(sum(counts)) for c in counts])


def penalty(counts, prior):
    """E[log q] - E[log p] of one Dirichlet."""
    value = lgamma(sum(counts)) - lgamma(sum(prior))
    for mean, c, p in zip(mean_log(counts), counts, prior, strict=True):
        value += (c - p) * mean - lgamma(c) + lgamma(p)
    return value


def slow_pass(annotations, knows, spam, gold):
    """Expected counts and the bound of the labels, one annotation at a time.

    ``knows`` is (worker, 2) and ``spam`` (worker, label); neither needs to sum to one.
    """
    n_classes, bound = annotations.n_classes, 0.0
    known, made_up = np.zeros(annotations.n_workers), np.zeros_like(spam)
    posterior = np.zeros((annotations.n_tasks, n_classes))
    weight = np.ones(annotations.n_annotations)
    weight = weight if annotations.weight is None else annotations.weight
    for i in range(annotations.n_tasks):
        rows = range(annotations.indptr[i], annotations.indptr[i + 1])
        joint, knew = np.full(n_classes, 1 / n_classes), np.zeros((len(rows), n_classes))
        for k in range(n_classes):
            for r, row in enumerate(rows):
                w, label = annotations.worker[row], annotations.label[row]
                by_luck = knows[w, 1] * spam[w, label]
                by_skill = knows[w, 0] if label == k else 0.0
                joint[k] *= (by_luck + by_skill) ** weight[row]
                knew[r, k] = by_skill / (by_luck + by_skill)
            if gold is not None and gold[i] >= 0 and gold[i] != k:
                joint[k] = 0.0
        posterior[i] = joint / joint.sum()
        bound += log(joint.sum())
        for r, row in enumerate(rows):
            w, label = annotations.worker[row], annotations.label[row]
            share = weight[row] * (posterior[i] * knew[r]).sum()
            known[w] += share
            made_up[w, label] += weight[row] - share
    return known, made_up, posterior, bound


def slow_fit(annotations, n_steps, inference, priors=((0.5, 0.5), 10.0), smoothing=None, gold=None):
    """EM or VB from the first draw of seed 0."""
    rng, n_classes = np.random.RandomState(0), annotations.n_classes
    knows = rng.uniform(1, 2.5, (annotations.n_workers, 2))
    spam = rng.uniform(1, 2.5, (annotations.n_workers, n_classes))
    knows /= knows.sum(axis=1, keepdims=True)
    spam /= spam.sum(axis=1, keepdims=True)
    smoothing = 0.01 / n_classes if smoothing is None else smoothing
    beta, dirichlet = np.array(priors[0]), np.full(n_classes, priors[1])
    if inference == "em":
        beta, dirichlet = np.full(2, smoothing), np.full(n_classes, smoothing)
    known, made_up, _, _ = slow_pass(annotations, knows, spam, gold)
    objective = []
    for _ in range(n_steps):
        knowing = np.stack([known, made_up.sum(axis=1)], axis=1) + beta
        strategy = made_up + dirichlet
        fall = 0.0
        for w in range(annotations.n_workers):
            if inference == "em":
                knows[w], spam[w] = knowing[w] / sum(knowing[w]), strategy[w] / sum(strategy[w])
                fall -= smoothing * (np.log(knows[w]).sum() + np.log(spam[w]).sum())
            else:
                knows[w], spam[w] = np.exp(mean_log(knowing[w])), np.exp(mean_log(strategy[w]))
                fall += penalty(knowing[w], beta) + penalty(strategy[w], dirichlet)
        known, made_up, posterior, bound = slow_pass(annotations, knows, spam, gold)
        objective.append(bound - fall)
    return knowing, strategy, posterior, objective


def same(model, expected):
    knowing, strategy, posterior, objective = expected
    assert_allclose(model.knowing_counts_, knowing)
    assert_allclose(model.spam_counts_, strategy)
    assert_allclose(model.posterior_, posterior, atol=1e-12)
    assert_allclose(model.objective_, objective)
    assert_allclose(model.skills_, knowing[:, 0] / knowing.sum(axis=1))
    assert_allclose(model.spam_, strategy / strategy.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("inference", ["em", "vb"])
def test_equals_the_plain_loops(voters, inference):
    votes = voters.annotations[:100]
    model = MACE(inference=inference, n_restarts=1, max_iter=3, tol=0.0, random_state=0)
    same(model.fit(votes), slow_fit(votes, 3, inference))


@pytest.mark.parametrize("inference", ["em", "vb"])
def test_equals_the_plain_loops_with_weights_gold_and_other_priors(
    voters, weighted_voters, inference
):
    gold = np.where(np.arange(80) < 20, voters.truth[:80], -1)
    model = MACE(
        inference=inference,
        knowing_prior=(2.0, 0.7),
        spam_prior=1.5,
        smoothing=0.4,
        n_restarts=1,
        max_iter=3,
        tol=0.0,
        random_state=0,
    )
    expected = slow_fit(weighted_voters, 3, inference, ((2.0, 0.7), 1.5), 0.4, gold)
    same(model.fit(weighted_voters, gold=gold), expected)


@pytest.fixture(scope="module")
def spammed():
    """Workers who know 9 to 2 times in ten and otherwise have favorites."""
    knows = np.linspace(0.9, 0.2, 8)
    spam = np.random.default_rng(0).dirichlet([1.0, 2.0, 0.5], 8)
    confusion = knows[:, None, None] * np.eye(3) + (1 - knows)[:, None, None] * spam[:, None]
    return confused_crowd(confusion, 3000, 5, random_state=1), knows, spam


@pytest.mark.parametrize("inference", ["em", "vb"])
def test_recovers_the_crowd_it_was_drawn_from(spammed, inference):
    crowd, knows, spam = spammed
    model = MACE(inference=inference, random_state=0).fit(crowd.annotations)
    assert_allclose(model.skills_, knows, atol=0.06)
    assert_allclose(model.spam_[1:], spam[1:], atol=0.1)  # the first hardly ever spams
    assert_allclose(model.confusion_, crowd.confusion, atol=0.06)


def test_confusion_is_what_the_model_says(voters):
    model = MACE(random_state=0).fit(voters.annotations)
    for w in range(7):
        for truth in range(3):
            for label in range(3):
                chance = (1 - model.skills_[w]) * model.spam_[w, label]
                chance += model.skills_[w] if truth == label else 0.0
                assert model.confusion_[w, truth, label] == pytest.approx(chance)


def test_restarts_differ_and_the_best_is_kept(voters):
    votes = voters.annotations[:60]
    ends = []
    rng = np.random.RandomState(0)  # handed on, so that each fit draws anew
    for _ in range(5):
        one = MACE(n_restarts=1, max_iter=5, tol=0.0, random_state=rng)
        ends.append(one.fit(votes).objective_[-1])
    assert len(set(ends)) == 5
    five = MACE(n_restarts=5, max_iter=5, tol=0.0, random_state=0).fit(votes)
    assert five.objective_[-1] == max(ends)


def test_gold_informs_the_other_tasks(voters):
    gold = np.where(np.arange(300) < 150, voters.truth, -1)
    model = MACE(n_restarts=2, random_state=0)
    without = model.fit(voters.annotations).posterior_
    informed = model.fit(voters.annotations, gold=gold).posterior_
    assert_array_equal(informed[:150].argmax(axis=1), voters.truth[:150])
    assert np.abs(informed - without)[150:].max() > 0.05


def test_many_labels_do_not_underflow():
    labels = np.random.default_rng(0).integers(0, 2, (5, 3000))
    model = MACE(n_restarts=2, max_iter=20, tol=0.0, random_state=0).fit(labels)
    assert np.isfinite(model.posterior_).all()
    assert np.isfinite(model.objective_).all()


def test_an_unknown_worker_counts_as_all_labels_pooled(voters):
    model = MACE(random_state=0).fit(voters.annotations)
    strange = Annotations.from_dict({"new": {"somebody else": 1}}, classes=[0, 1, 2])
    knows = np.exp(mean_log(model.knowing_counts_.mean(axis=0)))
    spam = exp(mean_log(model.spam_counts_.mean(axis=0))[1])
    joint = np.full(3, knows[1] * spam) + knows[0] * np.eye(3)[1]
    assert_allclose(model.predict_proba(strange).to_numpy()[0], joint / joint.sum())


def test_says_so_when_the_best_start_runs_out_of_steps(voters):
    with pytest.warns(ConvergenceWarning, match=r"MACE stopped after max_iter=2 .* Raise") as said:
        MACE(max_iter=2, random_state=0).fit(voters.annotations)
    assert len(said) == 1


@pytest.mark.parametrize(
    "parameters",
    [{"inference": "mcmc"}, {"spam_prior": 0.0}, {"smoothing": 0.0}, {"n_restarts": 0}],
)
def test_refuses_other_values(parameters):
    with pytest.raises(ValueError, match=f"'{next(iter(parameters))}' parameter of MACE"):
        MACE(**parameters).fit([[0, 1], [1, 1]])


def test_refuses_a_knowing_prior_that_is_no_pair():
    with pytest.raises(ParameterError, match="expected: two positive numbers"):
        MACE(knowing_prior=(1.0, -1.0)).fit([[0, 1], [1, 1]])


@pytest.mark.parametrize(
    ("inference", "name", "target"),
    [
        ("em", "bluebirds", 0.8889),
        ("em", "wordsim", 0.9333),
        ("em", "rte", 0.9287),
        ("em", "mgc", 0.8014),
        ("vb", "bluebirds", 0.8611),
        ("vb", "wordsim", 0.9333),
        ("vb", "rte", 0.9263),
        ("vb", "mgc", 0.8000),
    ],
)
def test_real_crowds(real_accuracy, inference, name, target):
    method = MACE(inference=inference, random_state=0)
    assert real_accuracy(method, name) == pytest.approx(target, abs=0.005)
