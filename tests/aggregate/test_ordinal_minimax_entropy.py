"""Ordinal minimax entropy against plain loops, its categorical sister, and simulations."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import approx_fprime
from scipy.special import softmax

from crowdwise import compiled
from crowdwise.aggregate.minimax_entropy import MinimaxEntropy, penalties_of
from crowdwise.aggregate.ordinal_minimax_entropy import OrdinalMinimaxEntropy
from crowdwise.inference import MemoryEngine
from crowdwise.inference.conditional_entropy import order_truths
from crowdwise.inference.entropy_basis import Thresholds
from crowdwise.simulate import confused_crowd


def near_misses(n_workers, n_classes, random_state):
    """Workers who shift the scale by their own bias, and blur it."""
    rng = np.random.default_rng(random_state)
    scale = np.arange(n_classes)
    bias = rng.normal(0.0, 0.7, (n_workers, 1, 1))
    distance = np.abs(scale[:, None] + bias - scale)
    odds = np.exp(-1.5 * distance)
    return odds / odds.sum(axis=2, keepdims=True)


@pytest.fixture(scope="module")
def crowd():
    confusion = near_misses(5, 4, random_state=0)
    return confused_crowd(confusion, 12, 4, prior=[0.4, 0.3, 0.2, 0.1], random_state=0)


def slow_effect(parameters, n_classes):
    """A sum over thresholds and over the sides of truth and label, term by term."""
    effect = np.zeros((n_classes, n_classes))
    place = iter(parameters)
    for truth_above in (True, False):
        for label_above in (True, False):
            for threshold in range(1, n_classes):
                parameter = next(place)
                for k in range(n_classes):
                    for label in range(n_classes):
                        if (k >= threshold) == truth_above and (label >= threshold) == label_above:
                            effect[k, label] += parameter
    return effect


def in_full(parameters):
    """The papers' parameters, one for either side of the label, with the same sum of squares."""
    above = parameters.reshape(-1, 2, 1, 3) * np.sqrt(0.5)  # (unit, side of truth, 1, threshold)
    return np.concatenate([above, -above], axis=2).reshape(-1, 12)


def test_effect_equals_the_plain_loops():
    parameters = np.random.default_rng(1).normal(size=(3, 6))
    expected = [slow_effect(row, 4) for row in in_full(parameters)]
    assert_allclose(Thresholds(4).effect(parameters), expected)
    assert_allclose((in_full(parameters) ** 2).sum(axis=1), (parameters**2).sum(axis=1))


def test_newton_step_solves_its_equation():
    rng = np.random.default_rng(2)
    given, expected = rng.gamma(1.0, 5.0, (2, 2, 3, 3))
    expected[1, 2] = 0.0  # a truth that a unit never saw
    parameters, penalty, basis = rng.normal(size=(2, 4)), 0.7, Thresholds(3)
    step = basis.step(given, expected, parameters, penalty)
    for unit in range(2):
        bracket, gradient = penalty * np.eye(4), -penalty * parameters[unit]
        for k in range(3):
            rows, counts = basis.matrices[:, k], expected[unit, k]  # (parameter, label)
            spread = np.diag(counts) - np.outer(counts, counts) / max(counts.sum(), 1e-300)
            bracket = bracket + rows @ spread @ rows.T
            gradient = gradient + rows @ (given[unit, k] - counts)
        assert_allclose(bracket @ step[unit], gradient)


@pytest.mark.usefixtures("either_loop")
def test_ends_where_the_penalized_likelihood_is_flat(crowd):
    annotations, basis = crowd.annotations, Thresholds(4)
    model = OrdinalMinimaxEntropy(regularization=0.05, max_iter=300, tol=0).fit(annotations)
    alpha, beta = penalties_of(MemoryEngine(annotations), 0.05)
    flat = basis.matrices.reshape(6, 16)

    def parameters_of(effect):  # the smallest that make up the effect
        return effect.reshape(-1, 16) @ np.linalg.pinv(flat)

    def objective(point):
        sigma, tau = np.split(in_full(point), [5])
        total = -alpha / 2 * (sigma**2).sum() - beta / 2 * (tau**2).sum()
        joint = np.zeros((12, 4))
        rows = zip(annotations.task, annotations.worker, annotations.label, strict=True)
        for i, w, label in rows:
            for k, effect in enumerate(slow_effect(sigma[w], 4) + slow_effect(tau[i], 4)):
                joint[i, k] += effect[label] - np.log(np.exp(effect).sum())
        return total + np.log(np.exp(joint).sum(axis=1)).sum()

    parts = [parameters_of(effect) for effect in (model.worker_effect_, model.task_effect_)]
    found = np.concatenate(parts).ravel()
    assert_allclose(basis.effect(parts[0]), model.worker_effect_, atol=1e-8)
    assert_allclose(model.objective_[-1], objective(found))
    some = np.r_[0:6, 30:42]  # a worker and two tasks: the others would take long

    def objective_at(point):
        moved = found.copy()
        moved[some] = point
        return objective(moved)

    assert_allclose(approx_fprime(found[some], objective_at, 1e-6), 0, atol=1e-3)


