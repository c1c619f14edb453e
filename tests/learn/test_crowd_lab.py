"""CROWDLAB against plain loops and cleanlab's numbers, and its own classifier."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from crowdwise import Annotations
from crowdwise.errors import AnnotationError, ParameterError
from crowdwise.inference.crowdlab import (
    CrowdlabCounts,
    apply_temperature,
    fit_temperature,
    majority_label,
)
from crowdwise.learn import CrowdLab

NO = np.nan
LABELS = np.array(
    [
        [0, 0, NO, 1],
        [1, 1, 1, NO],
        [2, NO, 2, 2],
        [0, NO, 1, NO],
        [NO, 2, NO, NO],
        [1, 0, NO, 1],
        [NO, 0, 0, NO],
    ]
)
PROBA = np.array(
    [
        [0.7, 0.2, 0.1],
        [0.1, 0.8, 0.1],
        [0.3, 0.3, 0.4],
        [0.3, 0.6, 0.1],
        [0.2, 0.5, 0.3],
        [0.5, 0.4, 0.1],
        [0.6, 0.3, 0.1],
    ]
)


def test_equals_cleanlab_on_a_tiny_crowd():
    # cleanlab 2.9.0, get_label_quality_multiannotator(LABELS, PROBA, return_weights=True).
    model = CrowdLab().fit(None, LABELS, pred_probs=PROBA)
    assert model.labels_.tolist() == [0, 1, 2, 1, 1, 1, 0]
    assert_allclose(model.worker_quality_, [0.669537, 0.663353, 0.801672, 0.512235], atol=1e-6)
    assert model.model_weight_ == pytest.approx(1.0389249632986395)
    assert_allclose(model.worker_weight_, [1 / 3, 1 / 7, 2 / 3, 1e-6])
    # Its get_active_learning_scores, with labels counted by class as its text says (2.9.0
    # itself counts a task's only class as the first one when labels are floats).
    scores = [0.75670398, 0.80121792, 0.53701397, 0.61316391, 0.51829317, 0.47966171, 0.68185081]
    assert_allclose(model.active_learning_scores(), scores, atol=1e-8)
    unlabeled = model.active_learning_scores(pred_probs=[[0.5, 0.3, 0.2]])
    assert_allclose(unlabeled, [0.54876043], atol=1e-8)


def random_crowd(seed, n_tasks=40, n_workers=6, n_classes=3, density=0.5):
    """Unequal classes, good and bad workers, and a classifier that knows something."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(n_classes, n_tasks, p=rng.dirichlet(np.full(n_classes, 3.0)))
    labels = np.full((n_tasks, n_workers), NO)
    for worker, skill in enumerate(rng.uniform(0.3, 0.95, n_workers)):
        seen = rng.random(n_tasks) < density
        right = rng.random(n_tasks) < skill
        guess = rng.integers(0, n_classes, n_tasks)
        labels[:, worker] = np.where(seen, np.where(right, truth, guess), NO)
    labels[np.isnan(labels).all(axis=1), 0] = 0
    proba = rng.dirichlet(np.ones(n_classes), n_tasks) * 0.6
    proba[np.arange(n_tasks), truth] += 0.4
    return labels, proba


def slow_majority(labels, proba):
    n_tasks, n_classes = proba.shape
    often = [int((labels == k).sum()) for k in range(n_classes)]
    votes = [[int((labels[i] == k).sum()) for k in range(n_classes)] for i in range(n_tasks)]
    best = [[k for k in range(n_classes) if v[k] == max(v)] for v in votes]
    clear = [i for i in range(n_tasks) if len(best[i]) == 1]
    standing = []
    for j in range(labels.shape[1]):
        mine = [i for i in clear if not np.isnan(labels[i, j])]
        standing.append(np.mean([labels[i, j] == best[i][0] for i in mine]) if mine else NO)
    standing = [np.nanmean(standing) if np.isnan(s) else s for s in standing]
    result = []
    for i in range(n_tasks):
        tied = [k for k in best[i] if proba[i, k] == max(proba[i, best[i]])]
        tied = [k for k in tied if often[k] == min(often[t] for t in tied)]
        support = {k: np.mean([standing[j] for j in np.flatnonzero(labels[i] == k)]) for k in tied}
        result.append(max(tied, key=lambda k: support[k]))
    return np.array(result)


