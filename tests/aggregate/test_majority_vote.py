import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from crowdwise import Annotations
from crowdwise.aggregate import MajorityVote
from crowdwise.errors import ParameterError

VOTES = {
    "a": {"ann": "x", "bob": "x", "cy": "y"},
    "b": {"ann": "y", "cy": "z"},
    "c": {"bob": "z"},
}


def test_counts_labels():
    model = MajorityVote().fit(VOTES)
    expected = [[2 / 3, 1 / 3, 0], [0, 1 / 2, 1 / 2], [0, 0, 1]]
    assert_allclose(model.probas_[["x", "y", "z"]], expected)
    assert model.labels_.to_dict() == {"a": "x", "b": "y", "c": "z"}


def test_weights_by_worker():
    weights = pd.Series({"cy": 5.0, "ann": 1.0, "bob": 1.0})
    model = MajorityVote(weights=weights).fit(VOTES)
    assert_allclose(model.posterior_[:2], [[2 / 7, 5 / 7, 0], [0, 1 / 6, 5 / 6]])
    by_position = MajorityVote(weights=[1.0, 1.0, 5.0]).fit(VOTES)
    assert_allclose(by_position.posterior_, model.posterior_)


def test_weights_of_annotations_multiply_those_of_workers():
    votes = Annotations.from_codes([0, 0], [0, 1], [0, 1], weight=[2.0, 3.0])
    assert_allclose(MajorityVote(weights=[5.0, 1.0]).fit(votes).posterior_, [[10 / 13, 3 / 13]])


@pytest.mark.parametrize("weights", [{"ann": 1.0}, [1.0, 2.0]], ids=["mapping", "array"])
def test_a_worker_without_a_weight_is_an_error(weights):
    with pytest.raises(ParameterError, match="weight"):
        MajorityVote(weights=weights).fit(VOTES)


def test_soft_votes_count_in_part_and_hard_ones_whole():
    soft = [[0.9, 0.1], [0.4, 0.6], [0.45, 0.55]]
    votes = Annotations.from_codes([0, 0, 0], [0, 1, 2], [0, 1, 1], soft=soft)
    assert MajorityVote(voting="soft").fit_predict(votes).tolist() == [0]
    assert MajorityVote(voting="hard").fit_predict(votes).tolist() == [1]
    assert_allclose(MajorityVote().fit(votes).posterior_, [[1.75 / 3, 1.25 / 3]], rtol=1e-6)


def test_ties():
    assert MajorityVote(ties="abstain").fit_predict(VOTES)["b"] is None
    drawn = {MajorityVote(ties="random", random_state=s).fit_predict(VOTES)["b"] for s in range(20)}
    assert drawn == {"y", "z"}


def test_random_ties_leave_clear_labels_alone():
    for seed in range(10):
        labels = MajorityVote(ties="random", random_state=seed).fit_predict(VOTES)
        assert (labels["a"], labels["c"]) == ("x", "z")


def test_a_task_without_labels_is_uniform():
    votes = Annotations.from_codes([0], [0], [0], tasks=["a", "b"], classes=["x", "y"])
    assert_allclose(MajorityVote().fit(votes).posterior_[1], [0.5, 0.5])


@pytest.mark.parametrize(
    ("name", "accuracy"),
    [("bluebirds", 0.7593), ("wordsim", 0.8833), ("rte", 0.8969), ("mgc", 0.7042)],
)
def test_expected_accuracy_on_real_crowds(real_crowd, name, accuracy):
    crowd = real_crowd(name)
    proba = MajorityVote().fit_predict_proba(crowd.annotations).loc[crowd.truth.index]
    best = proba.eq(proba.max(axis=1), axis=0)
    right = [best.at[t, k] / best.loc[t].sum() for t, k in crowd.truth.items()]
    assert np.mean(right) == pytest.approx(accuracy, abs=0.0005)


def test_labels_are_numbered_as_the_classes():
    votes = Annotations.from_matrix([["b", "a"], ["c", "c"], ["a", "a"]])
    model = MajorityVote(ties="abstain").fit(votes)
    assert model.label_codes_.tolist() == [-1, 2, 0]
    assert model.labels_.tolist() == [None, "c", "a"]
