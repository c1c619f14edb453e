"""Batches drawn by class: the odds equal plain loops, and rare classes get their due."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression

from crowdwise.learn import MBEM, NetClassifier, SpeeLFC, Training
from crowdwise.nets.batches import class_odds


def plain_odds(lopsided, votes, gold, weight):
    """Mean class weight of each task's labels, task by task."""
    share = np.zeros((lopsided.n_tasks, 3))
    for task, _, label, w in lopsided.rows_of(votes):
        share[task] += w * label
    for task, row in enumerate(share):
        if gold[task] >= 0:
            share[task] = np.eye(3)[gold[task]]
        elif row.sum() > 0:
            share[task] = row / row.sum()
    if weight is None:
        weight = [1 / max(share[:, k].sum(), 1.0) for k in range(3)]
    return share @ np.array(weight)


@pytest.mark.parametrize("soft", [False, True], ids=["hard", "soft"])
@pytest.mark.parametrize("weight", [None, [1.0, 2.0, 5.0]], ids=str)
def test_odds_equal_the_plain_loops(lopsided, soft, weight):
    votes, gold = lopsided.votes(weighted=True, soft=soft), np.full(lopsided.n_tasks, -1)
    gold[3], gold[13] = 2, 1  # the latter has no labels
    data = lopsided.data_of(votes, gold)
    found = class_odds(data, "balanced" if weight is None else weight)
    assert_allclose(found.numpy(), plain_odds(lopsided, votes, gold, weight), rtol=1e-5)


@pytest.mark.parametrize("by", ["task", "annotation"])
@pytest.mark.parametrize("size", [None, 5], ids=str)
def test_batches_are_drawn_by_the_odds(lopsided, by, size):
    data = lopsided.data_of(lopsided.votes())
    odds = torch.arange(14.0) ** 2
    generator, seen = torch.Generator().manual_seed(0), torch.zeros(14)
    for _ in range(400):
        batches = list(data.batches(size, by, generator, odds))
        assert len(batches) == (1 if size is None else -(-(14 if by == "task" else 40) // 5))
        for batch in batches:
            seen += torch.bincount(batch.task, minlength=14)
    expected = odds if by == "task" else odds * torch.bincount(data.task, minlength=14)
    assert_allclose(seen / seen.sum(), expected / expected.sum(), atol=0.012)


def test_balanced_equals_a_weighted_regression(crowd):
    rng = np.random.default_rng(0)
    rows = np.concatenate([np.flatnonzero(crowd.truth == 0), np.flatnonzero(crowd.truth == 1)[:20]])
    X, y = crowd.X[rows] + rng.normal(scale=3.0, size=(len(rows), 10)), crowd.truth[rows]
    training = Training(class_weight="balanced", learning_rate=0.03, epochs=300, weight_decay=0.01)
    net = NetClassifier(training=training, random_state=0).fit(X, y)
    fair = LogisticRegression(class_weight="balanced").fit(X, y)
    unfair = LogisticRegression().fit(X, y)
    recall = [(m.predict(X)[y == 1] == 1).mean() for m in (net, fair, unfair)]
    assert recall[0] == pytest.approx(recall[1], abs=0.1)
    assert recall[0] > recall[2] + 0.2


@pytest.mark.parametrize("learner", [SpeeLFC, MBEM], ids=lambda kind: kind.__name__)
def test_learners_give_rare_classes_their_due(crowd, learner):
    rare = np.flatnonzero((crowd.truth != 2) | (np.arange(400) % 8 == 0))
    noisy = crowd.X[rare] + np.random.default_rng(0).normal(scale=2.0, size=(len(rare), 10))
    found = []
    for weight in (None, "balanced"):
        training = Training(epochs=60, class_weight=weight)
        model = learner(training=training, random_state=0).fit(noisy, crowd.votes[rare])
        found.append((model.predict(crowd.new_X)[crowd.new_truth == 2] == 2).mean())
    assert found[1] > found[0] + 0.05


def test_restarts_and_patience_work_with_it(crowd):
    training = Training(epochs=15, n_restarts=2, patience=5, class_weight=[1.0, 2.0, 4.0])
    model = SpeeLFC(training=training, random_state=0).fit(crowd.X, crowd.votes)
    assert np.isfinite(model.predict_proba(crowd.new_X)).all()


@pytest.mark.parametrize("weight", ["even", [1.0, 2.0], [1.0, 0.0, 1.0]], ids=str)
def test_refuses_other_weights(crowd, weight):
    with pytest.raises(ValueError, match="class_weight"):
        SpeeLFC(training=Training(class_weight=weight)).fit(crowd.X, crowd.votes)