def test_two_classes_have_no_order(voters):
    annotations = voters.annotations
    two = annotations.filter(annotations.label < 2)
    binary = replace(two, classes=two.classes[:2])
    ordinal, plain = (
        method(regularization=0.25).fit(binary)
        for method in (OrdinalMinimaxEntropy, MinimaxEntropy)
    )
    assert_allclose(ordinal.posterior_, plain.posterior_, atol=1e-6)
    assert_allclose(ordinal.objective_, plain.objective_)


def test_scaled_penalty_grows_with_what_adds_up(crowd):
    assert OrdinalMinimaxEntropy().fit(crowd.annotations).regularization_ == 3 / 16


def test_compiled_loops_take_the_same_steps(crowd, monkeypatch):
    models = []
    for _ in range(2):
        models.append(OrdinalMinimaxEntropy(tol=0, max_iter=4).fit(crowd.annotations))
        monkeypatch.setattr(compiled, "native", None)
    for name in ("worker_effect_", "task_effect_", "posterior_", "objective_"):
        assert_allclose(*(getattr(model, name) for model in models), atol=1e-8)


def test_the_order_helps_when_labels_are_few():
    confusion = near_misses(20, 5, random_state=3)
    drawn = confused_crowd(confusion, 200, 5, random_state=4)
    ordinal, plain = (
        method().fit(drawn.annotations).posterior_.argmax(axis=1)
        for method in (OrdinalMinimaxEntropy, MinimaxEntropy)
    )
    assert np.mean(ordinal == drawn.truth) > np.mean(plain == drawn.truth) + 0.02


def test_recovers_the_workers_it_was_drawn_from():
    rng = np.random.default_rng(5)
    parameters = rng.normal([[1.4] * 3 + [-1.4] * 3] * 8, 0.6)  # mostly right
    confusion = softmax(Thresholds(4).effect(parameters), axis=2)
    drawn = confused_crowd(confusion, 800, 8, random_state=6)
    model = OrdinalMinimaxEntropy(regularization=0.05).fit(drawn.annotations)
    assert_allclose(model.confusion_, confusion, atol=0.12)


def test_other_orders_give_other_answers(crowd):
    annotations = crowd.annotations
    place = np.array([2, 0, 3, 1])
    label = place[annotations.label].astype(np.int32)
    moved = replace(annotations, label=label)
    before = OrdinalMinimaxEntropy().fit(annotations).posterior_
    after = OrdinalMinimaxEntropy().fit(moved).posterior_[:, place]
    assert np.abs(before - after).max() > 0.05


@pytest.mark.parametrize(("name", "accuracy"), [("bluebirds", 0.9167), ("weather_amt", 0.8533)])
def test_real_crowds(real_crowd, name, accuracy):
    crowd = real_crowd(name)
    labels = OrdinalMinimaxEntropy().fit_predict(crowd.annotations)
    assert_allclose(np.mean(labels[crowd.truth.index] == crowd.truth), accuracy, atol=0.005)


def test_a_mirror_image_is_turned_back():
    shares = np.random.default_rng(7).dirichlet([0.3] * 4, 50)
    assert_array_equal(order_truths(Thresholds(4), shares[:, ::-1].T @ shares, 50), [3, 2, 1, 0])
    assert_array_equal(
        order_truths(Thresholds(4), shares[:, [1, 0, 2, 3]].T @ shares, 50), [0, 1, 2, 3]
    )


def test_one_class_needs_no_parameters():
    assert_array_equal(OrdinalMinimaxEntropy().fit([[1, 1], [1, 1]]).posterior_, [[1.0], [1.0]])