def slow_weigh(labels, proba, consensus):
    """One pair of workers at a time."""
    (n_tasks, n_classes), n_workers = proba.shape, labels.shape[1]
    there = ~np.isnan(labels)
    size = there.sum(axis=1)
    several = [i for i in range(n_tasks) if size[i] > 1]
    named = [int(consensus[i]) for i in several]
    usual = max(range(n_classes), key=named.count)
    error = max(np.mean([k != usual for k in named]), 1e-6)
    agreement = []
    for j in range(n_workers):
        pairs = [
            labels[i, j] == labels[i, other]
            for i in range(n_tasks)
            for other in range(n_workers)
            if other != j and there[i, j] and there[i, other]
        ]
        agreement.append(np.mean(pairs) if pairs else NO)
    agreement = np.where(np.isnan(agreement), np.nanmean(agreement), agreement)
    worker = [max(1 - (1 - a) / error, 1e-6) for a in agreement]
    missed = np.mean([proba[i].argmax() != consensus[i] for i in several])
    model = max(1 - missed / error, 1e-6) * np.sqrt(size.mean())
    right = np.mean([np.mean(labels[i, there[i]] == consensus[i]) for i in several])
    posterior = model * proba
    total = np.full(n_tasks, model)
    for i in range(n_tasks):
        for j in np.flatnonzero(there[i]):
            total[i] += worker[j]
            for k in range(n_classes):
                share = right if labels[i, j] == k else (1 - right) / (n_classes - 1)
                posterior[i, k] += worker[j] * share
    return posterior / total[:, None], model, np.array(worker)


def slow_worker_quality(labels, posterior, consensus, model, worker):
    there = ~np.isnan(labels)
    size, found = there.sum(axis=1), []
    trust = model / (model + size.mean() * worker.mean())
    for j in range(labels.shape[1]):
        mine = np.flatnonzero(there[:, j])
        own = np.mean([posterior[i, int(labels[i, j])] for i in mine])
        agrees = np.mean([labels[i, j] == consensus[i] for i in mine if size[i] > 1])
        found.append(trust * own + (1 - trust) * agrees)
    return found


@pytest.mark.parametrize("kind", ["majority", "best_quality"])
@pytest.mark.parametrize("seed", range(4))
def test_equals_the_plain_loops(seed, kind):
    labels, proba = random_crowd(seed, n_classes=2 + seed % 3, density=(0.6, 0.3)[seed % 2])
    votes = Annotations.from_matrix(labels, classes=range(proba.shape[1]))
    model = CrowdLab(consensus=kind, random_state=0).fit(None, votes, pred_probs=proba)
    consensus = slow_majority(labels, proba)
    if kind == "best_quality":
        consensus = slow_weigh(labels, proba, consensus)[0].argmax(axis=1)
    posterior, weight, worker = slow_weigh(labels, proba, consensus)
    assert_array_equal(model.labels_, consensus)
    assert_allclose(model.posterior_, posterior)
    assert_allclose(model.label_quality_, posterior[np.arange(40), consensus])
    assert_allclose(model.annotation_quality_, posterior[votes.task, votes.label])
    assert model.model_weight_ == pytest.approx(weight)
    assert_allclose(model.worker_weight_, worker)
    expected = slow_worker_quality(labels, posterior, consensus, weight, worker)
    assert_allclose(model.worker_quality_, expected)


@pytest.mark.parametrize("seed", range(3))
def test_active_learning_scores_equal_the_plain_loops(seed):
    labels, proba = random_crowd(seed)
    model = CrowdLab().fit(None, labels, pred_probs=proba)
    grid = [0.1, 0.2, 0.5, 0.8, 1, 2, 3, 5, 8]
    shares = [[np.mean(row[~np.isnan(row)] == k) for k in range(3)] for row in labels]

    def distance(heat):
        tilted = proba ** (1 / heat)
        return -np.sum(shares * np.log(tilted / tilted.sum(axis=1, keepdims=True)))

    place = int(np.argmin([distance(t) for t in grid]))
    around = np.interp(np.arange(place - 1, place + 1.01, 0.25), range(9), grid)
    heat = min(around, key=distance)
    assert model.temperature_ == pytest.approx(heat)
    cool = proba ** (1 / heat)
    cool /= cool.sum(axis=1, keepdims=True)
    consensus = slow_weigh(labels, cool, slow_majority(labels, cool))[0].argmax(axis=1)
    posterior, weight, worker = slow_weigh(labels, cool, consensus)
    expected = []
    for i in range(40):
        heard = weight + sum(worker[j] for j in np.flatnonzero(~np.isnan(labels[i])))
        chance = worker.mean() / 3
        expected.append((heard * posterior[i, consensus[i]] + chance) / (heard + worker.mean()))
    assert_allclose(model.active_learning_scores(), expected)
    calibrated = CrowdLab(calibrate=True).fit(None, labels, pred_probs=proba)
    assert_allclose(calibrated.posterior_, posterior)


