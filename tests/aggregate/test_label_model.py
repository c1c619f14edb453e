"""The label model against plain loops, finite differences, Snorkel's numbers and real crowds."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import approx_fprime

from crowdwise.aggregate import label_model
from crowdwise.aggregate.label_model import LabelModel, first_guess, misfit
from crowdwise.annotations import Annotations
from crowdwise.errors import AnnotationError, ParameterError
from crowdwise.inference import moments as _moments
from crowdwise.inference.moments import Moments, moments_of
from crowdwise.simulate import confused_crowd

CAREFUL = [[0.85, 0.1, 0.05], [0.15, 0.8, 0.05], [0.05, 0.2, 0.75]]
HASTY = [[0.5, 0.4, 0.1], [0.1, 0.8, 0.1], [0.1, 0.6, 0.3]]  # in doubt, the second class
PRIOR = np.array([0.5, 0.3, 0.2])


@pytest.fixture(scope="module")
def crowd():
    confusion = np.array([CAREFUL, CAREFUL, HASTY, CAREFUL, HASTY])
    return confused_crowd(confusion, 60, 3, prior=PRIOR, random_state=0)


def slow_indicators(annotations):
    """One row per task, one column per worker and label: the weight of the label."""
    table = np.zeros((annotations.n_tasks, annotations.n_workers * annotations.n_classes))
    weight = annotations.weight
    for row, (i, w, label) in enumerate(
        zip(annotations.task, annotations.worker, annotations.label, strict=True)
    ):
        table[i, w * annotations.n_classes + label] += 1 if weight is None else weight[row]
    return table


def slow_misfit(mu, annotations, prior, guess, penalty):
    """All moments written out, one pair at a time; ``mu`` is (worker and label, truth)."""
    table, n_classes = slow_indicators(annotations), len(prior)
    total = penalty * ((mu - guess) ** 2).sum()
    for a in range(len(mu)):
        total += (sum(prior * mu[a]) - table[:, a].mean()) ** 2
        for b in range(len(mu)):
            if a // n_classes != b // n_classes:
                seen = (table[:, a] * table[:, b]).mean()
                total += (seen - sum(prior * mu[a] * mu[b])) ** 2
    return total


def slow_fit(annotations, prior, n_steps, start=0.5, precision=0.7, penalty=0.0, rate=0.01):
    """Gradient descent with momentum on the plain error, by finite differences."""
    table, n_classes = slow_indicators(annotations), len(prior)
    guess = np.zeros((table.shape[1], n_classes))
    for a in range(len(guess)):
        label = a % n_classes
        guess[a, label] = min(table[:, a].mean() * precision / prior[label], 1.0)
    mu, velocity, objective = start * guess, np.zeros_like(guess), []

    def error(point):
        return slow_misfit(point.reshape(guess.shape), annotations, prior, guess, penalty)

    for _ in range(n_steps):
        objective.append(-error(mu.ravel()))
        velocity = 0.9 * velocity + approx_fprime(mu.ravel(), error, 1e-7).reshape(mu.shape)
        mu = mu - rate * velocity
    rates = mu.reshape(-1, n_classes, n_classes).swapaxes(1, 2)
    return np.clip(rates, 0.01, 0.99), objective


@pytest.mark.parametrize("penalty", [0.0, 0.3])
def test_misfit_and_its_slope_equal_the_plain_loops(crowd, penalty):
    weight = np.random.default_rng(1).choice([0.5, 1, 2], crowd.annotations.n_annotations)
    annotations = replace(crowd.annotations, weight=weight.astype(np.float32))
    rng = np.random.default_rng(2)
    rates, guess = rng.uniform(0.0, 0.5, (2, 5, 3, 3))
    moments = moments_of(annotations)
    error, slope = misfit(rates, PRIOR, moments, guess, penalty)
    flat = guess.reshape(15, 3)
    assert_allclose(error, slow_misfit(rates.reshape(15, 3), annotations, PRIOR, flat, penalty))

    def at(point):
        return misfit(point.reshape(5, 3, 3), PRIOR, moments, guess, penalty)[0]

    assert_allclose(approx_fprime(rates.ravel(), at, 1e-7), slope.ravel(), rtol=1e-4, atol=1e-5)


def test_equals_the_plain_loops(crowd):
    options = {"start": 0.8, "precision": 0.6, "penalty": 0.2}
    model = LabelModel(class_prior=PRIOR, max_iter=4, **options).fit(crowd.annotations)
    rates, objective = slow_fit(crowd.annotations, PRIOR, 4, **options)
    assert_allclose(model.rates_, rates, atol=1e-5)
    assert_allclose(model.objective_, objective, rtol=1e-5)
    assert_allclose(model.confusion_, rates / rates.sum(axis=2, keepdims=True), atol=1e-4)
    assert model.n_iter_ == 4


def test_only_labels_that_were_given_count(crowd):
    model = LabelModel().fit(crowd.annotations)
    expected = np.tile(model.prior_, (60, 1))
    rows = zip(
        crowd.annotations.task, crowd.annotations.worker, crowd.annotations.label, strict=True
    )
    for i, w, label in rows:
        expected[i] *= model.rates_[w, :, label]
    assert_allclose(model.posterior_, expected / expected.sum(axis=1, keepdims=True))


def test_recovers_the_rates_of_two_classes():
    rng = np.random.default_rng(3)
    confusion = rng.dirichlet([1.0] * 2, (10, 2)) * 0.5 + 0.5 * np.eye(2)
    prior = [0.65, 0.35]
    drawn = confused_crowd(confusion, 5000, 10, prior=prior, random_state=4)
    annotations = drawn.annotations.filter(rng.random(drawn.annotations.n_annotations) < 0.7)
    model = LabelModel(class_prior=prior, max_iter=500).fit(annotations)
    assert_allclose(model.rates_, 0.7 * confusion, atol=0.03)
    assert_allclose(model.confusion_, confusion, atol=0.03)


def test_more_classes_leave_a_rotation_open():
    """Rates turned about the first moments fit just as well, as the docstring says."""
    rng = np.random.default_rng(8)
    rates, root = rng.uniform(0.0, 0.3, (4, 3, 3)), np.sqrt(PRIOR)
    plane = np.linalg.qr(np.column_stack([root, rng.normal(size=(3, 2))]))[0][:, 1:]
    turn = np.outer(root, root) + plane @ np.array([[0.6, -0.8], [0.8, 0.6]]) @ plane.T
    turned = rates * root @ turn / root
    assert np.abs(turned - rates).max() > 0.05
    assert_allclose(turned @ PRIOR, rates @ PRIOR)
    for a, b in np.ndindex(4, 4):
        assert_allclose(turned[a] * PRIOR @ turned[b].T, rates[a] * PRIOR @ rates[b].T)


def test_untangles_truths_that_are_as_likely():
    rng = np.random.default_rng(5)
    rates = rng.uniform(0.0, 0.1, (4, 3, 3)) + 0.5 * np.eye(3)
    assert_array_equal(label_model.match_truths(rates[:, :, [2, 0, 1]], np.full(3, 1 / 3)), rates)
    odd = np.array([0.5, 0.25, 0.25])  # the first truth is not to be mistaken for another
    assert_array_equal(label_model.match_truths(rates[:, :, [0, 2, 1]], odd), rates)
    swapped = rates[:, :, [1, 0, 2]]
    assert_array_equal(label_model.match_truths(swapped, odd), swapped)


def test_class_prior_is_uniform_given_or_the_mean_share(crowd):
    annotations = crowd.annotations
    assert_allclose(LabelModel().fit(annotations).prior_, 1 / 3)
    assert_allclose(LabelModel(class_prior=[5, 3, 2]).fit(annotations).prior_, PRIOR)
    shares = annotations.shares()
    model = LabelModel(class_prior="estimate").fit(annotations)
    assert_allclose(model.prior_, (shares.sum(axis=0) + 1) / 63)
    gold = dict.fromkeys(annotations.tasks[:20], annotations.classes[2])
    shares[:20] = [0, 0, 1]
    model = LabelModel(class_prior="estimate").fit(annotations, gold=gold)
    assert_allclose(model.prior_, (shares.sum(axis=0) + 1) / 63)


def test_first_guess_is_capped():
    label, prior = np.array([[0.9, 0.1]]), np.array([0.4, 0.6])
    assert_allclose(first_guess(label, prior, 0.7), [[[1.0, 0.0], [0.0, 0.07 / 0.6]]])


@pytest.mark.parametrize(("n_tasks", "rate"), [(1, 0.01), (100, 0.01), (101, 0.001), (9000, 1e-4)])
def test_floor_falls_with_the_number_of_tasks(n_tasks, rate):
    assert_allclose(label_model.smallest_rate(n_tasks), rate)


def test_floor_keeps_rates_off_zero_and_one(crowd):
    free, kept = (LabelModel(floor=f).fit(crowd.annotations).rates_ for f in (0.0, 0.3))
    assert free.min() < 0.3
    assert free.max() > 0.5
    assert_allclose(kept, np.clip(free, 0.3, 0.7))


def test_momentum_carries_steps_on(crowd):
    objective = [LabelModel(momentum=m).fit(crowd.annotations).objective_ for m in (0.0, 0.9)]
    assert objective[0][0] == objective[1][0]
    assert objective[0][20] < objective[1][20]


def test_shortens_steps_that_diverge():
    confusion = np.array([CAREFUL] * 150)
    drawn = confused_crowd(confusion, 80, 150, random_state=6)
    model = LabelModel(learning_rate=0.1).fit(drawn.annotations)
    assert model.learning_rate_ < 0.1
    assert np.isfinite(model.rates_).all()
    assert model.objective_[-1] > model.objective_[0]
    assert_array_equal(model.posterior_.argmax(axis=1), drawn.truth)


def test_thousands_of_workers_are_fine():
    rng = np.random.default_rng(7)
    many = Annotations.from_codes(
        np.repeat(np.arange(3000), 3), rng.permutation(9000), rng.integers(0, 20, 9000)
    )
    moments = moments_of(many)
    assert moments.pair.shape == (180_000, 180_000)
    assert moments.pair.nnz == 3000 * 6
    assert np.isfinite(LabelModel(max_iter=2).fit(many).posterior_).all()


def test_own_pairs_are_left_out():
    annotations = Annotations.from_matrix([[0, 1, -1], [1, 1, 0]])
    moments = moments_of(annotations)
    expected = np.zeros((6, 6))
    for a, b in [(0, 3), (1, 3), (1, 4), (3, 4)]:  # worker * 2 + label
        expected[a, b] = expected[b, a] = 0.5
    assert isinstance(moments, Moments)
    assert_array_equal(moments.pair.toarray(), expected)
    assert_array_equal(moments.label, [[0.5, 0.5], [0.0, 1.0], [0.5, 0.0]])


def test_says_when_moments_would_not_fit(crowd, monkeypatch):
    monkeypatch.setattr(_moments, "MOST_PAIRS", 200)
    with pytest.raises(ParameterError, match=r"15 pairs .* 225 second moments(.|\n)*DawidSkene"):
        LabelModel().fit(crowd.annotations)


def test_needs_three_workers():
    with pytest.raises(AnnotationError, match=r"there are 2(.|\n)*at least three workers"):
        LabelModel().fit([[0, 1], [1, 1]])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("class_prior", "votes"),
        ("precision", 2.0),
        ("start", 0.0),
        ("penalty", -1.0),
        ("learning_rate", 0.0),
        ("momentum", 1.5),
        ("floor", 0.7),
        ("max_iter", 0),
    ],
)
def test_refuses_bad_parameters(crowd, name, value):
    with pytest.raises(ValueError, match=f"'{name}' parameter of LabelModel"):
        LabelModel(**{name: value}).fit(crowd.annotations)


@pytest.mark.parametrize(
    ("name", "accuracy"),
    [
        ("bluebirds", 0.8889),
        ("wordsim", 0.9000),
        ("rte", 0.7725),
        ("mgc", 0.7500),
        ("face", 0.6541),
        ("product", 0.7232),
        ("medical_causes", 0.3197),
    ],
)
def test_snorkels_numbers(real_crowd, name, accuracy):
    """What Snorkel 0.10 gives with its default settings and a starting scale of 0.417."""
    crowd = real_crowd(name)
    labels = LabelModel(start=0.417).fit_predict(crowd.annotations)
    assert_allclose(np.mean(labels[crowd.truth.index] == crowd.truth), accuracy, atol=2e-4)


def test_tasks_that_nobody_labels_lower_the_rates(crowd):
    votes = crowd.annotations
    more = Annotations.from_codes(
        votes.task, votes.worker, votes.label, tasks=np.arange(120), classes=votes.classes
    )
    rates, fewer = (LabelModel().fit(data).rates_ for data in (votes, more))
    assert fewer.sum() < 0.6 * rates.sum()
