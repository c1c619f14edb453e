"""The tables of representations: what is chosen, by what, and what is scored."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, roc_auc_score
from sklearn.preprocessing import StandardScaler

from crowdbench import names, table
from crowdbench.tables._embed import Probe, brief, chosen_on_validation, over_folds
from crowdbench.tables._neucrowd import as_learning_set
from crowdwise.aggregate import DawidSkene
from crowdwise.embed import RLL
from crowdwise.simulate import stand_in

TABLES = ("neucrowd-table2", "neucrowd-table3", "rll-table1", "rll-table2", "rll-table3")


@pytest.fixture(scope="module")
def oral():
    return as_learning_set(stand_in("oral_neucrowd", random_state=0))


def test_the_penalty_is_chosen_by_validation_labels(oral):
    found = chosen_on_validation(Probe(strengths=(1e-4, 1.0, 1e4)), oral, 0)
    scaler = StandardScaler().fit(oral.X)
    label = oral.annotations.votes().argmax(axis=1)
    wanted = oral.valid.annotations.votes().argmax(axis=1)
    best = (-1.0, None)
    for strength in (1e-4, 1.0, 1e4):
        model = LogisticRegression(C=strength, max_iter=2000).fit(scaler.transform(oral.X), label)
        proba = model.predict_proba(scaler.transform(oral.valid.X))[:, 1]
        value = np.mean((proba > 0.5) == wanted) + roc_auc_score(wanted, proba)
        best = max(best, (value, strength))
        if best[1] == strength:
            test = model.predict_proba(scaler.transform(oral.X_test))[:, 1]
    truth = oral.y_test.astype(int)
    assert found["accuracy"] == pytest.approx(np.mean((test > 0.5) == truth))
    assert found["AUC"] == pytest.approx(roc_auc_score(truth, test))


def test_test_truth_is_not_looked_at_in_choosing(oral):
    lying = replace(oral, y_test=1 - oral.y_test.astype(int))
    probe = Probe(strengths=(1e-2, 1.0))
    straight, turned = (chosen_on_validation(probe, data, 0) for data in (oral, lying))
    assert straight["accuracy"] == pytest.approx(1 - turned["accuracy"])


def test_weight_decays_are_tried_one_by_one():
    probe = Probe(RLL(training=brief(1)), choices=(0.5, 0.25))
    assert [one.training.weight_decay for one in probe.embedders()] == [0.5, 0.25]
    assert probe.embedder.training.weight_decay == 1e-3
    assert Probe().embedders() == [None]


def test_folds_are_left_out_in_turn():
    crowd = stand_in("class", random_state=0)
    found = over_folds(Probe(aggregator=DawidSkene(), strengths=(1.0,)), crowd, 0)
    truth, predicted = crowd.truth.to_numpy(), np.empty(472, dtype=int)
    for fold in sorted(set(crowd.split)):
        inside = crowd.split.to_numpy() != fold
        label = DawidSkene().fit(crowd.annotations[inside]).posterior_.argmax(axis=1)
        scaler = StandardScaler().fit(crowd.X[inside])
        model = LogisticRegression(max_iter=2000).fit(scaler.transform(crowd.X[inside]), label)
        predicted[~inside] = model.predict(scaler.transform(crowd.X[~inside]))
    assert_allclose(found["accuracy"], np.mean(predicted == truth))
    assert_allclose(found["F1"], f1_score(truth, predicted))


@pytest.mark.parametrize("name", TABLES)
def test_every_row_can_be_made(name):
    assert name in names()
    made = table(name)
    for row, column in made.cells():
        assert isinstance(made.rows[row].make(column), Probe)
    for row in made.rows.values():
        assert set(row.published) <= set(made.columns)
