"""The generative model against plain loops, finite differences, one-coin and real crowds."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import approx_fprime
from sklearn.exceptions import ConvergenceWarning

from crowdwise.aggregate.generative_model import GenerativeModel, likelihood, log_confusion_of
from crowdwise.aggregate.one_coin import OneCoin
from crowdwise.inference import MemoryEngine
from crowdwise.simulate import confused_crowd, one_coin_confusion

ACCURACY = [0.95, 0.85, 0.75, 0.7, 0.6, 0.2]
PRIOR = np.array([0.5, 0.3, 0.2])


@pytest.fixture(scope="module")
def crowd():
    confusion = one_coin_confusion(ACCURACY, 3)
    return confused_crowd(confusion, 40, 4, prior=PRIOR, random_state=0)


def slow_likelihood(annotations, weight, prior, gold=None):
    """Log-likelihood of the labels given who labels what, one annotation at a time."""
    joint = np.tile(prior, (annotations.n_tasks, 1))
    own = np.ones(annotations.n_annotations) if annotations.weight is None else annotations.weight
    for row, i in enumerate(annotations.task):
        w, label = annotations.worker[row], annotations.label[row]
        odds = np.full(annotations.n_classes, np.exp(-weight[w]))
        for k in range(annotations.n_classes):
            given = odds.copy()
            given[k] = np.exp(weight[w])
            joint[i, k] *= (given[label] / given.sum()) ** own[row]
    if gold is not None:
        for i in np.flatnonzero(gold >= 0):
            joint[i, np.arange(len(prior)) != gold[i]] = 0.0
    return np.log(joint.sum(axis=1)).sum()


def test_likelihood_and_its_slopes_equal_the_plain_loops(crowd):
    rng = np.random.default_rng(1)
    own = rng.choice([0.5, 1.0, 2.0], crowd.annotations.n_annotations)
    annotations = replace(crowd.annotations, weight=own.astype(np.float32))
    weight, gold = rng.normal(0.5, 1.0, 6), np.full(40, -1)
    gold[:5] = crowd.truth[:5]

    def at(point):
        prior = np.exp(point[6:]) / np.exp(point[6:]).sum()
        return slow_likelihood(annotations, point[:6], prior, gold)

    value, slopes = likelihood(MemoryEngine(annotations, gold), weight, np.log(PRIOR))
    point = np.concatenate([weight, np.log(PRIOR)])
    assert_allclose(value, at(point))
    assert_allclose(slopes, approx_fprime(point, at, 1e-7), rtol=1e-4, atol=1e-4)


def test_is_the_log_linear_model_with_a_factor_for_labeling_at_all(crowd):
    annotations = crowd.annotations
    model = GenerativeModel(penalty=0.0).fit(annotations)
    weight, rate = model.weight_, model.propensity_
    total = np.exp(weight) + 2 * np.exp(-weight)
    labeling = np.log(rate / (1 - rate)) - np.log(total)  # the weight for labeling at all
    labels = annotations.to_snorkel()  # -1 where there is none
    evidence = 0.0
    for row in labels:
        joint = np.full(3, 1 / 3)
        for k in range(3):
            for w, label in enumerate(row):
                choices = [0.0] + [
                    labeling[w] + weight[w] * (1 if c == k else -1) for c in range(3)
                ]
                joint[k] *= np.exp(choices[label + 1]) / np.exp(choices).sum()
        evidence += np.log(joint.sum())
    n_labels = (labels >= 0).sum(axis=0)
    taking_part = n_labels * np.log(rate) + (40 - n_labels) * np.log(1 - rate)
    assert_allclose(evidence, model.objective_[-1] + taking_part.sum())
    assert_allclose(rate, n_labels / 40)


@pytest.mark.parametrize("prior", ["uniform", "estimate", [0.2, 0.5, 0.3]], ids=str)
def test_ends_where_the_objective_is_flat(crowd, prior):
    model = GenerativeModel(class_prior=prior, penalty=0.5, initial_weight=0.7, tol=0)
    model.fit(crowd.annotations)

    def objective(point):
        weight, logit = np.split(point, [6])
        prior = np.exp(logit) / np.exp(logit).sum()
        value = slow_likelihood(crowd.annotations, weight, prior)
        learned = (logit**2).sum() if model.class_prior == "estimate" else 0.0
        return value - 0.25 * ((weight - 0.7) ** 2).sum() - 0.25 * learned

    logit = np.log(model.prior_) - np.log(model.prior_).mean()
    found = np.concatenate([model.weight_, logit])
    assert_allclose(model.objective_[-1], objective(found))
    free = slice(None) if isinstance(prior, str) and prior == "estimate" else slice(6)
    assert_allclose(approx_fprime(found, objective, 1e-6)[free], 0, atol=1e-3)


def test_class_prior_is_uniform_given_or_learned(crowd):
    uniform, given, learned = (
        GenerativeModel(class_prior=prior).fit(crowd.annotations).prior_
        for prior in ("uniform", [5, 3, 2], "estimate")
    )
    assert_allclose(uniform, 1 / 3)
    assert_allclose(given, PRIOR)
    assert_allclose(learned, np.bincount(crowd.truth) / 40, atol=0.15)
    assert learned.std() > 0.05


def test_without_a_penalty_it_is_one_coin(voters):
    model = GenerativeModel(penalty=0.0, tol=0).fit(voters.annotations)
    other = OneCoin(smoothing=1e-9, max_iter=2000, tol=1e-12).fit(voters.annotations)
    assert_allclose(model.skills_, other.skills_, atol=1e-4)
    assert_allclose(model.posterior_, other.posterior_, atol=1e-3)
    assert_allclose(model.objective_[-1], other.objective_[-1], rtol=1e-6)


def test_a_penalty_pulls_to_the_initial_weight(voters):
    free, tied = (GenerativeModel(penalty=p).fit(voters.annotations).weight_ for p in (0.1, 1e6))
    assert np.abs(free - 1.0).max() > 0.5
    assert_allclose(tied, 1.0, atol=1e-3)


def test_weights_are_half_log_odds():
    weight = np.array([-0.5, 0.0, 2.0])
    confusion = np.exp(log_confusion_of(weight, 4))
    assert_allclose(confusion.sum(axis=2), 1)
    assert_allclose(confusion[1], 0.25)
    assert_allclose(confusion[2, 3, 3] / confusion[2, 3, 0], np.exp(4.0))


def test_recovers_the_workers_it_was_drawn_from():
    drawn = confused_crowd(one_coin_confusion(ACCURACY, 3), 2000, 5, random_state=1)
    model = GenerativeModel().fit(drawn.annotations)
    assert_allclose(model.skills_, ACCURACY, atol=0.04)
    assert_allclose(model.propensity_, 5 / 6, atol=0.03)


def test_workers_learn_from_gold(crowd):
    gold = dict(zip(crowd.annotations.tasks, crowd.annotations.classes[crowd.truth], strict=True))
    model = GenerativeModel(penalty=1e-6).fit(crowd.annotations, gold=gold)
    right = crowd.truth[crowd.annotations.task] == crowd.annotations.label
    share = np.bincount(crowd.annotations.worker, right) / np.bincount(crowd.annotations.worker)
    some = share < 1  # a worker who never errs has no finite weight
    assert_allclose(model.skills_[some], share[some], atol=1e-3)


def test_says_when_it_stops_early(voters):
    with pytest.warns(ConvergenceWarning, match=r"max_iter=2 steps. Raise max_iter, or tol"):
        model = GenerativeModel(max_iter=2).fit(voters.annotations)
    assert model.n_iter_ == 2
    assert len(model.objective_) == 3


@pytest.mark.parametrize(
    ("name", "value"),
    [("class_prior", "votes"), ("initial_weight", 0.0), ("penalty", -1.0), ("max_iter", 0)],
)
def test_refuses_bad_parameters(crowd, name, value):
    with pytest.raises(ValueError, match=f"'{name}' parameter of GenerativeModel"):
        GenerativeModel(**{name: value}).fit(crowd.annotations)


@pytest.mark.parametrize(
    ("name", "accuracy"),
    [("bluebirds", 0.7222), ("wordsim", 0.9333), ("rte", 0.9250), ("mgc", 0.7929)],
)
def test_published_numbers_of_one_coin(real_crowd, name, accuracy):
    crowd = real_crowd(name)
    labels = GenerativeModel().fit_predict(crowd.annotations)
    assert_allclose(np.mean(labels[crowd.truth.index] == crowd.truth), accuracy, atol=0.005)
