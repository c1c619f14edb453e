"""New tasks lie where, and are labeled as, plain loops say."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.utils import check_random_state

from crowdwise import Annotations
from crowdwise.errors import ParameterError
from crowdwise.evaluate import certainty
from crowdwise.learn import CrowdSMOTE
from crowdwise.learn.crowd_smote import amounts, distances

TASKS, WORKERS, CLASSES = 40, 6, 3


@pytest.fixture(scope="module")
def crowd():
    """Three classes of 25, 10 and 5 tasks in the plane; workers skip half of the tasks."""
    rng = np.random.default_rng(0)
    truth = np.repeat([1, 2, 0], [25, 10, 5])
    X = rng.normal(size=(TASKS, 2)) + 3.0 * np.array([[0, 0], [1, 0], [0, 1]])[truth]
    pairs = [(t, w) for t in range(TASKS - 1) for w in range(WORKERS) if rng.random() < 0.5]
    task, worker = np.array(pairs).T
    label = np.where(rng.random(len(task)) < 0.7, truth[task], rng.integers(0, 3, len(task)))
    votes = Annotations.from_codes(
        task,
        worker,
        label,
        tasks=np.arange(TASKS),
        workers=np.arange(WORKERS),
        classes=np.arange(CLASSES),
    )
    return X, votes, truth


def nearest(X, where, among, k):
    """The k tasks nearest to a place, one distance at a time."""
    away = sorted((float(((X[i] - where) ** 2).sum()), i) for i in among)
    return [i for _, i in away[:k]]


def test_every_class_is_filled_up(crowd):
    X, votes, truth = crowd
    new = CrowdSMOTE().generate(X, votes, truth, random_state=0)
    assert np.bincount(new.truth).tolist() == [20, 0, 15]
    assert_array_equal(truth[new.origin], new.truth)
    often = np.bincount(new.origin, minlength=TASKS)
    for number, short in ((0, 20), (2, 15)):
        own = often[truth == number]
        assert own.max() - own.min() <= 1  # all equally often, and some once more
        assert own.sum() == short


def test_amounts_by_hand():
    truth = np.array([0] * 9 + [2] * 4 + [3] + [-1] * 5)
    assert amounts(truth, 5, 1.0).tolist() == [0, 0, 5, 8, 0]
    assert amounts(truth, 5, 0.5).tolist() == [0, 0, 0, 3, 0]
    assert amounts(np.array([-1, -1]), 2, 1.0).tolist() == [0, 0]


@pytest.mark.parametrize("rule", ["intent", "printed"])
def test_places_equal_the_plain_loops(crowd, rule):
    X, votes, truth = crowd
    new = CrowdSMOTE(n_neighbors=3, delta_rule=rule, jitter=0.0).generate(X, votes, truth, 1)
    sure = certainty(votes)["certainty"].to_numpy()
    for i, r, delta, place in zip(new.origin, new.neighbor, new.delta, new.X, strict=True):
        same = [t for t in range(TASKS) if truth[t] == truth[i] and t != i]
        assert r in nearest(X, X[i], same, 3)
        share = sure[r] if rule == "intent" else sure[i]
        assert delta == pytest.approx(share / (sure[i] + sure[r]))
        assert_allclose(place, (1 - delta) * X[i] + delta * X[r])
    assert_allclose(new.between(X[new.origin], X[new.neighbor]), new.X)
    assert_allclose(
        new.between(X[new.origin] ** 3, X[new.neighbor] ** 3)[-1],
        (1 - delta) * X[i] ** 3 + delta * X[r] ** 3,
    )


def test_a_new_task_is_nearer_to_the_surer_one_only_by_intent():
    rng = check_random_state(0)
    here, there = np.full(500, 20.0), np.full(500, 2.0)
    near = distances(here, there, "intent", 0.1, rng)
    far = distances(here, there, "printed", 0.1, rng)
    assert near.mean() == pytest.approx(1 / 11, abs=0.02)
    assert far.mean() == pytest.approx(10 / 11, abs=0.02)
    assert near.min() == 0.0  # 1/11 less a tenth is cut at 0
    assert far.max() == 1.0
    assert near.max() <= 1 / 11 + 0.1
    even = distances(here, there, "uniform", 0.1, rng)
    assert (even.min(), even.max(), even.mean()) == pytest.approx((0, 1, 0.5), abs=0.05)


def test_labels_are_the_workers_own_nearby(crowd):
    X, votes, truth = crowd
    new = CrowdSMOTE(n_neighbors=3).generate(X, votes, truth, random_state=2)
    told = sorted(set(votes.task.tolist()))
    given = dict(zip(zip(votes.task, votes.worker, strict=True), votes.label, strict=True))
    made = new.annotations
    said = dict(zip(zip(made.task, made.worker, strict=True), made.label, strict=True))
    for row, place in enumerate(new.X):
        near = nearest(X, place, told, 3)
        for worker in range(WORKERS):
            own = [given[t, worker] for t in near if (t, worker) in given]
            assert (row, worker) in said or not own
            if own:
                assert said[row, worker] in own
            else:
                assert (row, worker) not in said


def test_samples_keep_errors_and_majorities_hide_them():
    # One place, five neighbors; the worker says 0 three times and 1 twice, by weight 3 to 4.
    X = np.zeros((5, 1))
    names = {"tasks": np.arange(6), "workers": np.arange(1), "classes": np.arange(2)}
    X = np.concatenate([X, [[50.0]]])
    labels, weight = [0, 0, 0, 1, 1], [1.0, 1.0, 1.0, 2.0, 2.0]
    truth = np.array([0, 0, 0, 0, 0, 1])
    votes = Annotations.from_codes(range(5), [0] * 5, labels, weight=weight, **names)
    share = []
    for seed in range(200):
        new = CrowdSMOTE().generate(X, votes, truth, random_state=seed)
        assert new.truth.tolist() == [1] * 4
        assert_allclose(new.X, 50.0)  # a class of one task moves nowhere
        share += new.annotations.label.tolist()
    assert np.mean(share) == pytest.approx(4 / 7, abs=0.04)
    new = CrowdSMOTE(copy="majority").generate(X, votes, truth, random_state=0)
    assert new.annotations.label.tolist() == [1] * 4


def test_tied_majorities_are_drawn():
    X, truth = np.array([[0.0], [0.0], [9.0]]), np.array([0, 0, 1])
    votes = Annotations.from_matrix([[0, 1], [1, 0], [np.nan, np.nan]])
    found = [
        CrowdSMOTE(copy="majority").generate(X, votes, truth, seed).annotations.label
        for seed in range(60)
    ]
    assert np.mean(found) == pytest.approx(0.5, abs=0.2)


def test_soft_labels_are_drawn_by_their_mass():
    X, truth = np.array([[0.0], [0.0], [9.0]]), np.array([0, 0, 1])
    names = {"tasks": np.arange(3), "workers": np.arange(1), "classes": np.arange(2)}
    soft = [[0.9, 0.1], [0.9, 0.1]]
    votes = Annotations.from_codes([0, 1], [0, 0], [0, 0], soft=soft, **names)
    found = [
        CrowdSMOTE().generate(X, votes, truth, random_state=s).annotations.label for s in range(400)
    ]
    assert np.mean(found) == pytest.approx(0.1, abs=0.04)


def test_one_seed_gives_one_result(crowd):
    X, votes, truth = crowd
    first, again, other = (
        CrowdSMOTE().generate(X, votes, truth, random_state=s) for s in (3, 3, 4)
    )
    assert_array_equal(first.X, again.X)
    assert first.annotations.equals(again.annotations)
    assert not np.array_equal(first.X, other.X)


def test_balanced_classes_need_nothing(crowd):
    X, votes, _ = crowd
    new = CrowdSMOTE().generate(X[:4], votes[:4], [0, 0, 1, 1], random_state=0)
    assert len(new.truth) == new.annotations.n_tasks == 0


@pytest.mark.parametrize(
    "wrong",
    [[0, 1], np.array(["x"] * TASKS), np.full(TASKS, 9), np.full(TASKS, 0.5)],
    ids=["short", "names", "other classes", "floats"],
)
def test_refuses_truths_that_make_no_sense(crowd, wrong):
    X, votes, _ = crowd
    with pytest.raises(ParameterError, match="truth"):
        CrowdSMOTE().generate(X, votes, wrong)


@pytest.mark.parametrize("settings", [{"delta_rule": "mean"}, {"copy": "all"}, {"jitter": 2.0}])
def test_refuses_what_makes_no_sense(crowd, settings):
    with pytest.raises(ValueError, match=f"'{next(iter(settings))}' parameter of CrowdSMOTE"):
        CrowdSMOTE(**settings).generate(*crowd)


def test_refuses_features_that_are_missing(crowd):
    X, votes, truth = crowd
    broken = X.copy()
    broken[3, 1] = np.nan
    with pytest.raises(ParameterError, match="1 values that are missing"):
        CrowdSMOTE().generate(broken, votes, truth)


def test_the_rows_of_a_frame_find_their_tasks(crowd):
    X, votes, truth = crowd
    frame = pd.DataFrame(X, index=votes.tasks)[::-1]
    expected = CrowdSMOTE().generate(X, votes, truth, random_state=0)
    assert_allclose(CrowdSMOTE().generate(frame, votes, truth, random_state=0).X, expected.X)
