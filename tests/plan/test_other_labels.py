"""How workers are judged by the labels of others."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import betaln

from crowdwise import Annotations
from crowdwise.aggregate import IBCC
from crowdwise.inference import pooled_confusion
from crowdwise.plan.other_labels import POOLING, STRENGTHS, judge_workers
from crowdwise.simulate import confused_crowd, one_coin_confusion


def make(skills, n_tasks=200, per_task=4):
    matrices = one_coin_confusion(skills, 3)
    return confused_crowd(matrices, n_tasks=n_tasks, per_task=per_task, random_state=0).annotations


def test_judgments_equal_the_plain_loops():
    votes = make([0.9] * 4 + [0.5] * 3)
    posterior = np.asarray(IBCC().fit(votes).posterior_)
    confusion = pooled_confusion(votes, posterior, POOLING)
    right, total = np.zeros(7), np.zeros(7)
    counts = np.eye(3) + 1 / 3
    for task, worker, label in zip(votes.task, votes.worker, votes.label, strict=True):
        others = posterior[task] / confusion[worker, :, label]
        others /= others.sum()
        right[worker] += others[label]
        total[worker] += 1
        counts[:, label] += others
    judged = judge_workers(votes, posterior, np.zeros(200, dtype=bool))
    assert_allclose(judged.crowd, counts / counts.sum(axis=1, keepdims=True))
    assert_allclose(judged.usual, np.trace(counts) / counts.sum())
    likely = []
    for n in STRENGTHS:
        a, b = n * judged.usual, n * (1 - judged.usual)
        likely.append((betaln(a + right, b + total - right) - betaln(a, b)).sum())
    n = STRENGTHS[np.argmax(likely)]
    assert_allclose(judged.skills, (right + n * judged.usual) / (total + n))


def test_a_label_without_company_says_nothing_of_its_worker():
    matrix = np.full((60, 3), -1)
    matrix[:30, :2] = np.arange(30)[:, None] % 2
    matrix[30:, 2] = 0
    votes = Annotations.from_matrix(matrix)
    posterior = np.asarray(IBCC().fit(votes).posterior_)
    judged = judge_workers(votes, posterior, np.zeros(60, dtype=bool))
    assert_allclose(judged.skills[2], judged.usual)
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
    assert_allclose(matrices[0], judged.crowd, atol=0.02)
    order = np.argsort(judged.skills)
    diagonal = np.einsum("wkk->wk", matrices[1:])[order]
    assert (np.diff(diagonal, axis=0) >= -1e-12).all()
