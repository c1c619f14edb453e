"""Confidences against plain loops over labels, and beliefs that features renew."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from crowdwise import Annotations
from crowdwise.aggregate import DawidSkene, MajorityVote
from crowdwise.embed import MLE, Assurance, Bayesian, Certain
from crowdwise.embed.confidence import Belief, refresh
from crowdwise.errors import ParameterError

# Lopsided on purpose: unequal numbers of labels, a tie, a task without any.
LABELS = [
    [1, 1, 1, 0, 0],
    [1, 1, 1, 1, 1],
    [0, 0, 1, -1, -1],
    [0, -1, -1, -1, -1],
    [1, 0, -1, -1, -1],
    [-1, -1, -1, -1, -1],
    [1, 1, 1, 1, 0],
]


def belief_of(labels, n_classes, gold=None):
    votes = Annotations.from_matrix(labels, classes=np.arange(n_classes))
    shares = votes.shares()
    return Belief.of(votes, shares, shares.argmax(axis=1), gold)


@pytest.fixture
def belief():
    return belief_of(LABELS, 2)


def slow(labels, kind, prior, positive=None):
    """A task at a time, from its list of labels."""
    found = []
    for row in labels:
        given = [label for label in row if label >= 0]
        if not given:
            found.append(0.0)
            continue
        counts = [given.count(k) for k in range(len(prior))]
        own = counts.index(max(counts)) if positive is None else positive
        d = len(given)
        found.append(
            {
                "none": 1.0,
                "mle": counts[own] / d,
                "bayesian": (counts[own] + prior[own]) / (d + sum(prior)),
                "assurance": (len(prior) * max(counts) / d - 1) / (len(prior) - 1),
            }[kind]
        )
    return found


def part(kind, prior, **more):
    kinds = {"none": Certain, "mle": MLE, "assurance": Assurance}
    return Bayesian(prior, **more) if kind == "bayesian" else kinds[kind](**more)


@pytest.mark.parametrize("kind", ["none", "mle", "bayesian", "assurance"])
def test_equal_to_plain_loops(belief, kind):
    prior = np.array([2.0, 3.0])
    assert_allclose(part(kind, prior).of(belief, [0, 1]), slow(LABELS, kind, prior))


@pytest.mark.parametrize("kind", ["mle", "bayesian"])
def test_the_papers_equations_are_about_the_positive_class(belief, kind):
    prior = np.array([2.0, 3.0])
    found = part(kind, prior, in_class="yes").of(belief, ["no", "yes"])
    assert_allclose(found, slow(LABELS, kind, prior, positive=1))
    with pytest.raises(ParameterError, match="no class 'maybe'"):
        part(kind, prior, in_class="maybe").of(belief, ["no", "yes"])


@pytest.mark.parametrize("kind", ["mle", "bayesian", "assurance"])
def test_three_classes(kind):
    labels = [[0, 1, 2, 2, 2], [0, 0, 0, 1, -1], [1, 1, -1, -1, -1], [2, 0, 1, -1, -1]]
    prior = np.array([1.0, 2.0, 4.0])
    found = part(kind, prior).of(belief_of(labels, 3), [0, 1, 2])
    assert_allclose(found, slow(labels, kind, prior), atol=1e-12)


def test_assurance_of_two_classes_is_the_papers():
    for positive, d in ((5, 5), (3, 5), (2, 7), (2, 4)):
        belief = belief_of([[1] * positive + [0] * (d - positive)], 2)
        found = Assurance().of(belief, [0, 1])
        assert_allclose(found, abs(1 - 2 * positive / d), atol=1e-12)


def test_the_prior_is_divided_by_class(belief):
    assert_array_equal(belief.label, [1, 1, 0, 0, 0, -1, 1])
    assert_allclose(belief.class_sizes, [3, 3])
    assert_allclose(Bayesian(4.0).pseudo_labels(belief), [2.0, 2.0])
    assert_allclose(Bayesian().of(belief, [0, 1]), slow(LABELS, "bayesian", [2.5, 2.5]))
    assert_allclose(Bayesian((2.0, 3.0)).pseudo_labels(belief), [2.0, 3.0])
    for prior in ((3.0,), (1.0, 2.0, 3.0), (3.0, -1.0)):
        with pytest.raises(ParameterError, match="for 2 classes"):
            Bayesian(prior).of(belief, [0, 1])


def test_gold_is_certain():
    gold = np.array([0, -1, -1, 1, -1, 1, -1])
    belief = belief_of(LABELS, 2, gold)
    assert_array_equal(belief.label, [0, 1, 0, 1, 0, 1, 1])
    for confidence in (MLE(), Bayesian(), Assurance(), Certain()):
        assert_allclose(confidence.of(belief, [0, 1])[[0, 3, 5]], 1.0)
    for confidence in (MLE(in_class=1), Bayesian(in_class=1)):
        assert_allclose(confidence.of(belief, [0, 1])[[0, 3, 5]], [0.0, 1.0, 1.0])


def test_a_refresh_is_an_e_step_with_the_representation_as_prior(crowd):
    votes = crowd.votes.filter(crowd.votes.task > 4)  # five tasks without labels
    first = DawidSkene().fit(votes)
    belief = Belief.of(votes, first.posterior_, first.posterior_.argmax(axis=1), None)
    found = refresh(belief, crowd.X, votes)
    labeled = np.flatnonzero(votes.redundancy)
    rows = np.concatenate([labeled, labeled])
    weight = np.concatenate([first.posterior_[labeled, 0], first.posterior_[labeled, 1]])
    label = np.repeat([0, 1], len(labeled))
    kept = weight > 0
    model = LogisticRegression(max_iter=200)
    model.fit(crowd.X[rows[kept]], label[kept], sample_weight=weight[kept])
    counts = np.zeros((votes.n_workers, 2, 2))
    for task, worker, given in zip(votes.task, votes.worker, votes.label, strict=True):
        counts[worker, :, given] += first.posterior_[task]
    crowd_counts = counts.sum(axis=0) + 0.5
    counts += crowd_counts / crowd_counts.sum(axis=1, keepdims=True)
    confusion = counts / counts.sum(axis=2, keepdims=True)
    log_joint = np.log(model.predict_proba(crowd.X))
    for task, worker, given in zip(votes.task, votes.worker, votes.label, strict=True):
        log_joint[task] += np.log(confusion[worker, :, given])
    assert_allclose(found.share, softmax(log_joint, axis=1), atol=1e-3)
    assert (found.label >= 0).all()
    assert (belief.label[:5] == -1).all()
    right = (found.label[:5] == crowd.truth[:5]).mean()
    assert right >= 0.6


def test_a_belief_in_one_class_is_left_alone():
    share = np.array([[1.0, 0.0]] * 3)
    belief = Belief(np.zeros(3, dtype=int), share, np.ones(3), np.full(3, -1))
    votes = Annotations.from_matrix([[0], [0], [0]], classes=[0, 1])
    assert refresh(belief, np.eye(3), votes) is belief


def test_an_aggregator_that_abstains_leaves_a_task_out():
    votes = Annotations.from_matrix([[0, 1], [1, 1]])
    chosen = MajorityVote(ties="abstain").fit(votes)
    label = np.where(chosen.labels_.isna(), -1, 1)
    belief = Belief.of(votes, chosen.posterior_, label, None)
    assert_array_equal(belief.labeled, [1])
