"""A committee says the mean of what its members say."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import crowdwise
from crowdwise.errors import ParameterError
from crowdwise.learn import (
    EM,
    LIA,
    MLP,
    Committee,
    NetClassifier,
    Raykar,
    SpeeLFC,
    Training,
    TwoStage,
)
from crowdwise.simulate import label_by_crowd

BRIEF = Training(learning_rate=0.05, epochs=20, device="cpu")


@pytest.fixture(scope="module")
def crowd():
    rng = np.random.default_rng(0)
    truth = rng.choice(3, size=60, p=[0.6, 0.3, 0.1])
    X = rng.normal(size=(60, 4)) + 2.0 * np.eye(3, 4)[truth]
    confusion = 0.6 * np.eye(3) + 0.4 * rng.dirichlet(np.ones(3), (6, 3))
    return X, truth, label_by_crowd(truth, confusion, 3, random_state=0)


@pytest.fixture(scope="module")
def model(crowd):
    X, _, votes = crowd
    one = SpeeLFC(truth=MLP(hidden=(6,)), training=BRIEF)
    return Committee(one, n_members=4, random_state=3).fit(X, votes)


def test_everything_is_a_plain_mean(model, crowd):
    X, _, votes = crowd
    members = model.members_
    assert len(members) == 4
    for name in ("posterior_", "confusion_", "worker_accuracy_"):
        expected = sum(np.asarray(getattr(one, name)) for one in members) / 4
        assert_allclose(np.asarray(getattr(model, name)), expected, atol=1e-12)
    for name in ("predict_proba", "predict_worker_proba", "predict_worker_accuracy"):
        expected = sum(getattr(one, name)(X) for one in members) / 4
        assert_allclose(getattr(model, name)(X), expected, atol=1e-12)
    asked = votes.workers[[2, 0]]
    assert_allclose(
        model.predict_worker_proba(X, asked), model.predict_worker_proba(X)[:, [2, 0]], atol=1e-12
    )


def test_members_start_elsewhere(model, crowd):
    first, second = (one.predict_proba(crowd[0]) for one in model.members_[:2])
    assert np.abs(first - second).max() > 1e-3


def test_its_likelihood_is_at_least_the_members_mean(model, crowd):
    X, truth, votes = crowd
    alone = [one.log_likelihood(X, votes) for one in model.members_]
    assert model.log_likelihood(X, votes) > np.mean(alone)
    right = [np.log(one.predict_proba(X)[np.arange(60), truth]).mean() for one in model.members_]
    assert np.log(model.predict_proba(X)[np.arange(60), truth]).mean() > np.mean(right)


def test_side_by_side_is_the_same(model, crowd):
    X, _, votes = crowd
    again = Committee(model.learner, n_members=4, n_jobs=2, random_state=3).fit(X, votes)
    assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_gold_and_worker_features_reach_the_members(crowd):
    X, truth, votes = crowd
    gold = {votes.tasks[0]: int(votes.classes[(truth[0] + 1) % 3])}
    one = LIA(objective=EM(1, 2), training=BRIEF)
    features = np.random.default_rng(1).normal(size=(votes.n_workers, 2))
    model = Committee(one, n_members=2, random_state=0).fit(X, votes, features, gold)
    assert_allclose(model.posterior_[0], np.eye(3)[(truth[0] + 1) % 3], atol=1e-6)
    newcomer = model.predict_worker_proba(X, ["new"], features[:1])
    expected = sum(m.predict_worker_proba(X, ["new"], features[:1]) for m in model.members_) / 2
    assert_allclose(newcomer, expected, atol=1e-12)


def test_it_comes_back_from_a_file(model, crowd, tmp_path):
    model.save(tmp_path / "committee")
    again = crowdwise.load(tmp_path / "committee")
    assert_array_equal(again.predict_proba(crowd[0]), model.predict_proba(crowd[0]))


def test_members_without_a_seed_are_refused(crowd):
    X, _, votes = crowd
    with pytest.raises(ParameterError, match="random_state"):
        Committee(Raykar()).fit(X, votes)


def test_a_part_may_have_the_seed(crowd):
    X, votes = crowd[0], crowd[-1]
    net = NetClassifier(truth=MLP(hidden=(4,)), training=Training(epochs=3))
    model = Committee(TwoStage(classifier=net), n_members=2, random_state=0).fit(X, votes)
    one, other = (member.predict_proba(X) for member in model.members_)
    assert not np.allclose(one, other)
