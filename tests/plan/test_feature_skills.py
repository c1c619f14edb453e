"""Skills that depend on the features of tasks."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from crowdwise.errors import AnnotationError
from crowdwise.plan import FeatureSkills, Planner
from crowdwise.plan.feature_skills import SPREADS, Judgments
from crowdwise.simulate import ModelWorker, OneCoinWorker, simulate_crowd

TOPIC = np.random.RandomState(0).randint(2, size=300)
TRUTH = np.random.RandomState(1).randint(2, size=300)
X = np.column_stack([TOPIC + 0.1 * np.random.RandomState(2).standard_normal(300), TRUTH])


def draw(workers):
    return simulate_crowd(
        workers=workers, truth=TRUTH, n_classes=2, per_task=5, random_state=0
    ).annotations


@pytest.fixture(scope="module")
def specialists():
    """Workers 0 to 3 know the first topic, 4 to 7 the second; all know a little of the other."""

    def knows(topic):
        right = np.where(topic == TOPIC, 0.95, 0.6)[:, None]
        return ModelWorker(np.where(np.eye(2)[TRUTH] > 0, right, 1 - right), TRUTH)

    return draw([knows(0)] * 4 + [knows(1)] * 4)


def accuracy(skills, votes, tasks, workers):
    """How often the workers are expected to be right on the tasks, (task, worker)."""
    outlook = Planner().look(votes).outlook_
    ask, row = skills.of(outlook, np.array(workers)), np.arange(len(workers))
    parts = [ask(np.full(len(row), task), row)[0] for task in tasks]
    return np.array([np.einsum("nkk->n", part) / part.shape[-1] for part in parts])


def test_specialists_are_found_and_asked(specialists):
    tasks = [np.flatnonzero(topic == TOPIC)[0] for topic in (0, 1)]
    found = accuracy(FeatureSkills(X), specialists, tasks, range(8))
    assert found[0, :4].min() > found[0, 4:].max() + 0.05
    assert found[1, 4:].min() > found[1, :4].max() + 0.05
    plan = Planner(skills=FeatureSkills(X), evenly=0.0).next(
        specialists, budget=40, available=range(8)
    )
    knows = (plan["worker"].to_numpy(dtype=int) >= 4) == TOPIC[plan["task"].to_numpy(dtype=int)]
    assert knows.mean() > 0.9


def test_who_labeled_little_follows_the_others():
    right = np.where(TOPIC == 0, 0.95, 0.6)[:, None]
    proba = np.where(np.eye(2)[TRUTH] > 0, right, 1 - right)
    votes = draw([ModelWorker(proba, TRUTH)] * 6 + [ModelWorker(proba, TRUTH, activity=0.01)])
    tasks = [np.flatnonzero(topic == TOPIC)[0] for topic in (0, 1)]
    easy, hard = accuracy(FeatureSkills(X), votes, tasks, [6])[:, 0]
    assert np.bincount(votes.worker, minlength=7)[6] < 20
    assert easy > hard + 0.1


def test_unknown_workers_are_the_mean_of_the_workers(specialists):
    found = accuracy(FeatureSkills(X), specialists, [0, 1, 2], [*range(8), -1])
    assert (found[:, 8] > found[:, :8].min(axis=1)).all()
    assert (found[:, 8] < found[:, :8].max(axis=1)).all()


def test_features_that_tell_nothing_change_nothing():
    votes = draw([OneCoinWorker(share) for share in (0.95, 0.9, 0.8, 0.7, 0.65, 0.6)])
    outlook = Planner().look(votes).outlook_
    noise = np.random.RandomState(3).standard_normal((300, 4))
    confusion, answers = FeatureSkills(noise).of(outlook, np.arange(6))(np.arange(6), np.arange(6))
    assert_allclose(confusion, outlook.drawing()(np.arange(6)), atol=0.06)
    assert (answers == 1).all()


def test_slopes_are_the_most_probable_ones():
    """The penalized likelihood of each group by a general optimizer, at the spread chosen."""
    rng = np.random.RandomState(4)
    z, group = rng.standard_normal((400, 3)), np.sort(rng.randint(3, size=400))
    true = np.array([[1.0, 0.0, -0.5], [-1.0, 0.3, 0.0], [0.0, 0.0, 1.0]])
    odds = np.full(400, 0.5)
    hit = (rng.random_sample(400) < 1 / (1 + np.exp(-odds - (z * true[group]).sum(1)))) * 0.98
    found = Judgments(z, hit, rng.randint(4, size=400)).slopes(odds, group, 4)
    assert (found[3] == 0).all()  # a worker without labels

    def loss(slopes, one, spread):
        at = odds[group == one] + z[group == one] @ slopes
        own = (np.logaddexp(0, at) - hit[group == one] * at).sum()
        return own + (slopes**2).sum() / (2 * spread**2)

    expected = [
        np.array([minimize(loss, np.zeros(3), (one, s)).x for one in range(3)])
        for s in SPREADS
        if s
    ]
    assert min(np.abs(found[:3] - one).max() for one in expected) < 1e-3
    assert np.abs(found[:3] - true).max() < 0.6


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        (X[:-1], "X has 299 rows, but there are 300 tasks"),
        (np.where(X > 1, np.nan, X), "values that are missing or infinite"),
        (X.astype(str).astype(object) + "a", "not a number"),
        (X[:, 0], "has shape"),
    ],
)
def test_features_of_other_tasks_are_refused(specialists, bad, what):
    with pytest.raises(AnnotationError, match=what):
        Planner(skills=FeatureSkills(bad)).next(specialists, available=[0, 1])


def test_a_frame_of_features_is_put_in_order_by_name(specialists):
    shuffled = pd.DataFrame(X, index=specialists.tasks).sample(frac=1, random_state=0)
    plain, by_name = (
        Planner(target=1.0, skills=FeatureSkills(features)).next(specialists, available=[0, 1, 2])
        for features in (X, shuffled)
    )
    pd.testing.assert_frame_equal(plain, by_name)
