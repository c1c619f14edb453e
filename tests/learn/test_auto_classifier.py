from copy import copy

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.datasets import load_iris

from crowdwise.errors import AnnotationError
from crowdwise.inference import MemoryEngine, expected_log
from crowdwise.learn import AutoClassifier, auto_classifier, batch_refit, plain_regressions
from crowdwise.learn.committee_search import first_round, next_rounds
from crowdwise.learn.isolated_folds import Folds
from crowdwise.learn.label_stacking import Sharpening, Stack, choose_best
from crowdwise.learn.penalty_path import Problem, add_ones, fit_path, predict_path
from crowdwise.learn.plain_regressions import PlainRegressions, find_strongest
from crowdwise.learn.softmax_regression import softmax_regression
from crowdwise.learn.views import KernelAxes, PrincipalAxes, identify
from crowdwise.learn.worker_bags import infer, infer_in_bags, pool
from crowdwise.simulate import label_by_crowd, one_coin_confusion

CONFUSION = one_coin_confusion([0.95, 0.8, 0.6, 0.5, 0.4], n_classes=3)
PAIR = one_coin_confusion([0.9, 0.8, 0.7, 0.6], n_classes=2)


@pytest.fixture(scope="module")
def iris():
    X, truth = load_iris(return_X_y=True)
    return X, truth, label_by_crowd(truth, CONFUSION, per_task=2, random_state=3)


@pytest.fixture(scope="module")
def fitted(iris):
    X, _, votes = iris
    return AutoClassifier(random_state=0).fit(X, votes)


def test_it_learns_more_than_the_votes_say(iris, fitted):
    X, truth, votes = iris
    voted = (votes.shares().argmax(axis=1) == truth).mean()
    assert fitted.score(X, truth) > max(voted + 0.1, 0.9)
    assert (fitted.posterior_.argmax(axis=1) == truth).mean() > 0.93
    assert_array_equal(fitted.probas_.to_numpy(), fitted.posterior_)
    assert_array_equal(fitted.probas_.index, fitted.tasks_)
    assert_array_equal(fitted.probas_.columns, fitted.classes_)
    assert_array_equal(fitted.worker_accuracy_.argsort().to_numpy()[-2:], [1, 0])


def test_it_says_what_it_chose(fitted):
    assert_allclose([fitted.search_["weight"].sum(), fitted.blend_.sum()], 1)
    said = fitted.summary()
    assert f"best with probability {fitted.blend_['committee']:.2f}" in said
    assert "150 tasks with 300 labels by 5 workers, 3 classes" in said
    for view, words in (("plain", "unscaled features"), ("kernel", "similarity")):
        assert (view in str(fitted.search_.index.tolist())) == (words in said)


def test_a_committee_of_one_says_so(fitted):
    one = copy(fitted)
    one.search_ = fitted.search_[:1]
    assert "A committee of 1 softmax regression," in one.summary()
    assert one.summary().count("%") == 1


def test_one_task_is_too_few():
    with pytest.raises(AnnotationError, match=r"Only 1 task with features[\s\S]*two or more"):
        AutoClassifier().fit([[1.0], [2.0]], [[0, 1], [-1, -1]])


def test_one_round_is_a_mode_of_its_own(iris):
    X, truth, votes = iris
    model = AutoClassifier(n_rounds=1, random_state=0).fit(X, votes)
    assert len(model.search_) == 27  # all penalties of all views
    assert model.score(X, truth) > 0.9


@pytest.mark.parametrize("turn", [csr_array, torch.as_tensor], ids=["sparse", "torch"])
def test_other_kinds_of_features_give_the_same(iris, fitted, turn):
    X, _, votes = iris
    model = AutoClassifier(random_state=0).fit(turn(X), votes)
    assert_allclose(model.predict_proba(turn(X)), fitted.predict_proba(X), atol=0.02)


def test_gold_is_learned_from(iris):
    X, truth, votes = iris
    nothing = votes.filter(votes.worker == 4)  # right on .4
    gold = dict(zip(votes.tasks[::3], truth[::3], strict=True))
    model = AutoClassifier(random_state=0).fit(X, nothing, gold=gold)
    assert model.score(X, truth) > 0.9


