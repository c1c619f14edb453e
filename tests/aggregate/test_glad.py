"""GLAD against plain loops and finite differences, recovery, and real crowds."""

from functools import partial
from math import exp, log

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from crowdwise import Annotations
from crowdwise.aggregate import GLAD
from crowdwise.errors import ParameterError
from crowdwise.inference import MemoryEngine
from crowdwise.inference.engines import blocks
from crowdwise.inference.glad_steps import Abilities, GladSteps, at_ease
from crowdwise.inference.logistic import at_scale, normal_prior, responses_of

SMALL = 1e-4


def slow_joint(annotations, prior, skill, log_ease):
    """P(truth, labels) of each task, one annotation at a time."""
    joint = np.tile(prior, (annotations.n_tasks, 1))
    n_others = annotations.n_classes - 1
    for row, task in enumerate(annotations.task):
        worker, label = annotations.worker[row], annotations.label[row]
        weight = 1.0 if annotations.weight is None else float(annotations.weight[row])
        chance = 1 / (1 + exp(-skill[worker] * exp(log_ease[task])))
        for k in range(annotations.n_classes):
            joint[task, k] *= (chance if k == label else (1 - chance) / n_others) ** weight
    return joint


def slow_objective(annotations, prior, skill, log_ease, of_skill=(1, 1), of_ease=(1, 1), gold=None):
    joint = slow_joint(annotations, prior, skill, log_ease)
    if gold is not None:
        joint[gold >= 0] *= np.eye(annotations.n_classes)[gold[gold >= 0]]
    value = np.log(joint.sum(axis=1)).sum()
    value -= sum((a - of_skill[0]) ** 2 for a in skill) / 2 / of_skill[1]
    return value - sum((b - of_ease[0]) ** 2 for b in log_ease) / 2 / of_ease[1]


def slow_parts(annotations, posterior, skill, log_ease, priors):
    """The M-step's objective, its slope and curvature, split by worker and by task."""
    by_skill = np.zeros((3, annotations.n_workers))
    by_ease = np.zeros((3, annotations.n_tasks))
    for row, i in enumerate(annotations.task):
        w, label = annotations.worker[row], annotations.label[row]
        weight = 1.0 if annotations.weight is None else float(annotations.weight[row])
        right, ease = posterior[i, label], exp(log_ease[i])
        s = 1 / (1 + exp(-skill[w] * ease))
        value = right * log(s) + (1 - right) * log(1 - s)
        by_skill[:, w] += np.array([value, (right - s) * ease, s * (1 - s) * ease**2]) * weight
        x = skill[w] * ease
        bend = s * (1 - s) * x**2 - (right - s) * x
        by_ease[:, i] += np.array([value, (right - s) * x, bend]) * weight
    for parts, at, (mean, variance) in (
        (by_skill, np.array(skill), priors[0]),
        (by_ease, np.array(log_ease), priors[1]),
    ):
        parts[0] -= (at - mean) ** 2 / 2 / variance
        parts[1] -= (at - mean) / variance
        parts[2] = np.maximum(parts[2], 0) + 1 / variance
    return by_skill, by_ease


def slow_step(point, parts_at, side):
    """One Newton step for each coordinate, halved while its own part falls."""
    value, slope, curvature = parts_at(point)[side]
    step = np.clip(slope / curvature, -1, 1)
    for _ in range(30):
        worse = parts_at(point + step)[side][0] < value - 1e-12 * (1 + abs(value))
        step[worse] /= 2
    return point + step


def slow_fit(annotations, n_steps, of_skill, of_ease, prior=None, gold=None):
    """Generalized EM as loops; ``prior=None`` estimates it."""
    skill = np.full(annotations.n_workers, of_skill[0])
    log_ease = np.full(annotations.n_tasks, of_ease[0])
    estimated, objective = prior is None, []
    prior = np.full(annotations.n_classes, 1 / annotations.n_classes) if estimated else prior
    mask = np.ones((annotations.n_tasks, annotations.n_classes))
    if gold is not None:
        mask[gold >= 0] = np.eye(annotations.n_classes)[gold[gold >= 0]]
    joint = slow_joint(annotations, prior, skill, log_ease) * mask
    for _ in range(n_steps):
        posterior = joint / joint.sum(axis=1, keepdims=True)
        prior = posterior.mean(axis=0) if estimated else prior
        parts = partial(slow_parts, annotations, posterior, priors=(of_skill, of_ease))
        skill = slow_step(skill, partial(parts, log_ease=log_ease), side=0)
        log_ease = slow_step(log_ease, partial(parts, skill), side=1)
        joint = slow_joint(annotations, prior, skill, log_ease) * mask
        objective.append(
            slow_objective(annotations, prior, skill, log_ease, of_skill, of_ease, gold)
        )
    return skill, log_ease, prior, joint / joint.sum(axis=1, keepdims=True), objective


