"""Minimax entropy against plain loops, finite differences, simulations and real crowds."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import approx_fprime, minimize
from scipy.special import softmax

from crowdwise import compiled
from crowdwise.aggregate.minimax_entropy import MinimaxEntropy, penalties_of
from crowdwise.annotations import Annotations
from crowdwise.inference import MemoryEngine
from crowdwise.inference import conditional_entropy as solver
from crowdwise.inference.conditional_entropy import infer
from crowdwise.inference.entropy_basis import EveryCell
from crowdwise.simulate import confused_crowd, one_coin_confusion

CAREFUL = [[0.9, 0.08, 0.02], [0.05, 0.8, 0.15], [0.0, 0.3, 0.7]]
HASTY = [[0.5, 0.4, 0.1], [0.1, 0.8, 0.1], [0.1, 0.6, 0.3]]  # in doubt, the second class
LIAR = [[0.1, 0.2, 0.7], [0.6, 0.2, 0.2], [0.2, 0.7, 0.1]]


@pytest.fixture(scope="module")
def crowd():
    confusion = np.array([CAREFUL, CAREFUL, HASTY, LIAR])
    return confused_crowd(confusion, 15, 3, prior=[0.5, 0.3, 0.2], random_state=0)


@pytest.fixture(scope="module")
def weighted(crowd):
    weight = np.random.default_rng(1).choice([0.5, 1.0, 2.0], crowd.annotations.n_annotations)
    return replace(crowd.annotations, weight=weight.astype(np.float32))


def rows_of(annotations):
    weight = annotations.weight
    weight = np.ones(annotations.n_annotations) if weight is None else weight
    return list(zip(annotations.task, annotations.worker, annotations.label, weight, strict=True))


def slow_log_chance(effect):
    return effect - np.log(np.exp(effect).sum())


def slow_joint(annotations, worker_effect, task_effect):
    """Log P(labels | truth) of each task and truth."""
    joint = np.zeros((annotations.n_tasks, annotations.n_classes))
    for i, w, label, weight in rows_of(annotations):
        for k in range(annotations.n_classes):
            log_chance = slow_log_chance(worker_effect[w, k] + task_effect[i, k])
            joint[i, k] += weight * log_chance[label]
    return joint


def slow_objective(annotations, worker_effect, task_effect, alpha, beta, gold=None):
    """Penalised log-likelihood with the truths summed out."""
    joint = slow_joint(annotations, worker_effect, task_effect)
    total = 0.0
    for i in range(annotations.n_tasks):
        known = gold is not None and gold[i] >= 0
        total += joint[i, gold[i]] if known else np.log(np.exp(joint[i]).sum())
    return total - alpha / 2 * (worker_effect**2).sum() - beta / 2 * (task_effect**2).sum()


def slow_step(annotations, posterior, own, other, penalty, *, workers):
    """The effects of all workers (or tasks) that best explain the labels, one by one."""
    found = np.zeros_like(own)
    for unit in range(len(own)):
        mine = [row for row in rows_of(annotations) if row[1 if workers else 0] == unit]

        def loss(point, mine=mine):
            effect, value = point.reshape(own.shape[1:]), 0.0
            for i, w, label, weight in mine:
                for k, share in enumerate(posterior[i]):
                    log_chance = slow_log_chance(effect[k] + other[i if workers else w, k])
                    value += weight * share * log_chance[label]
            return penalty / 2 * (point**2).sum() - value

        found[unit] = minimize(loss, own[unit].ravel(), tol=1e-9).x.reshape(own.shape[1:])
    return found


@pytest.mark.usefixtures("either_loop")
def test_objective_and_posterior_equal_the_plain_loops(weighted):
    model = MinimaxEntropy(regularization=0.02).fit(weighted)
    alpha = 0.02 * 9
    beta = alpha * (weighted.n_annotations / 4) / (weighted.n_annotations / 15)
    effects = model.worker_effect_, model.task_effect_
    assert_allclose(model.objective_[-1], slow_objective(weighted, *effects, alpha, beta))
    joint = np.exp(slow_joint(weighted, *effects))
    assert_allclose(model.posterior_, joint / joint.sum(axis=1, keepdims=True))


@pytest.mark.usefixtures("either_loop")
def test_first_round_is_the_papers(weighted):
    model = MinimaxEntropy(regularization=0.02, max_iter=1, tol=0).fit(weighted)
    alpha, beta = penalties_of(MemoryEngine(weighted), 0.02)
    start, nothing = weighted.shares(), np.zeros((15, 3, 3))
    sigma = slow_step(weighted, start, nothing[:4], nothing, alpha, workers=True)
    assert_allclose(model.worker_effect_, sigma, atol=1e-4)
    tau = slow_step(weighted, start, nothing, sigma, beta, workers=False)
    assert_allclose(model.task_effect_, tau, atol=1e-4)


@pytest.mark.usefixtures("either_loop")
def test_ends_where_the_objective_is_flat(crowd):
    annotations, gold = crowd.annotations, np.full(15, -1)
    gold[:3] = [2, 2, 0]
    names = dict(zip(annotations.tasks[:3], annotations.classes[gold[:3]], strict=True))
    model = MinimaxEntropy(regularization=0.02, max_iter=300, tol=0).fit(annotations, gold=names)
    alpha, beta = penalties_of(MemoryEngine(annotations), 0.02)

    def objective(point):
        sigma, tau = np.split(point.reshape(-1, 3, 3), [4])
        return slow_objective(annotations, sigma, tau, alpha, beta, gold)

    found = np.concatenate([model.worker_effect_, model.task_effect_]).ravel()
    assert_allclose(model.objective_[-1], objective(found))
    assert_allclose(approx_fprime(found, objective, 1e-6), 0, atol=1e-3)


def test_newton_step_solves_its_equation():
    rng = np.random.default_rng(0)
    given, expected = rng.gamma(1.0, 5.0, (2, 2, 3, 3))
    expected[1, 2] = 0.0  # a truth that a unit never saw
    parameters, penalty = rng.normal(size=(2, 9)), 0.7
    step = EveryCell(3).step(given, expected, parameters, penalty).reshape(2, 3, 3)
    for unit, k in np.ndindex(2, 3):
        counts = expected[unit, k]
        bracket = np.diag(counts) + penalty * np.eye(3)
        bracket -= np.outer(counts, counts) / max(counts.sum(), 1e-300)
        gradient = given[unit, k] - counts - penalty * parameters[unit].reshape(3, 3)[k]
        assert_allclose(bracket @ step[unit, k], gradient)


def test_halves_a_step_that_overshoots_and_only_that():
    first, second = {1.0: -5.0, 0.5: -2.0, 0.25: 0.5}, {1.0: 1.0}

    def value(pace):
        return np.array([first[pace[0]], second[pace[1]]])

    point, after = solver.search(np.copy, value, np.zeros(2))
    assert_array_equal(point, [0.25, 1.0])
    assert_array_equal(after, [0.5, 1.0])


def test_stays_where_every_step_falls():
    point, _ = solver.search(np.copy, np.negative, np.zeros(2))
    assert_array_equal(point, [0.0, 0.0])


def test_penalties_count_only_who_took_part():
    annotations = Annotations.from_codes(
        [0, 0, 1, 2], [0, 1, 0, 0], [0, 1, 2, 1], tasks=range(9), workers=range(7)
    )
    assert_allclose(penalties_of(MemoryEngine(annotations), 2.0), (18.0, 18.0 * (4 / 2) / (4 / 3)))


def test_scaled_is_the_papers_strength_for_two_classes(crowd):
    assert MinimaxEntropy().fit([[0, 1], [1, 1], [0, 0]]).regularization_ == 0.25
    scaled, same = MinimaxEntropy(), MinimaxEntropy(regularization=2 / 27)
    found, expected = (each.fit(crowd.annotations).posterior_ for each in (scaled, same))
    assert_array_equal(found, expected)
    assert scaled.regularization_ == 2 / 27


@pytest.mark.parametrize("n_classes", [2, 4, 17])
def test_compiled_loops_take_the_same_steps(n_classes, monkeypatch):
    drawn = confused_crowd(one_coin_confusion([0.8] * 5, n_classes), 40, 5, random_state=0)
    votes = drawn.annotations
    weight = np.random.default_rng(1).choice([0.5, 1.0, 2.0], votes.n_annotations)
    votes = replace(votes, weight=weight.astype(np.float32))
    gold, models = {votes.tasks[3]: votes.classes[1]}, []
    for _ in range(2):
        models.append(MinimaxEntropy(tol=0, max_iter=4).fit(votes, gold))
        monkeypatch.setattr(compiled, "native", None)
    for name in ("worker_effect_", "task_effect_", "posterior_", "objective_"):
        assert_allclose(*(getattr(model, name) for model in models), atol=1e-8)


def test_a_task_of_very_many_labels_counts_like_any_other():
    label = np.random.default_rng(0).integers(0, 3, 3000)
    votes = Annotations.from_codes(np.repeat([0, 1], [2900, 100]), np.arange(3000), label)
    assert_allclose(infer(MemoryEngine(votes), np.zeros((3000, 3, 3)), np.zeros((2, 3, 3))), 1 / 3)
    effect = np.random.default_rng(1).normal(size=(3000, 3, 3))
    plain = slow_joint(votes, effect, np.zeros((2, 3, 3)))
    found = infer(MemoryEngine(votes), effect, np.zeros((2, 3, 3)))
    assert_allclose(found, softmax(plain, axis=1), atol=1e-9)


def test_a_stronger_penalty_makes_smaller_effects(voters):
    annotations = voters.annotations
    strong, weak = (MinimaxEntropy(regularization=g).fit(annotations) for g in (0.1, 0.01))
    assert np.abs(strong.worker_effect_).sum() < 0.8 * np.abs(weak.worker_effect_).sum()
    assert np.abs(strong.task_effect_).sum() < 0.8 * np.abs(weak.task_effect_).sum()


def test_auto_takes_the_strength_with_the_least_held_out_loss(crowd):
    annotations = crowd.annotations
    fold = solver.deal_folds(annotations, 3)

    def loss(strength):
        total = 0.0
        for i in range(5):
            kept, rest = annotations.filter(fold != i), annotations.filter(fold == i)
            model = MinimaxEntropy(regularization=strength, tol=1e-4)._solve(
                MemoryEngine(kept), strength, 1e-4
            )
            for task, worker, label, _ in rows_of(rest):
                chance = sum(
                    model.posterior[task, k]
                    * np.exp(
                        slow_log_chance(model.worker_effect[worker, k] + model.task_effect[task, k])
                    )[label]
                    for k in range(3)
                )
                total -= np.log(chance)
        return total

    losses = {strength: loss(strength) for strength in solver.STRENGTHS}
    auto = MinimaxEntropy(regularization="auto", random_state=3).fit(annotations)
    assert auto.regularization_ == min(losses, key=losses.get)


def test_search_prefers_the_stronger_of_equals_and_stops_in_time(crowd, monkeypatch):
    losses = {4.0: 9.0, 1.0: 8.0, 0.25: 8.0, 0.0625: 8.05, 0.015625: 8.5}  # nothing after
    asked = []

    def fit(_, strength):
        asked.append(strength)
        return strength

    monkeypatch.setattr(solver, "held_out_loss", lambda strength, _: losses[strength])
    assert solver.choose_strength(fit, crowd.annotations, 0) == 1.0
    assert asked == list(np.repeat(list(losses), 5))


def test_folds_are_even_within_workers_and_keep_repeats_together(crowd):
    annotations = crowd.annotations
    twice = replace(
        annotations,
        indptr=annotations.indptr * 2,
        worker=np.repeat(annotations.worker, 2),
        label=np.repeat(annotations.label, 2),
    )
    fold = solver.deal_folds(twice, 0)
    assert_array_equal(fold[::2], fold[1::2])
    for worker in range(4):
        sizes = np.bincount(fold[twice.worker == worker], minlength=5)
        assert np.ptp(sizes) <= 2
    assert (solver.deal_folds(twice, 1) != fold).any()


def test_a_mirror_image_is_turned_back():
    rng = np.random.default_rng(3)
    shares = rng.dirichlet([0.3] * 3, 50)
    order = np.array([2, 0, 1])
    mirrored = 0.9 * shares[:, order] + 0.1 / 3
    found = solver.order_truths(EveryCell(3), mirrored.T @ shares, 50)
    assert_array_equal(mirrored[:, found].argmax(axis=1), shares.argmax(axis=1))
    assert_array_equal(
        solver.order_truths(EveryCell(3), np.full((50, 3), 1 / 3).T @ shares, 50), [0, 1, 2]
    )


def test_truths_can_trade_places_but_not_against_gold(crowd, monkeypatch):
    annotations, order = crowd.annotations, np.array([1, 2, 0])
    known = {annotations.tasks[0]: annotations.classes[crowd.truth[0]]}
    fits = [MinimaxEntropy(regularization=0.02).fit(annotations, gold) for gold in (None, known)]
    monkeypatch.setattr(solver, "order_truths", lambda *_: order)
    again = [MinimaxEntropy(regularization=0.02).fit(annotations, gold) for gold in (None, known)]
    for name in ("worker_effect_", "task_effect_", "posterior_"):
        free, bound = (getattr(model, name) for model in fits)
        assert_array_equal(getattr(again[0], name), free[:, order])
        assert_array_equal(getattr(again[1], name), bound)
    effects, penalties = (again[0].worker_effect_, again[0].task_effect_), (0.18, 0.18 * 15 / 4)
    assert_allclose(slow_objective(annotations, *effects, *penalties), fits[0].objective_[-1])


def test_says_so_when_the_penalty_leaves_nothing():
    many = confused_crowd(one_coin_confusion([0.7] * 12, 10), 60, 4, random_state=0)
    with pytest.warns(UserWarning, match=r"regularization=0.25 .* 10 classes. Lower"):
        flat = MinimaxEntropy(regularization=0.25).fit(many.annotations)
    assert flat.posterior_.max() < 0.11
    scaled = MinimaxEntropy().fit(many.annotations).posterior_
    assert np.mean(scaled.argmax(axis=1) == many.truth) > 0.8
    assert scaled.max(axis=1).mean() > 0.8


def test_a_new_task_adds_nothing(crowd):
    model = MinimaxEntropy().fit(crowd.annotations)
    new = replace(crowd.annotations[:4], tasks=np.array(["a", "b", "c", "d"], dtype=object))
    joint = np.exp(slow_joint(new, model.worker_effect_, np.zeros((4, 3, 3))))
    expected = joint / joint.sum(axis=1, keepdims=True)
    assert_allclose(model.predict_proba(new), expected)
    assert np.abs(model.predict_proba(crowd.annotations[:4]).to_numpy() - expected).max() > 0.01
    assert_allclose(model.predict_proba(crowd.annotations), model.probas_)


@pytest.mark.usefixtures("either_loop")
def test_soft_labels_count_in_part(crowd):
    annotations = crowd.annotations
    sure = np.eye(3, dtype=np.float32)[annotations.label]
    hard, same = (
        MinimaxEntropy().fit(data).posterior_
        for data in (annotations, replace(annotations, soft=sure))
    )
    assert_allclose(hard, same)
    blurred = replace(annotations, soft=(0.7 * sure + 0.1).astype(np.float32))
    assert MinimaxEntropy().fit(blurred).posterior_.max(axis=1).mean() < hard.max(axis=1).mean()


def test_recovers_the_workers_it_was_drawn_from():
    confusion = np.array([CAREFUL, HASTY, LIAR, CAREFUL, HASTY])
    drawn = confused_crowd(confusion, 1500, 5, random_state=1)
    model = MinimaxEntropy(regularization=0.05).fit(drawn.annotations)
    assert_allclose(model.confusion_, confusion, atol=0.12)
    assert_allclose(model.skills_, np.einsum("wkk->w", confusion) / 3, atol=0.08)


def test_tells_tasks_that_everyone_finds_hard():
    rng = np.random.default_rng(2)
    truth, hard = rng.integers(0, 2, 300), rng.random(300) < 0.2
    right = rng.random((300, 40)) < np.where(hard, 0.65, 0.9)[:, None]
    model = MinimaxEntropy(regularization=0.05).fit(
        np.where(right, truth[:, None], 1 - truth[:, None])
    )
    helps = model.task_effect_[np.arange(300), truth, truth]
    assert helps[hard].mean() < -0.1 < 0.05 < helps[~hard].mean()


def test_workers_learn_from_gold(crowd):
    names = crowd.annotations.classes[crowd.truth]
    gold = dict(zip(crowd.annotations.tasks[:10], names[:10], strict=True))
    alone, taught = (MinimaxEntropy().fit(crowd.annotations, gold=g) for g in (None, gold))
    assert np.abs(alone.worker_effect_ - taught.worker_effect_).max() > 0.1


@pytest.mark.parametrize("regularization", [0.0, -1.0, "none"])
def test_refuses_a_regularization_that_is_not_positive(regularization):
    with pytest.raises(ValueError, match="'regularization' parameter of MinimaxEntropy"):
        MinimaxEntropy(regularization=regularization).fit([[0, 1], [1, 1]])


@pytest.mark.parametrize(
    ("name", "regularization", "accuracy"),
    [
        ("bluebirds", 0.25, 0.9167),
        ("bluebirds", 0.125, 0.9259),
        ("wordsim", 0.25, 0.9333),
        ("rte", 0.25, 0.9237),
        ("mgc", 0.001, 0.770),
    ],
)
def test_published_numbers(real_crowd, name, regularization, accuracy):
    crowd = real_crowd(name)
    labels = MinimaxEntropy(regularization=regularization).fit_predict(crowd.annotations)
    assert_allclose(np.mean(labels[crowd.truth.index] == crowd.truth), accuracy, atol=0.005)


@pytest.mark.parametrize(("name", "at_least"), [("mgc", 0.76), ("labelme", 0.79)])
def test_many_classes_do_not_collapse(real_crowd, name, at_least):
    crowd = real_crowd(name)
    labels = MinimaxEntropy().fit_predict(crowd.annotations)
    assert np.mean(labels[crowd.truth.index] == crowd.truth) > at_least
