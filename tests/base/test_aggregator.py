"""What every aggregator inherits."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from crowdwise import Annotations
from crowdwise.aggregate import GLAD, KOS, DawidSkene, MajorityVote
from crowdwise.annotations import tied
from crowdwise.errors import AnnotationError, ParameterError
from crowdwise.inference.simplex import clamp, gold_mask, normalize

VOTES = {
    "q1": {"ann": "no", "bob": "no", "cy": "yes"},
    "q2": {"ann": "yes", "bob": "yes", "cy": "yes"},
    "q3": {"ann": "no", "bob": "yes"},
}


def test_a_tie_is_a_tie_to_rounding_and_no_further():
    found = tied(np.array([[0.5, 0.5 - 1e-12, 1e-12], [0.5, 0.499, 0.001], [1.0, 0.0, 0.0]]))
    assert_array_equal(found, [[True, True, False], [True, False, False], [True, False, False]])


def test_the_label_is_the_most_probable_class():
    proba = np.array([[0.4, 0.6], [0.55, 0.45], [0.5, 0.5]])
    assert_array_equal(MajorityVote()._choose(proba), [1, 0, 0])


def test_normalize_is_uniform_where_nothing_was_counted():
    assert_allclose(normalize(np.array([[1.0, 3.0], [0.0, 0.0]])), [[0.25, 0.75], [0.5, 0.5]])


def test_gold_becomes_certainty():
    gold = np.array([1, -1])
    assert_allclose(clamp(np.full((2, 2), 0.5), gold), [[0, 1], [0.5, 0.5]])
    assert_array_equal(gold_mask(gold, 2), [[-np.inf, 0], [0, 0]])
    assert gold_mask(np.array([-1, -1]), 2) is None


def test_results_are_named():
    model = DawidSkene().fit(VOTES)
    assert model.labels_.name == "agg_label"
    assert model.fit_predict(VOTES).index.tolist() == ["q1", "q2", "q3"]
    assert model.fit_predict_proba(VOTES).columns.tolist() == ["no", "yes"]
    assert model.skills_.index.tolist() == ["ann", "bob", "cy"]


def test_other_annotations_are_labeled_with_what_was_learned():
    model = DawidSkene().fit(VOTES)
    other = model.predict_proba({"new": {"cy": "yes", "ann": "no"}})
    weight = model.prior_ * model.confusion_[0, :, 0] * model.confusion_[2, :, 1]
    assert_allclose(other.to_numpy(), [weight / weight.sum()])


def test_an_unknown_worker_is_averaged_left_out_or_refused():
    model = DawidSkene().fit(VOTES)
    votes = {"new": {"ann": "no", "stranger": "yes"}}
    average = model.confusion_.mean(axis=0)
    weight = model.prior_ * model.confusion_[0, :, 0] * average[:, 1]
    assert_allclose(model.predict_proba(votes).to_numpy(), [weight / weight.sum()])
    alone = model.predict_proba({"new": {"ann": "no"}})
    assert_allclose(model.predict_proba(votes, unknown_workers="ignore"), alone)
    with pytest.raises(AnnotationError, match=r"unknown worker occurs in 1 of 2 annotations"):
        model.predict(votes, unknown_workers="error")
    with pytest.raises(ParameterError, match="unknown_workers='guess'"):
        model.predict(votes, unknown_workers="guess")


def test_an_unknown_label_is_an_error():
    with pytest.raises(AnnotationError, match=r"unknown label.*\n.*maybe.*\n.*'no', 'yes'"):
        DawidSkene().fit(VOTES).predict({"new": {"ann": "maybe"}})


def test_a_label_that_was_not_used_in_other_annotations_is_no_error():
    model = DawidSkene().fit(VOTES)
    assert model.predict({"new": {"ann": "yes"}}).tolist() == ["yes"]


def test_tasks_of_fit_keep_their_difficulty_and_new_ones_are_average():
    model = GLAD().fit(VOTES)
    again = model.predict_proba({"q2": VOTES["q2"]})
    assert_allclose(again.to_numpy(), model.probas_.loc[["q2"]], rtol=1e-6)
    chance = 1 / (1 + np.exp(-model.log_odds_ * np.exp(model.log_ease_.mean())))
    yes = np.prod(chance) / (np.prod(chance) + np.prod(1 - chance))  # all three said yes
    new = model.predict_proba({"new": VOTES["q2"]})
    assert_allclose(new.loc["new", "yes"], yes)


@pytest.mark.parametrize(
    "gold",
    [
        {"q1": "yes", "elsewhere": "no"},
        pd.Series(["yes"], index=["q1"]),
        pd.DataFrame({"task": ["q1"], "label": ["yes"]}),
        ["yes", None, None],
    ],
    ids=["mapping", "series", "frame", "list"],
)
def test_gold_comes_in_any_shape(gold):
    model = MajorityVote().fit(VOTES, gold=gold)
    assert model.labels_["q1"] == "yes"
    assert_allclose(model.probas_.loc["q1"], [0, 1])


@pytest.mark.parametrize(
    ("gold", "message"),
    [
        ({"elsewhere": "no"}, "No truth is for a task of the annotations"),
        ({"q1": "maybe"}, "unknown label"),
        (["yes"], "shape"),
        (pd.DataFrame({"x": [1]}), "no column"),
    ],
    ids=["other tasks", "other class", "length", "columns"],
)
def test_gold_that_does_not_fit_is_refused(gold, message):
    with pytest.raises(AnnotationError, match=message):
        MajorityVote().fit(VOTES, gold=gold)


def test_refuses_to_learn_from_nothing():
    empty = Annotations.from_codes([], [], [], tasks=["a"], classes=["x"])
    with pytest.raises(AnnotationError, match="no annotations"):
        MajorityVote().fit(empty)
    weightless = Annotations.from_codes([0, 1], [0, 0], [0, 1], weight=[0.0, 0.0])
    with pytest.raises(AnnotationError, match="2 of weight 0"):
        MajorityVote().fit(weightless)


def test_a_binary_method_refuses_three_classes():
    with pytest.raises(AnnotationError, match="two classes; these labels have 3"):
        KOS().fit([[0, 1], [1, 2]])


def test_labels_are_made_once_and_cannot_be_changed_from_outside(votes_of_three):
    model, calls = MajorityVote().fit(votes_of_three), []
    choose = model._choose
    model._choose = lambda posterior: calls.append(1) or choose(posterior)
    first = model.labels_
    first.iloc[0] = 9
    assert model.labels_.iloc[0] != 9
    assert len(calls) == 1
    model.posterior_ = model.posterior_[:, ::-1]
    assert model.labels_.iloc[0] != MajorityVote().fit(votes_of_three).labels_.iloc[0]
    assert len(calls) == 2


@pytest.fixture
def votes_of_three():
    return [[0, 0, 1], [1, 1, 1], [0, 0, 0]]