def same(model, expected):
    skill, log_ease, prior, posterior, objective = expected
    assert_allclose(model.skills_, skill)
    assert_allclose(model.log_ease_, log_ease)
    assert_allclose(model.difficulty_, np.exp(-log_ease))
    assert_allclose(model.prior_, prior)
    assert_allclose(model.posterior_, posterior, atol=1e-12)
    assert_allclose(model.objective_, objective)


@pytest.fixture(scope="module")
def few(voters):
    return voters.annotations[:60]


@pytest.mark.usefixtures("either_loop")
@pytest.mark.parametrize("prior", ["uniform", "estimate", [0.2, 0.5, 0.3]], ids=str)
def test_equals_the_plain_loops(few, prior):
    model = GLAD(class_prior=prior, max_iter=3, tol=0.0).fit(few)
    fixed = {"uniform": np.full(3, 1 / 3), "estimate": None}.get(
        str(prior), np.array([0.2, 0.5, 0.3])
    )
    same(model, slow_fit(few, 3, (1, 1), (1, 1), fixed))


@pytest.mark.usefixtures("either_loop")
def test_equals_the_plain_loops_with_weights_gold_and_other_priors(voters, weighted_voters):
    votes = weighted_voters[:40]
    gold = np.where(np.arange(40) < 10, voters.truth[:40], -1)
    model = GLAD(skill_prior=(0.5, 2.0), ease_prior=(0.2, 0.5), max_iter=3, tol=0.0)
    expected = slow_fit(votes, 3, (0.5, 2.0), (0.2, 0.5), np.full(3, 1 / 3), gold)
    same(model.fit(votes, gold=gold), expected)


@pytest.fixture(scope="module")
def somewhere(few):
    """A point that is no optimum of anything."""
    rng = np.random.default_rng(2)
    return rng.normal(0.5, 1, few.n_workers), rng.normal(0, 0.7, few.n_tasks), rng.random((60, 3))


@pytest.mark.usefixtures("either_loop")
def test_the_e_step_equals_the_plain_loop(few, somewhere):
    skill, log_ease, _ = somewhere
    prior = np.array([0.2, 0.5, 0.3])
    normal = normal_prior((1, 1), "prior")
    steps, now = GladSteps(MemoryEngine(few), normal, normal), Abilities(prior, skill, log_ease)
    joint = slow_joint(few, prior, skill, log_ease)
    assert_allclose(steps.posterior(now), joint / joint.sum(axis=1, keepdims=True))
    evidence = steps._sweep(now, now, move=False).evidence
    assert evidence == pytest.approx(np.log(joint.sum(axis=1)).sum())


@pytest.mark.usefixtures("either_loop")
def test_a_step_that_overshoots_is_halved(few, somewhere):
    skill, log_ease, _ = somewhere
    priors = (0.0, 50.0), (0.0, 50.0)
    steps = GladSteps(MemoryEngine(few), *(normal_prior(pair, "prior") for pair in priors))
    now = Abilities(np.full(3, 1 / 3), 4 * skill, log_ease - 3)
    found = steps.improve(steps._sweep(now, now, move=False), now.prior).at
    posterior = steps.posterior(now)
    parts = partial(slow_parts, few, posterior, priors=priors)
    expected = slow_step(now.skill, partial(parts, log_ease=now.log_ease), side=0)
    assert_allclose(found.skill, expected)
    eases = slow_step(now.log_ease, partial(parts, expected), side=1)
    assert_allclose(found.log_ease, eases)
    whole = np.abs(eases - now.log_ease)
    assert ((whole > 0) & (whole < 0.49) | (whole == 0.5)).any()  # a step is at most 1


def test_the_same_bits_on_any_number_of_threads(few, monkeypatch):
    monkeypatch.setattr(blocks, "CELLS_PER_BLOCK", 20)
    first, *others = (GLAD(max_iter=4, tol=0, n_jobs=n).fit(few) for n in (1, 2, 4, 16))
    for other in others:
        assert_array_equal(other.posterior_, first.posterior_)
        assert_array_equal(other.log_odds_, first.log_odds_)
        assert other.objective_ == first.objective_


@pytest.mark.parametrize("of", ["skill", "ease"])
def test_slopes_and_curvatures_are_finite_differences(few, somewhere, of):
    skill, log_ease, posterior = somewhere
    whole = MemoryEngine(few)._load((0, few.n_tasks))
    rows, prior = responses_of(whole, few.pairs.worker), normal_prior((0.7, 2.0), "prior")
    right = posterior.ravel()[rows.cell]

    def shape(shift):
        if of == "skill":
            ease = np.exp(log_ease)[rows.task]
            return prior.added_to(
                at_scale(skill + shift, ease, rows.worker, rows, right), skill + shift
            )
        return at_ease(log_ease + shift, rows=rows, right=right, prior=prior, skill=skill)

    before, here, after = (shape(step) for step in (-SMALL, 0.0, SMALL))
    slope = (after.value - before.value) / (2 * SMALL)
    assert_allclose(here.slope, slope, rtol=1e-5, atol=1e-6)
    bend = -(after.value - 2 * here.value + before.value) / SMALL**2
    # Where the data bend upwards only the prior's curvature, 1 / 2, is left.
    assert_allclose(here.curvature, np.maximum(bend, 0.5), rtol=1e-3, atol=1e-4)


