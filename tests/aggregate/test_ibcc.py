"""IBCC against plain loops, recovery, and real crowds."""

from math import lgamma, log

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import digamma
from sklearn.exceptions import ConvergenceWarning

from crowdwise import Annotations
from crowdwise.aggregate.ibcc import IBCC
from crowdwise.aggregate.majority_vote import MajorityVote
from crowdwise.errors import ParameterError
from crowdwise.simulate import confused_crowd

PAIR = np.array([[4.0, 1.0, 1.0], [1.0, 4.0, 1.0], [1.0, 1.0, 4.0]])
# Lopsided on purpose: a symmetric prior would hide swapped truth and label axes.
UNEVEN = np.array([[5.0, 0.5, 1.0], [2.0, 3.0, 0.7], [0.3, 1.5, 6.0]])


def mean_log(counts):
    return [digamma(c) - digamma(sum(counts)) for c in counts]


def log_density(means, counts):
    """E[log Dirichlet(p; counts)] where ``means`` are E[log p]."""
    value = lgamma(sum(counts))
    for mean, c in zip(means, counts, strict=True):
        value += (c - 1) * mean - lgamma(c)
    return value


def slow_fit(annotations, n_steps, smoothing=PAIR, class_smoothing=1.0, fixed=None, gold=None):
    """Mean field as loops; the bound is E[log p] - E[log q], term by term."""
    rows = list(zip(annotations.task, annotations.worker, annotations.label, strict=True))
    weight = np.ones(len(rows)) if annotations.weight is None else annotations.weight
    n_classes, objective = annotations.n_classes, []
    gold = np.full(annotations.n_tasks, -1) if gold is None else gold
    known = np.flatnonzero(gold >= 0)
    posterior = annotations.shares()
    posterior[known] = np.eye(n_classes)[gold[known]]
    for _ in range(n_steps):
        counts = np.tile(smoothing, (annotations.n_workers, 1, 1))
        for (i, w, label), value in zip(rows, weight, strict=True):
            counts[w, :, label] += value * posterior[i]
        classes = posterior.sum(axis=0) + class_smoothing
        log_prior = mean_log(classes) if fixed is None else np.log(fixed)
        log_confusion = np.array([[mean_log(row) for row in matrix] for matrix in counts])
        joint = np.tile(log_prior, (annotations.n_tasks, 1))
        for (i, w, label), value in zip(rows, weight, strict=True):
            joint[i] += value * log_confusion[w, :, label]
        for i in known:
            joint[i, np.arange(n_classes) != gold[i]] = -np.inf
        posterior = np.exp(joint - joint.max(axis=1, keepdims=True))
        posterior /= posterior.sum(axis=1, keepdims=True)
        bound = 0.0
        for share, value in zip(posterior.ravel(), joint.ravel(), strict=True):
            bound += share * (value - log(share)) if share > 0 else 0.0
        for matrix, logs in zip(counts, log_confusion, strict=True):
            for row, means, prior in zip(matrix, logs, smoothing, strict=True):
                bound += log_density(means, prior) - log_density(means, row)
        if fixed is None:
            bound += log_density(log_prior, np.full(n_classes, class_smoothing))
            bound -= log_density(log_prior, classes)
        objective.append(bound)
    return counts, posterior, classes / classes.sum(), objective


def same(model, expected):
    counts, posterior, prior, objective = expected
    assert_allclose(model.counts_, counts)
    assert_allclose(model.confusion_, counts / counts.sum(axis=2, keepdims=True))
    assert_allclose(model.posterior_, posterior, atol=1e-12)
    assert_allclose(model.objective_, objective)
    if model.class_prior == "estimate":
        assert_allclose(model.prior_, prior)


def test_equals_the_plain_loops(voters):
    model = IBCC(max_iter=3, tol=0.0).fit(voters.annotations)
    same(model, slow_fit(voters.annotations, 3))


def test_equals_the_plain_loops_with_weights_gold_and_uneven_priors(voters, weighted_voters):
    gold = np.where(np.arange(80) < 20, voters.truth[:80], -1)
    model = IBCC(smoothing=UNEVEN, class_smoothing=3.5, max_iter=4, tol=0.0)
    expected = slow_fit(weighted_voters, 4, UNEVEN, 3.5, gold=gold)
    same(model.fit(weighted_voters, gold=gold), expected)


