"""ZenCrowd against plain loops, its start, and real crowds."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from crowdwise.aggregate import MajorityVote, ZenCrowd


def slow_fit(annotations, n_steps, start, right=0.01, wrong=0.01, gold=None):
    """The E-step first; the reliabilities returned are those of the last E-step."""
    rows = list(zip(annotations.task, annotations.worker, annotations.label, strict=True))
    weights = np.ones(len(rows)) if annotations.weight is None else annotations.weight
    n_classes, posterior, objective = annotations.n_classes, None, []
    for _ in range(n_steps):
        if posterior is None:
            accuracy = np.full(annotations.n_workers, start)
        else:
            hits, total = np.full((2, annotations.n_workers), right)
            total = total + wrong
            for (i, w, label), weight in zip(rows, weights, strict=True):
                hits[w] += weight * posterior[i, label]
                total[w] += weight
            accuracy = hits / total
        joint = np.full((annotations.n_tasks, n_classes), 1 / n_classes)
        for (i, w, label), weight in zip(rows, weights, strict=True):
            for k in range(n_classes):
                chance = accuracy[w] if k == label else (1 - accuracy[w]) / (n_classes - 1)
                joint[i, k] *= chance**weight
        if gold is not None:
            joint[gold >= 0] *= np.eye(n_classes)[gold[gold >= 0]]
        evidence = joint.sum(axis=1, keepdims=True)
        posterior = joint / evidence
        penalty = right * np.log(accuracy).sum() + wrong * np.log(1 - accuracy).sum()
        objective.append(np.log(evidence).sum() + penalty)
    return accuracy, posterior, objective


def same(model, expected):
    accuracy, posterior, objective = expected
    assert_allclose(model.accuracy_, accuracy)
    assert_allclose(model.skills_, accuracy)
    assert_allclose(model.posterior_, posterior, atol=1e-12)
    assert_allclose(model.objective_, objective)


@pytest.mark.parametrize(("start", "n_steps"), [(0.8, 1), (0.8, 4), (0.55, 3)])
def test_equals_the_plain_loops(voters, start, n_steps):
    model = ZenCrowd(start=start, max_iter=n_steps).fit(voters.annotations)
    same(model, slow_fit(voters.annotations, n_steps, start))
    assert model.n_iter_ == n_steps


def test_equals_the_plain_loops_with_weights_gold_and_a_beta_prior(weighted_voters, voters):
    gold = np.where(np.arange(80) < 30, voters.truth[:80], -1)
    model = ZenCrowd(smoothing=(3.0, 0.5), max_iter=3).fit(weighted_voters, gold=gold)
    same(model, slow_fit(weighted_voters, 3, 0.8, 3.0, 0.5, gold))


def test_takes_twenty_steps_unless_a_tolerance_ends_them(voters):
    assert ZenCrowd().fit(voters.annotations).n_iter_ == 20
    assert ZenCrowd(tol=1e-3, max_iter=100).fit(voters.annotations).n_iter_ < 20


def test_is_right_more_often_than_majority_vote(voters):
    ours, theirs = (
        np.mean(m.fit_predict(voters.annotations) == voters.truth)
        for m in (ZenCrowd(), MajorityVote())
    )
    assert ours > theirs + 0.02


@pytest.mark.parametrize("params", [{"start": 1.0}, {"smoothing": 0.0}, {"max_iter": 0}], ids=str)
def test_refuses_parameters_that_make_no_sense(params):
    with pytest.raises(ValueError, match=f"'{next(iter(params))}' parameter of ZenCrowd"):
        ZenCrowd(**params).fit([[0, 1], [1, 1]])


@pytest.mark.parametrize(
    ("name", "accuracy"),
    [("bluebirds", 0.7222), ("wordsim", 0.9333), ("rte", 0.9250), ("mgc", 0.7971)],
)
def test_reaches_the_reference_accuracy_on_real_crowds(real_accuracy, name, accuracy):
    assert real_accuracy(ZenCrowd(), name) == pytest.approx(accuracy, abs=0.005)


@pytest.mark.parametrize(("name", "accuracy"), [("product", 0.9280), ("sentiment_tweets", 0.9510)])
def test_reaches_the_published_accuracy(real_accuracy, name, accuracy):
    # Zheng et al. (2017), table 6.
    assert real_accuracy(ZenCrowd(), name) == pytest.approx(accuracy, abs=0.005)
