"""Probabilities of labels, against plain loops."""

import math

import numpy as np
import pytest

from crowdwise.errors import ParameterError
from crowdwise.simulate import Behavior, Colluder, ConfusedWorker, Drifter, OneCoinWorker, Spammer
from crowdwise.simulate.behavior import temper

PRIOR = np.array([0.6, 0.3, 0.1])
CONFUSION = [[0.8, 0.2, 0.0], [0.3, 0.6, 0.1], [0.25, 0.25, 0.5]]
WORKERS = [
    ConfusedWorker(CONFUSION, abstention=(0.1, 0.5, 0.9)),
    Drifter(0.9, 0.4),
    Spammer("prior", abstention=0.25),
    Colluder(0.5, leader=1, copying=0.3, activity=4.0),
]


@pytest.fixture(scope="module")
def behavior():
    return Behavior.of_workers(WORKERS, PRIOR, np.random.RandomState(0))


def plain_chances(behavior, worker, truth, progress, difficulty):
    """One annotation at a time."""
    row = []
    for label in range(3):
        first = behavior.first[worker][truth][label]
        last = behavior.last[worker][truth][label]
        row.append((1 - progress) * first + progress * last)
    if WORKERS[worker].kind == "spammer":
        return row
    power = [chance ** (1 / difficulty) for chance in row]
    return [value / sum(power) for value in power]


def test_chances_equal_plain_loops(behavior):
    rng = np.random.RandomState(1)
    worker, task, progress = rng.randint(4, size=200), rng.randint(50, size=200), rng.rand(200)
    truth, difficulty = rng.randint(3, size=50), rng.lognormal(size=50)
    found = behavior.chances(worker, task, truth, progress, difficulty)
    columns = zip(worker, truth[task], progress, difficulty[task], strict=True)
    assert found == pytest.approx(np.array([plain_chances(behavior, *row) for row in columns]))


def test_with_two_classes_difficulty_is_the_law_of_glad():
    accuracy, difficulty = 0.85, np.array([0.5, 1.0, 3.0])
    ability = math.log(accuracy / (1 - accuracy))
    glad = 1 / (1 + np.exp(-ability / difficulty))
    rows = np.tile([accuracy, 1 - accuracy], (3, 1))
    assert temper(rows, 1 / difficulty)[:, 0] == pytest.approx(glad)


def test_extreme_difficulty_is_chance_and_ease_is_certainty(behavior):
    worker, truth = np.array([1, 1]), np.array([2, 2])
    hard, easy = behavior.chances(worker, np.arange(2), truth, 0.0, np.array([1e9, 1e-3]))
    assert hard == pytest.approx([1 / 3] * 3, abs=1e-6)
    assert easy == pytest.approx([0, 0, 1])


def test_who_stays_depends_on_truth_and_difficulty(behavior):
    worker, truth = np.array([0, 0, 0, 2, 1]), np.array([0, 1, 2, 0, 0])
    difficulty = np.array([1.0, 2.0, 1.0, 1.0, 5.0])
    expected = [0.9, 0.5**2, 0.1, 0.75, 1.0]
    assert behavior.stays(worker, truth, difficulty) == pytest.approx(expected)


def test_stacks_what_workers_say(behavior):
    assert behavior.kinds.tolist() == ["confused", "drifter", "spammer", "colluder"]
    assert behavior.leader.tolist() == [-1, -1, -1, 1]
    assert behavior.copying.tolist() == [0, 0, 0, 0.3]
    assert behavior.activity.tolist() == [1, 1, 1, 4]
    assert behavior.heeds_difficulty.tolist() == [True, True, False, True]


def test_declared_confusion_is_the_mean_over_the_way_and_of_copies(behavior):
    drifter = np.where(np.eye(3), 0.65, 0.175)
    own = np.where(np.eye(3), 0.5, 0.25)
    expected = [CONFUSION, drifter, np.tile(PRIOR, (3, 1)), 0.3 * drifter + 0.7 * own]
    assert behavior.confusion == pytest.approx(np.array(expected))


@pytest.mark.parametrize(
    "confusion",
    [[[[0.6, 0.6], [0.5, 0.5]]], [[[1.2, -0.2], [0.5, 0.5]]], [[0.5, 0.5]], [[[0.5, 0.5]]]],
    ids=["sum", "negative", "flat", "oblong"],
)
def test_what_is_no_confusion_is_refused(confusion):
    with pytest.raises(ParameterError, match=r"is not P\(label"):
        Behavior.of_confusion(confusion)


@pytest.mark.parametrize(
    ("workers", "message"),
    [
        ([], "no workers"),
        ([OneCoinWorker(), "ann"], "first:    'ann'"),
        ([OneCoinWorker(), Colluder(leader=5)], "a leader from 0 to 1"),
        ([Colluder(leader=0)], "Worker 0 copies worker 0"),
        ([OneCoinWorker(), Colluder(leader=0), Colluder(leader=1)], "Worker 2 copies worker 1"),
        ([OneCoinWorker(), Colluder(leader=-2)], "copies worker -2"),
        ([OneCoinWorker(abstention=1.5)], "abstention=1.5"),
        ([OneCoinWorker(abstention=(0.5, 0.5))], "3 of them"),
    ],
)
def test_impossible_crowds_are_refused(workers, message):
    with pytest.raises(ParameterError, match=message):
        Behavior.of_workers(workers, PRIOR, np.random.RandomState(0))