@pytest.mark.parametrize("prior", ["uniform", [0.2, 0.5, 0.3]], ids=str)
def test_equals_the_plain_loops_with_a_fixed_prior(voters, prior):
    model = IBCC(class_prior=prior, max_iter=3, tol=0.0).fit(voters.annotations)
    fixed = np.full(3, 1 / 3) if prior == "uniform" else np.array(prior)
    same(model, slow_fit(voters.annotations, 3, fixed=fixed))
    assert_allclose(model.prior_, fixed)


def test_gold_informs_the_other_tasks(voters):
    gold = np.where(np.arange(300) < 150, voters.truth, -1)
    without, informed = (IBCC().fit(voters.annotations, gold=g) for g in (None, gold))
    assert_array_equal(informed.posterior_[:150].argmax(axis=1), voters.truth[:150])
    assert np.abs(informed.posterior_ - without.posterior_)[150:].max() > 0.05


def test_recovers_the_crowd_it_was_drawn_from(voters):
    crowd = confused_crowd(voters.confusion, 3000, 4, prior=[0.5, 0.3, 0.2], random_state=1)
    model = IBCC().fit(crowd.annotations)
    assert_allclose(model.confusion_, crowd.confusion, atol=0.06)
    assert_allclose(model.prior_, [0.5, 0.3, 0.2], atol=0.03)
    right = np.einsum("wkk,k->w", crowd.confusion, [0.5, 0.3, 0.2])
    assert_allclose(model.skills_, right, atol=0.05)


def test_learns_from_a_liar_where_majority_vote_cannot(voters):
    ours, theirs = (m.fit(voters.annotations).labels_ for m in (IBCC(), MajorityVote()))
    assert np.mean(ours == voters.truth) > np.mean(theirs == voters.truth) + 0.1


def test_a_worker_with_few_labels_stays_near_the_prior(voters):
    labels = voters.annotations.to_frame()
    labels.loc[len(labels)] = [0, 7, 0]
    model = IBCC().fit(labels)
    new = model.confusion_[-1]
    assert_allclose(new, PAIR / 6, atol=0.06)


def test_an_unknown_worker_counts_as_all_labels_pooled(voters):
    model = IBCC().fit(voters.annotations)
    strange = Annotations.from_dict({"new": {"somebody else": 1}}, classes=[0, 1, 2])
    pooled = model.counts_.mean(axis=0)
    log_row = digamma(pooled[:, 1]) - digamma(pooled.sum(axis=1)) + model.log_prior_
    expected = np.exp(log_row) / np.exp(log_row).sum()
    assert_allclose(model.predict_proba(strange).to_numpy()[0], expected)


def test_says_so_when_it_runs_out_of_steps(voters):
    with pytest.warns(ConvergenceWarning, match=r"IBCC stopped after max_iter=2 .* Raise"):
        IBCC(max_iter=2).fit(voters.annotations)


def test_a_looser_tolerance_stops_sooner(voters):
    loose, tight = (IBCC(tol=tol).fit(voters.annotations).n_iter_ for tol in (1e-2, 1e-8))
    assert loose < tight


@pytest.mark.parametrize(
    "parameters", [{"smoothing": 0.0}, {"class_smoothing": 0.0}, {"class_prior": "even"}]
)
def test_refuses_other_values(parameters):
    with pytest.raises(ValueError, match=f"'{next(iter(parameters))}' parameter of IBCC"):
        IBCC(**parameters).fit([[0, 1], [1, 1]])


def test_refuses_a_prior_of_another_shape():
    with pytest.raises(ParameterError, match="smoothing has shape"):
        IBCC(smoothing=[1.0, 2.0, 3.0]).fit([[0, 1], [1, 1]])


@pytest.mark.parametrize(
    ("name", "target"), [("bluebirds", 0.8889), ("wordsim", 0.9333), ("rte", 0.9275), ("mgc", 0.79)]
)
def test_real_crowds(real_accuracy, name, target):
    assert real_accuracy(IBCC(), name) == pytest.approx(target, abs=0.005)