def test_ends_where_the_log_posterior_is_flat(few):
    model = GLAD(tol=1e-13, max_iter=2000).fit(few)
    skill, log_ease = model.log_odds_, model.log_ease_
    assert model.objective_[-1] == pytest.approx(slow_objective(few, model.prior_, skill, log_ease))
    for point in (skill, log_ease):
        for j in range(0, len(point), 7):
            start, ends = point[j], []
            for step in (SMALL, -SMALL):
                point[j] = start + step
                ends.append(slow_objective(few, model.prior_, skill, log_ease))
            point[j] = start
            assert (ends[0] - ends[1]) / (2 * SMALL) == pytest.approx(0.0, abs=1e-3)


@pytest.fixture(scope="module")
def mixed():
    """Skills from a liar's to an expert's, tasks from hopeless to plain."""
    rng = np.random.default_rng(0)
    skill, log_ease = np.linspace(-1.0, 3.0, 20), rng.normal(0, 1, 1500)
    truth = rng.integers(0, 3, 1500)
    right = rng.random((1500, 20)) < 1 / (1 + np.exp(-np.exp(log_ease)[:, None] * skill))
    label = np.where(right, truth[:, None], (truth[:, None] + rng.integers(1, 3, (1500, 20))) % 3)
    return Annotations.from_matrix(label), truth, skill, log_ease


def test_recovers_the_crowd_it_was_drawn_from(mixed):
    annotations, truth, skill, log_ease = mixed
    model = GLAD(skill_prior=(1.0, 4.0), ease_prior=(0.0, 1.0)).fit(annotations)
    assert_allclose(model.skills_, skill, atol=0.35)
    assert np.corrcoef(np.log(model.difficulty_), -log_ease)[0, 1] > 0.6
    assert np.mean(model.labels_ == truth) > 0.9


def test_difficulty_is_the_inverse_of_ease(mixed):
    model = GLAD().fit(mixed[0])
    assert model.difficulty_.index.name == "task"
    assert_allclose(model.difficulty_, 1 / np.exp(model.log_ease_))
    split = mixed[0].votes().max(axis=1)  # the fewer agree, the harder the task
    assert model.difficulty_[split < 8].mean() > 2 * model.difficulty_[split > 14].mean()


def test_a_small_variance_makes_workers_and_tasks_alike(few):
    alike = GLAD(skill_prior=(2.0, 1e-9), ease_prior=(0.5, 1e-9)).fit(few)
    assert_allclose(alike.skills_, np.full(7, 2.0), atol=1e-5)
    assert_allclose(alike.difficulty_, np.full(60, exp(-0.5)), atol=1e-5)


def test_a_new_task_has_average_ease_and_a_known_one_its_own(few):
    model = GLAD().fit(few)
    skill = model.skills_[few.worker[0]]
    label = int(few.label[0])
    asked = Annotations.from_dict(
        {task: {few.workers[few.worker[0]]: label} for task in (0, 999)}, classes=[0, 1, 2]
    )
    ease = [exp(model.log_ease_[0]), exp(model.log_ease_.mean())]
    for found, one in zip(model.predict_proba(asked).to_numpy(), ease, strict=True):
        chance = 1 / (1 + exp(-skill * one))
        assert found[label] == pytest.approx(chance)


def test_gold_informs_the_other_tasks(voters):
    gold = np.where(np.arange(300) < 150, voters.truth, -1)
    without, informed = (GLAD().fit(voters.annotations, gold=g) for g in (None, gold))
    assert_array_equal(informed.posterior_[:150].argmax(axis=1), voters.truth[:150])
    assert np.abs(informed.posterior_ - without.posterior_)[150:].max() > 0.05


def test_says_so_when_it_runs_out_of_steps(few):
    with pytest.warns(ConvergenceWarning, match=r"GLAD stopped after max_iter=2 .* Raise"):
        GLAD(max_iter=2).fit(few)


@pytest.mark.parametrize("parameters", [{"class_prior": "even"}, {"max_iter": 0}, {"tol": -1.0}])
def test_refuses_other_values(parameters):
    with pytest.raises(ValueError, match=f"'{next(iter(parameters))}' parameter of GLAD"):
        GLAD(**parameters).fit([[0, 1], [1, 1]])


@pytest.mark.parametrize("name", ["skill_prior", "ease_prior"])
def test_refuses_a_prior_that_is_no_pair(name):
    with pytest.raises(ParameterError, match=f"{name}=.* cannot be used"):
        GLAD(**{name: (1.0, -1.0)}).fit([[0, 1], [1, 1]])


@pytest.mark.parametrize(
    ("name", "target"), [("bluebirds", 0.7222), ("wordsim", 0.9), ("rte", 0.925), ("mgc", 0.7957)]
)
def test_real_crowds(real_accuracy, name, target):
    assert real_accuracy(GLAD(), name) == pytest.approx(target, abs=0.005)
