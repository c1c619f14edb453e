"""How workers are judged by the labels of others."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit, log_softmax, logit, softmax

from crowdwise import Annotations
from crowdwise.aggregate import IBCC
from crowdwise.inference import pooled_confusion
from crowdwise.plan import other_labels
from crowdwise.plan.other_labels import (
    POOLING,
    SHIFTS,
    SPREADS,
    STEPS,
    find_heat,
    judge_workers,
)
from crowdwise.simulate import confused_crowd, one_coin_confusion


def make(skills, n_tasks=200, per_task=4):
    matrices = one_coin_confusion(skills, 3)
    return confused_crowd(matrices, n_tasks=n_tasks, per_task=per_task, random_state=0).annotations


def test_judgments_equal_the_plain_loops():
    votes = make([0.9] * 4 + [0.5] * 3)
    posterior = np.asarray(IBCC().fit(votes).posterior_)
    judged = judge_workers(votes, posterior, np.zeros(200, dtype=bool))
    confusion = pooled_confusion(votes, posterior, POOLING)
    rows = list(zip(votes.task, votes.worker, votes.label, strict=True))
    own = np.array([np.log(confusion[worker, :, label]) for _, worker, label in rows])
    others = np.log(posterior[votes.task]) - own
    heat = find_heat(log_softmax(others, axis=1), own)
    truth = softmax(others / heat, axis=1)
    crowd, after = np.zeros((3, 3)), truth
    for _ in range(STEPS):
        crowd = np.eye(3) + 1 / 3
        for (_, _, label), row in zip(rows, after, strict=True):
            crowd[:, label] += row
        crowd /= crowd.sum(axis=1, keepdims=True)
        after = truth * crowd[:, votes.label].T
        after /= after.sum(axis=1, keepdims=True)
    assert_allclose(judged.crowd, crowd)
    likely = np.ones((7, len(SHIFTS)))
    share = truth.sum(axis=0) + 1 / 3
    for s, shift in enumerate(SHIFTS):
        matrix = np.zeros((3, 3))
        for k in range(3):
            matrix[k] = crowd[k] / (1 - crowd[k, k])
            matrix[k, k] = expit(logit(crowd[k, k]) + shift)
            matrix[k, np.arange(3) != k] *= 1 - matrix[k, k]
        assert_allclose(judged.shifted[s], matrix, atol=1e-9)
        assert_allclose(judged.right[s], share @ np.diag(matrix) / share.sum())
        for (_, worker, label), row in zip(rows, truth, strict=True):
            likely[worker, s] *= row @ matrix[:, label]
    evidence, beliefs = [], []
    for spread in SPREADS:
        prior = np.exp(-0.5 * (SHIFTS / spread) ** 2)
        prior /= prior.sum()
        evidence.append(np.prod((likely * prior).sum(axis=1)))
        belief = np.vstack([likely, np.ones(len(SHIFTS))]) * prior
        beliefs.append(belief / belief.sum(axis=1, keepdims=True))
    weight = np.array(evidence) / np.sum(evidence)
    assert_allclose(judged.belief, np.tensordot(weight, beliefs, axes=1), rtol=1e-5, atol=1e-9)
    assert_allclose(judged.skills, judged.belief[:7] @ judged.right)


def test_a_sample_of_tasks_judges_many_labels(monkeypatch):
    """Not of labels: every second label of tasks with two is always by the same workers."""
    votes = make([0.95, 0.6] * 3, n_tasks=3_000, per_task=2)
    posterior = np.asarray(IBCC().fit(votes).posterior_)
    known = np.zeros(3_000, dtype=bool)
    whole = judge_workers(votes, posterior, known).skills
    for name in ("MOST_LABELS", "MOST_JUDGED"):
        monkeypatch.setattr(other_labels, name, 3_500)
    part = judge_workers(votes, posterior, known).skills
    assert 0 < abs(whole - part).max() < 0.12
    pair = Annotations.from_matrix(np.zeros((100, 2), dtype=int))
    rows = other_labels.sample(pair, np.arange(200), 150)
    assert np.bincount(pair.worker[rows]).tolist() == [50, 50]


def test_draws_follow_the_belief():
    votes = make([0.95, 0.6, 0.6, 0.6], n_tasks=80)
    judged = judge_workers(votes, IBCC().fit(votes).posterior_, np.zeros(80, dtype=bool))
    rng = np.random.RandomState(0)
    drawn = judged.draw(np.repeat([0, 1, -1], 4_000), rng).reshape(3, 4_000, 3, 3)
    assert_allclose(drawn.mean(axis=1), judged.confusion(np.array([0, 1, -1])), atol=0.01)
    spread = drawn[:, :, 0, 0].std(axis=1)
    assert spread[2] > spread[1] > 0.01  # nothing is known of anyone


def test_uncertain_truths_do_not_make_workers_alike():
    """Agreement with the others is a poor witness where they are often wrong themselves."""
    skills = np.array([0.95] * 6 + [0.6] * 14)
    crowd = confused_crowd(one_coin_confusion(skills, 2), n_tasks=400, per_task=3, random_state=0)
    votes = crowd.annotations
    posterior = np.asarray(IBCC().fit(votes).posterior_)
    judged = judge_workers(votes, posterior, np.zeros(400, dtype=bool))
    assert_allclose(judged.skills[:6].mean(), 0.95, atol=0.05)
    assert_allclose(judged.skills[6:].mean(), 0.6, atol=0.06)


def test_a_label_without_company_says_nothing_of_its_worker():
    matrix = np.full((60, 3), -1)
    matrix[:30, :2] = np.arange(30)[:, None] % 2
    matrix[30:, 2] = 0
    votes = Annotations.from_matrix(matrix)
    posterior = np.asarray(IBCC().fit(votes).posterior_)
    judged = judge_workers(votes, posterior, np.zeros(60, dtype=bool))
    assert_allclose(judged.skills[2], judged.belief[-1] @ judged.right)
    known = np.arange(60) >= 30  # but where the truth is known it does
    posterior[known] = [0.0, 1.0]
    assert judge_workers(votes, posterior, known).skills[2] < 0.3


@pytest.mark.parametrize(("skills", "differ"), [([0.75] * 30, False), ([0.9, 0.5] * 15, True)])
def test_workers_differ_as_much_as_more_than_chance(skills, differ):
    votes = make(skills, n_tasks=150)
    posterior = np.asarray(IBCC().fit(votes).posterior_)
    judged = judge_workers(votes, posterior, np.zeros(150, dtype=bool))
    spread = np.std(judged.skills)
    assert spread > 0.06 if differ else spread < 0.03
    matrices = judged.confusion(np.array([-1, *range(30)]))
    assert_allclose(matrices.sum(axis=2), 1)
    assert_allclose(matrices[0], judged.crowd, atol=0.04)
    order = np.argsort(judged.skills)
    diagonal = np.einsum("wkk->wk", matrices[1:])[order]
    assert (np.diff(diagonal, axis=0) >= -1e-12).all()
