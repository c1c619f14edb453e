"""The table that explains the others: ceilings, what was fitted, and what confidence gives."""

from itertools import product

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from crowdbench import table
from crowdbench.tables._embed import Probe, brief, over_folds
from crowdbench.tables._neucrowd import as_learning_set
from crowdbench.tables._why import (
    Case,
    confidences,
    cosine_across,
    given_chance,
    measure_case,
    parts_of,
    safety,
)
from crowdwise.embed import RLL, CosineSoftmax, NeuCrowd, OneClass, RandomGroups
from crowdwise.learn import NetClassifier
from crowdwise.simulate import stand_in

FIXED = {"choices": (1e-3,), "strengths": (1.0,)}


@pytest.fixture(scope="module")
def crowd():
    return stand_in("class", random_state=0)


def test_accuracy_is_that_of_the_tables_it_explains(crowd):
    probe = Probe(RLL(groups_per_epoch=300, training=brief(1), random_state=0), **FIXED)
    found = measure_case(Case(probe), crowd, 0)
    assert found["accuracy"] == pytest.approx(over_folds(probe, crowd, 0)["accuracy"])


def test_predictions_for_training_tasks(crowd):
    found = measure_case(Case(Probe(**FIXED)), crowd, 0)
    truth, fitted, right, sizes = crowd.truth.to_numpy(), [], [], []
    for fold in sorted(set(crowd.split)):
        inside = crowd.split.to_numpy() != fold
        label = crowd.annotations[inside].votes().argmax(axis=1)
        X = StandardScaler().fit_transform(crowd.X[inside])
        said = LogisticRegression(max_iter=2000).fit(X, label).predict(X)
        fitted.append(np.mean(said == label))
        right.append(np.mean(label == truth[inside]))
        sizes.append((~inside).sum())
    assert found["training labels"] == pytest.approx(np.average(fitted, weights=sizes))
    assert found["labels right"] == pytest.approx(np.average(right, weights=sizes))


@pytest.mark.parametrize("network", [None, NetClassifier(training=brief(1), random_state=0)])
def test_a_ceiling_learns_from_true_labels(crowd, network):
    part = next(parts_of(crowd))
    found = measure_case(Case(Probe(**FIXED), network=network, gold=True), part, 0)
    model = network or LogisticRegression(max_iter=2000)
    scaler = StandardScaler().fit(part.X)
    X, X_test = (part.X, part.X_test) if network else map(scaler.transform, (part.X, part.X_test))
    model.fit(X, part.truth.to_numpy())
    assert found["accuracy"] == pytest.approx(np.mean(model.predict(X_test) == part.y_test))


def test_folds_are_left_out_in_turn(crowd):
    parts = list(parts_of(crowd))
    assert sum(len(part.X_test) for part in parts) == 472
    for part in parts:
        assert len(part.X) + len(part.X_test) == 472
        assert part.truth.index.tolist() == part.annotations.tasks.tolist()


def test_validation_labels_say_the_penalty():
    oral = as_learning_set(stand_in("oral_neucrowd", random_state=0))
    score = {
        strengths: measure_case(Case(Probe(strengths=strengths)), oral, 0)["accuracy"]
        for strengths in ((1e-5,), (1.0,), (1e-5, 1.0))
    }
    assert score[1e-5,] != score[1.0,]  # all tasks of the larger class
    assert score[1e-5, 1.0] == score[1.0,]


def test_cosine_across_classes():
    vectors, label = np.random.RandomState(0).normal(size=(7, 3)), np.array([0, 1, 1, 0, 1, 1, 1])
    pairs = product(vectors[label == 0], vectors[label == 1])
    cosines = [a @ b / np.linalg.norm(a) / np.linalg.norm(b) for a, b in pairs]
    assert cosine_across(vectors, label) == pytest.approx(np.mean(cosines))


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({}, np.exp(9) / (np.exp(9) + 3 * np.exp(4))),
        ({"groups": RandomGroups(negatives=1)}, np.exp(9) / (np.exp(9) + np.exp(4))),
        ({"loss": CosineSoftmax(eta=1.0)}, np.exp(0.9) / (np.exp(0.9) + 3 * np.exp(0.4))),
        ({"groups": RandomGroups(anchors=OneClass(0))}, np.exp(4) / (np.exp(4) + 3 * np.exp(9))),
        ({"loss": CosineSoftmax(form="multiplier")}, 0.9 / (0.9 + 3 * 0.4)),
    ],
)
def test_chance_by_confidence_alone(changes, wanted):
    label = np.array(5 * [0] + 15 * [1])
    rll = RLL(**changes)
    rll.classes_ = np.array([0, 1])
    rll.confidence_ = np.where(label == 1, 0.9, 0.4)
    found = confidences(rll, label)
    assert found["given chance"] == pytest.approx(wanted)
    assert (found["confidence in 1"], found["confidence in 0"]) == pytest.approx((0.9, 0.4))
    assert given_chance(rll, np.ones(20), label) == pytest.approx(
        1 / (1 + rll.parts().groups.negatives)
    )


def test_safety_of_right_and_wrong_labels():
    neucrowd, right = NeuCrowd(), np.array([True, True, True, False, False])
    assert safety(neucrowd, right) == {}
    neucrowd.safe_ = np.array([True, False, True, False, True])
    assert safety(neucrowd, right) == pytest.approx({"safe if right": 2 / 3, "safe if wrong": 0.5})
    assert safety(neucrowd, np.ones(5, dtype=bool)) == pytest.approx({"safe if right": 0.6})


def test_every_row_can_be_made():
    made = table("embedding-why")
    for row, column in made.cells():
        assert isinstance(made.rows[row].make(column), Case)
    assert {row for pair in made.pairs for row in pair} <= set(made.rows)