def test_ties_go_down_the_chain():
    labels = np.array([[0, 1, NO], [0, 1, NO], [1, 1, NO], [0, 0, 0], [1, 0, 1], [0, 1, NO]])
    # One more label of class 0: then class 1 is the rarer one.
    rare = CrowdlabCounts.of(Annotations.from_matrix(np.vstack([labels, [0, NO, NO]])))
    flat, luck = np.full((7, 2), 0.5), np.tile([0.8, 0.2], (7, 1))
    sure = np.where(np.arange(7)[:, None] == 0, [0.9, 0.1], flat)
    assert majority_label(rare, sure, luck)[[0, 1]].tolist() == [0, 1]
    # As frequent: of the clear tasks the first worker is right in 3 of 3, the second in 2.
    even = CrowdlabCounts.of(Annotations.from_matrix(labels))
    assert majority_label(even, None, 1 - luck[:6])[[0, 1, 5]].tolist() == [0, 0, 0]
    lone = CrowdlabCounts.of(Annotations.from_matrix([[0, 1], [1, 0]]))
    chance = np.array([[0.2, 0.8], [0.9, 0.1]])
    assert majority_label(lone, None, chance).tolist() == [1, 0]


def test_temperatures_are_found_at_both_ends():
    truth = np.eye(2)[[0, 1, 0, 1]]
    blurred = 0.9 * truth + 0.05
    assert fit_temperature(truth, blurred) == 0.1
    assert fit_temperature(np.full((4, 2), 0.5), blurred) == 8.0
    assert_allclose(apply_temperature(np.array([[0.2, 0.8]]), 0.5), [[0.04 / 0.68, 0.64 / 0.68]])


def test_single_labels_leave_it_to_the_classifier():
    labels = np.array([[0, NO], [NO, 1], [1, NO]])
    proba = np.array([[0.6, 0.4], [0.7, 0.3], [0.2, 0.8]])
    model = CrowdLab(consensus="majority").fit(None, labels, pred_probs=proba)
    assert model.labels_.tolist() == [0, 1, 1]
    assert_allclose(model.label_quality_, [0.6, 0.3, 0.8])
    # (quality * (1 + 1) + 1 / 2) / 3, by the classifier's label where that is another
    assert_allclose(model.active_learning_scores(), [1.7 / 3, 1.9 / 3, 2.1 / 3])


def test_tasks_without_labels_have_the_classifiers_word():
    labels = np.vstack([LABELS, [NO] * 4])
    proba = np.vstack([PROBA, [0.5, 0.3, 0.2]])
    votes = Annotations.from_matrix(labels)
    with_silent = CrowdLab().fit(None, votes, pred_probs=proba)
    without = CrowdLab().fit(None, LABELS, pred_probs=PROBA)
    assert_allclose(with_silent.posterior_[:7], without.posterior_)
    assert_allclose(with_silent.posterior_[7], proba[7])
    assert_allclose(with_silent.worker_quality_, without.worker_quality_)
    scores = with_silent.active_learning_scores()
    assert_allclose(scores[:7], without.active_learning_scores())
    assert scores[7] == pytest.approx(without.active_learning_scores(pred_probs=proba[[7]])[0])


def test_a_worker_who_shares_no_task_is_judged_by_the_posterior():
    labels = np.hstack([np.vstack([LABELS, [NO] * 4]), np.full((8, 1), NO)])
    labels[7, 4] = 1
    proba = np.vstack([PROBA, [0.5, 0.3, 0.2]])
    model = CrowdLab().fit(None, labels, pred_probs=proba)
    assert model.worker_quality_[4] == pytest.approx(model.posterior_[7, 1])
    assert model.worker_weight_[4] > 1e-6  # the average agreement