def test_a_path_reaches_what_a_slow_optimizer_finds():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 5)) * [3, 1, 1, 0.3, 0.01]
    design = add_ones(PrincipalAxes(standardize=False).fit(X).transform(X.astype(np.float32)))
    target = rng.dirichlet([0.3, 0.3, 0.3], size=80)
    half = (np.arange(80) % 2 == 0).astype(float)
    weight = np.stack([half / half.sum(), np.full(80, 1 / 80)], axis=1)
    problem = Problem(target[None], np.array([0, 0]), weight)
    penalties = np.array([1e-3, 0.1])
    found = fit_path(design, problem, penalties, np.zeros((6, 2, 2, 3), np.float32), 300)
    for group in range(2):
        for at, penalty in enumerate(penalties):
            rows = weight[:, group, None] * target
            slow = softmax_regression(design, rows * 1e4, penalty * 1e4, np.zeros((6, 3)))
            expected = predict_path(design, slow[:, None, None])[:, 0, 0]
            assert_allclose(predict_path(design, found)[:, group, at], expected, atol=2e-3)


def test_axes_are_centered_uncorrelated_and_of_unit_size():
    rng = np.random.default_rng(1)
    X = (rng.normal(size=(60, 8)) @ rng.normal(size=(8, 8)) + 5).astype(np.float32)
    wide = np.hstack([X, np.repeat(X, 9, axis=1) ** 2]).astype(np.float32)  # more than rows
    for view, table in (
        (PrincipalAxes(), X),
        (PrincipalAxes(standardize=False), X),
        (PrincipalAxes(), wide),
        (PrincipalAxes(), csr_array(wide)),
        (KernelAxes(), X),
    ):
        seen = np.asarray(view.fit(table).transform(table), dtype=np.float64)
        moments = seen.T @ seen / len(seen)
        assert_allclose(seen.mean(axis=0), 0, atol=1e-3)
        assert_allclose(moments, np.diag(np.diag(moments)), atol=1e-3)
        assert_allclose(np.trace(moments), 1, atol=1e-2)


def test_sparse_axes_are_those_of_the_same_dense_table():
    rng = np.random.default_rng(2)
    X = (rng.normal(size=(40, 90)) * (rng.random((40, 90)) < 0.2)).astype(np.float32)
    for table in (X, X[:, :20]):
        dense, sparse = (
            PrincipalAxes().fit(one).transform(one) for one in (table, csr_array(table))
        )
        assert_allclose(dense @ dense.T, sparse @ sparse.T, atol=1e-3)


def test_the_member_that_knows_counts_and_is_made_as_sure_as_it_is_right():
    rng = np.random.default_rng(4)
    truth = rng.integers(2, size=2000)
    right = np.where(rng.random(2000) < 0.8, truth, 1 - truth)
    knows = np.where(np.eye(2)[right] == 1, 0.98, 0.02)  # right on .8, but so sure
    members = np.stack([np.full((2000, 2), 0.5), knows], axis=1)
    label = np.where(rng.random(2000) < 0.9, truth, 1 - truth)
    likelihood = np.where(np.eye(2)[label] == 1, 0.9, 0.1)
    stack = Stack.choose(members, likelihood, np.zeros(2))
    mixed = stack.mix(members)
    assert stack.weight[1] > 0.6
    assert_allclose(mixed.max(axis=1).mean(), 0.8, atol=0.05)


def test_plain_regressions_count_where_labels_cannot_tell():
    rng = np.random.default_rng(5)
    truth = rng.integers(2, size=600)
    label = np.where(rng.random(600) < 0.9, truth, 1 - truth)
    likelihood = np.where(np.eye(2)[label] == 1, 0.9, 0.1)

    def members(few):
        right = rng.random((few, 3)) < [0.85, 0.6, 0.6]
        said = np.where(right, truth[:few, None], 1 - truth[:few, None])
        return np.where(np.eye(2)[said] == 1, [[0.8], [0.6], [0.8]], [[0.2], [0.4], [0.2]])

    by = {n: choose_best(members(n), likelihood[:n], np.random.RandomState(0)) for n in (600, 12)}
    assert by[600][0] > 0.99
    assert by[12].min() > 0.01
    assert_allclose([weight.sum() for weight in by.values()], 1)