def test_a_worker_without_labels_is_of_average_quality():
    silent = np.hstack([LABELS, np.full((len(LABELS), 1), NO)])
    model = CrowdLab().fit(None, silent, pred_probs=PROBA)
    without = CrowdLab().fit(None, LABELS, pred_probs=PROBA)
    assert_allclose(model.worker_quality_[:4], without.worker_quality_)
    assert model.worker_quality_[4] == pytest.approx(without.worker_quality_.mean())


def test_gold_is_the_consensus(crowd):
    gold = {0: (crowd.truth[0] + 1) % 3}
    model = CrowdLab(random_state=0).fit(crowd.X, crowd.votes, gold=gold)
    assert model.labels_[0] == gold[0]
    assert model.posterior_[0, gold[0]] == 1.0


def test_the_classifier_is_asked_about_tasks_it_did_not_see(crowd):
    # A tree that knows its training rows by heart would repeat the majority's labels.
    tree = DecisionTreeClassifier(random_state=0)
    model = CrowdLab(tree, cv=4, random_state=0).fit(crowd.X, crowd.votes)
    consensus = np.asarray(crowd.votes)
    agree = model.pred_probs_[np.arange(400), consensus] == 1.0
    assert 0.4 < agree.mean() < 0.9
    own = tree.fit(crowd.X, consensus).predict_proba(crowd.X)
    assert (own[np.arange(400), consensus] == 1.0).all()


def test_learns_from_a_crowd(crowd):
    model = CrowdLab(random_state=0).fit(crowd.X, crowd.votes)
    assert (model.labels_ == crowd.truth).mean() > (np.asarray(crowd.votes) == crowd.truth).mean()
    assert model.score(crowd.new_X, crowd.new_truth) > 0.85
    right = model.annotation_quality_[crowd.votes.label == crowd.truth[crowd.votes.task]]
    assert right.mean() > model.annotation_quality_.mean() + 0.1
    scores = model.active_learning_scores()
    wrong = model.labels_.to_numpy() != crowd.truth
    assert scores[wrong].mean() < scores[~wrong].mean() - 0.1
    by_hand = CrowdLab().fit(None, crowd.votes, pred_probs=model.pred_probs_)
    new = by_hand.active_learning_scores(pred_probs=model.predict_proba(crowd.new_X))
    assert_allclose(model.active_learning_scores(crowd.new_X), new)
    mine = [crowd.truth[crowd.votes.task] == crowd.votes.label, crowd.votes.worker]
    accuracy = np.bincount(mine[1], mine[0]) / np.bincount(mine[1])
    assert np.corrcoef(model.worker_quality_, accuracy)[0, 1] > 0.8


def test_the_classifier_is_fitted_to_the_labels(crowd):
    model = CrowdLab(LogisticRegression(), random_state=0).fit(crowd.X, crowd.votes)
    hand = LogisticRegression().fit(crowd.X, model.labels_)
    assert_allclose(model.predict_proba(crowd.new_X), hand.predict_proba(crowd.new_X))


def test_soft_labels_count_in_part():
    soft = np.array([[0.7, 0.3], [0.2, 0.8], [1.0, 0.0]])
    votes = Annotations.from_codes([0, 0, 1], [0, 1, 0], soft.argmax(axis=1), soft=soft)
    proba = np.array([[0.5, 0.5], [0.6, 0.4]])
    model = CrowdLab().fit(None, votes, pred_probs=proba)
    assert_allclose(model.annotation_quality_, (model.posterior_[[0, 0, 1]] * soft).sum(axis=1))


def test_refuses_what_it_cannot_use(crowd):
    with pytest.raises(ParameterError, match=r"shape \(7, 2\)"):
        CrowdLab().fit(None, LABELS, pred_probs=PROBA[:, :2])
    with pytest.raises(ParameterError, match="sums to one"):
        CrowdLab().fit(None, LABELS, pred_probs=PROBA * 2)
    with pytest.raises(AnnotationError, match="too few to leave one out"):
        CrowdLab().fit(crowd.X[:1], crowd.votes[:1])
    with pytest.raises(ValueError, match="cv"):
        CrowdLab(cv=1).fit(crowd.X, crowd.votes)
    with pytest.raises(NotFittedError):
        CrowdLab().active_learning_scores()