def test_a_plain_regression_that_is_too_sure_counts_less():
    rng = np.random.default_rng(6)
    truth = rng.integers(2, size=400)
    said = np.where(rng.random(400) < 0.7, truth, 1 - truth)
    label = np.where(rng.random(400) < 0.9, truth, 1 - truth)
    likelihood = np.where(np.eye(2)[label] == 1, 0.9, 0.1)
    sure = [np.where(np.eye(2)[said] == 1, p, 1 - p) for p in (0.7, 0.98)]  # the same otherwise
    weight = choose_best(np.stack(sure, axis=1), likelihood, np.random.RandomState(0))
    assert weight[0] > 0.95


def test_a_penalty_is_as_strong_as_one_standard_error_allows():
    score = np.array([[0.0, 0.2, 0.1, -2.0], [0.0, 0.0, 0.2, -2.0], [0.0, 0.1, -0.1, -2.0]])
    assert find_strongest(score) == 2  # .033 behind the second, give or take .09
    assert find_strongest(np.repeat(score, 40, axis=0)) == 1
    lucky = np.hstack([score[:, 1:2] + 9.0, score])  # the weakest, after a worse one
    assert find_strongest(np.repeat(lucky, 40, axis=0)) == 2


def test_a_committee_is_never_made_surer_than_its_mean():
    each, factor = Sharpening(np.ones(1), np.ones((1, 2))), np.array([[1.0, 2.0]])
    for power, expected in ((1.5, [0.7, 0.3]), (0.5, None)):
        stack = Stack(each, np.ones(1), Sharpening(np.array([power]), factor))
        said = stack.cautious().mix(np.array([[[0.7, 0.3]]]))[0]
        assert_allclose(said, stack.mix(np.array([[[0.7, 0.3]]]))[0] if power < 1 else expected)


def test_powers_leave_alone_how_frequent_classes_are():
    rng = np.random.default_rng(9)
    members = rng.dirichlet([6.0, 3.0, 1.0], size=(500, 2))
    usual = members.mean(axis=(0, 1))
    sharp = Sharpening.balance(members, np.array([1.0, 4.0]), usual)
    found = sharp.apply(members)
    assert_allclose(found.mean(axis=0), np.tile(usual, (2, 1)), atol=0.01)
    expected = sharp.factor[1] * members[7, 1] ** 4
    assert_allclose(found[7, 1], expected / expected.sum())


def test_powers_of_members_that_know_nothing_do_not_push_classes_away():
    votes = label_by_crowd(np.repeat([0, 1], [90, 60]), PAIR, per_task=2, random_state=9)
    X = np.random.default_rng(9).normal(size=(150, 4))
    said = AutoClassifier(random_state=0).fit(X, votes).predict_proba(X)
    assert abs(said[:, 0].mean() - votes.shares()[:, 0].mean()) < 0.1


def test_inference_by_loops(iris):
    votes = iris[2]
    weight = np.linspace(0.5, 2.0, votes.n_workers)
    n = votes.n_classes
    prior = np.random.default_rng(5).dirichlet(np.ones(n), size=votes.n_tasks)
    posterior = prior.copy()
    for task in range(votes.n_tasks):
        posterior[task] *= 1 + np.bincount(votes[task].label, minlength=n)
    posterior /= posterior.sum(axis=1, keepdims=True)
    for _ in range(40):
        counts = np.zeros((votes.n_workers, n, n))
        for task, worker, label in zip(votes.task, votes.worker, votes.label, strict=True):
            counts[worker, :, label] += weight[worker] * posterior[task]
        tables = expected_log(pool(counts))
        log = np.log(prior)
        for task, worker, label in zip(votes.task, votes.worker, votes.label, strict=True):
            log[task] += weight[worker] * tables[worker, :, label]
        before, posterior = posterior, np.exp(log) / np.exp(log).sum(axis=1, keepdims=True)
        if np.abs(posterior - before).max() < 5e-3:
            break
    assert_allclose(infer(MemoryEngine(votes).reweighted(weight), prior), posterior, atol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_a_prior_alike_for_all_tasks_does_not_swap_classes(seed):
    truth = np.repeat([0, 1], [6, 12])
    votes = label_by_crowd(truth, PAIR[[1] * 10], per_task=10, random_state=seed)
    prior = np.tile([0.3, 0.7], (18, 1))
    posterior = infer(MemoryEngine(votes).reweighted(np.ones(10)), prior)
    assert (posterior.argmax(axis=1) == truth).mean() > 0.9


def test_bags_are_averaged_with_the_labels_of_a_task(iris):
    votes = iris[2]
    bags, gold = np.linspace(0.5, 2.0, 10).reshape(2, 5), np.full(150, -1)
    gold[0] = 2
    each = [infer(MemoryEngine(votes, gold).reweighted(weight), None) for weight in bags]
    found = infer_in_bags(votes, gold, bags, None)
    assert_allclose(found[1:], (0.9 * np.mean(each, axis=0) + 0.1 * votes.shares())[1:])
    assert_array_equal(found[0], [0, 0, 1])


def test_the_more_labels_the_less_certain_if_workers_err_together(iris):
    votes = iris[2]
    one = votes.filter(np.arange(votes.n_annotations) > 0)  # the first task has lost a label
    bags = np.ones((1, 5))
    softer = infer(MemoryEngine(one), None)
    softer[1:] **= 1 / 1.25
    softer /= softer.sum(axis=1, keepdims=True)
    found = infer_in_bags(one, None, bags, None, dependence=0.25)
    assert_allclose(found, 0.9 * softer + 0.1 * one.shares())
    folds = Folds(one, None, np.arange(150) % 3, 3, bags, dependence=0.25)
    assert_array_equal(folds.infer(None), found)
    assert 0 < Folds.of(one, None, folds.fold, 3, np.random.RandomState(0)).dependence < 0.2


def too_even(rng, strength):
    """A crowd of poor workers, a class of one task in ten, and a prior that makes it a third."""
    truth = (rng.random(800) < 0.1).astype(int)
    confusion = one_coin_confusion(rng.uniform(0.6, 0.8, 10), n_classes=2)
    votes = label_by_crowd(truth, confusion, per_task=5, random_state=1)
    logit = strength * (truth - 0.5) + rng.normal(size=800)
    logit -= np.quantile(logit, 2 / 3)
    return truth, votes, np.stack([1 / (1 + np.exp(logit)), 1 / (1 + np.exp(-logit))], axis=1)


def test_a_rare_class_is_made_as_rare_as_labels_say():
    truth, votes, prior = too_even(np.random.default_rng(1), 4.0)
    folds = Folds(votes, None, np.arange(800) % 5, 5, np.ones((2, 10)))
    found = folds.rebalance(prior, None)
    assert prior[:, 1].mean() > 0.3
    assert abs(found[:, 1].mean() - truth.mean()) < 0.04
    odds = (found[:, 1] / found[:, 0]) / (prior[:, 1] / prior[:, 0])
    assert_allclose(odds, odds[0])
    # Nor do labels of the hidden fold say anything.
    some = folds.rebalance(prior, 2)
    label = np.where(folds.fold[votes.task] == 2, 1, votes.label).astype(votes.label.dtype)
    other = type(votes).from_codes(votes.task, votes.worker, label, classes=votes.classes)
    assert_array_equal(Folds(other, None, folds.fold, 5, folds.bags).rebalance(prior, 2), some)


@pytest.mark.parametrize("seed", range(3))
def test_classes_stay_as_frequent_as_they_are_where_labels_say_nothing(seed):
    truth, _, prior = too_even(np.random.default_rng(seed), 0.0)
    guessing = np.full((10, 2, 2), 0.5)
    votes = label_by_crowd(truth, guessing, per_task=2, random_state=seed)
    folds = Folds(votes, None, np.arange(800) % 5, 5, np.ones((2, 10)))
    assert_allclose(folds.rebalance(prior, None), prior)


@pytest.mark.parametrize("seed", [2, 5])
def test_classes_stay_as_frequent_as_they_are_where_features_say_nothing(seed):
    votes = too_even(np.random.default_rng(seed), 0.0)[1].subsample(2, random_state=0)
    prior = np.random.default_rng(seed).dirichlet([5, 3], size=800)
    folds = Folds(votes, None, np.arange(800) % 5, 5, np.ones((2, 10)))
    assert_allclose(folds.rebalance(prior, None), prior)


def test_a_rare_class_is_not_predicted_too_often():
    rng = np.random.default_rng(3)
    truth, votes, _ = too_even(rng, 0.0)
    X = rng.normal(size=(800, 5)) + 2.5 * truth[:, None] * np.eye(5)[0]
    said = AutoClassifier(random_state=0).fit(X, votes).predict_proba(X)
    assert said[:, 1].mean() < 0.27  # a third in shares of labels, a tenth in truth


@pytest.fixture
def folds(iris):
    X, _, votes = iris
    return Folds.deal(votes, None, identify(X), 3, np.random.RandomState(0))


def test_labels_are_judged_by_workers_counted_elsewhere(folds):
    votes, fold = folds.votes, folds.fold
    posterior = np.random.default_rng(6).dirichlet(np.ones(3), size=150)
    found = folds.likelihood(posterior, hidden=1)
    task = int(np.flatnonzero(fold == 0)[0])
    counts = np.zeros((5, 3, 3))
    for other, worker, label in zip(votes.task, votes.worker, votes.label, strict=True):
        if fold[other] == 2:
            counts[worker, :, label] += posterior[other]
    tables, log = expected_log(pool(counts)), np.zeros(3)
    for worker, label in zip(votes[task].worker, votes[task].label, strict=True):
        log += tables[worker, :, label]
    assert_allclose(found[task], np.exp(log - log.max()))
    prior = np.random.default_rng(7).dirichlet(np.ones(3), size=150)
    evidence = folds.evidence(prior, posterior, hidden=1)
    assert_allclose(evidence[task], np.log((prior[task] * np.exp(log)).sum()))


def test_no_label_of_a_fold_touches_what_is_learned_about_it(iris, folds, monkeypatch):
    X, _, votes = iris
    # Which of five penalties serves best is told by all tasks.
    monkeypatch.setattr(plain_regressions, "find_strongest", lambda _: 1)
    designs = {"plain": add_ones(PrincipalAxes().fit(X).transform(X.astype(np.float32)))}
    start = first_round(designs, folds)
    hidden = folds.fold[votes.task] == 1
    label = np.where(hidden, (votes.label + 1) % 3, votes.label).astype(votes.label.dtype)
    other = Folds(
        type(votes).from_codes(votes.task, votes.worker, label, classes=votes.classes),
        None, folds.fold, folds.n_folds, folds.bags, folds.dependence,
    )  # fmt: skip
    found = [next_rounds(designs, each, start, 3) for each in (folds, other)]
    plain = [PlainRegressions.fit(designs["plain"], each).proba for each in (folds, other)]
    for one, two in (plain, [each.proba for each in found]):
        assert_array_equal(one[folds.fold == 1], two[folds.fold == 1])
        assert np.abs(one - two).max() > 0.1
    one, two = (each.views["plain"] for each in found)
    world = [place for place, (first, _) in enumerate(folds.pairs) if first == 1]
    assert one.weights.dtype == np.float32  # or it takes twice as long
    assert_array_equal(one.weights[:, world], two.weights[:, world])
    assert np.abs(one.weights - two.weights).max() > 0.1


def test_folds_have_their_share_of_every_class_and_forget_the_order(iris, folds):
    X, _, votes = iris
    voted = votes.shares().argmax(axis=1)
    sizes = [np.bincount(voted[folds.fold == fold], minlength=3) for fold in range(3)]
    assert np.ptp(sizes, axis=0).max() <= 2
    order = np.random.default_rng(7).permutation(150)
    again = Folds.deal(votes[order], None, identify(X[order]), 3, np.random.RandomState(0))
    assert (again.fold == folds.fold[order]).mean() > 0.95  # some rows are twins


def test_very_many_tasks_are_searched_in_part_and_learned_from_in_full(monkeypatch):
    rng = np.random.default_rng(8)
    truth = rng.integers(3, size=3000)
    center = rng.normal(size=(3, 20)) * 0.35
    X = (rng.normal(size=(3000, 20)) + center[truth]).astype(np.float32)
    votes = label_by_crowd(truth[:2000], CONFUSION, per_task=4, random_state=8)
    whole = AutoClassifier(n_rounds=2, random_state=0).fit(X[:2000], votes)
    monkeypatch.setattr(auto_classifier, "N_SEARCH", 200)
    monkeypatch.setattr(batch_refit, "BATCH", 300)
    part = AutoClassifier(n_rounds=2, random_state=0).fit(X[:2000], votes)
    some = AutoClassifier(n_rounds=2, random_state=0).fit(X[:200], votes[:200])
    right = [model.score(X[2000:], truth[2000:]) for model in (some, part, whole)]
    assert right[1] > right[0] + 0.01
    assert right[1] > right[2] - 0.02
    assert part.posterior_.shape == (2000, 3)
