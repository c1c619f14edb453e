"""Methods side by side, against plain loops."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from crowdwise.aggregate import KOS, DawidSkene, MajorityVote, OneCoin
from crowdwise.errors import ParameterError
from crowdwise.evaluate import compare_methods, score
from crowdwise.simulate import confused_crowd, one_coin_confusion

FULL = DawidSkene(tol=1e-4)
METHODS = {"vote": MajorityVote(), "full": FULL, "coin": OneCoin(tol=1e-4)}


@pytest.fixture(scope="module")
def crowd():
    """Lopsided: a good worker, a lazy one, and one who favors a class."""
    confusion = one_coin_confusion([0.9, 0.7, 0.6, 0.5], n_classes=3)
    confusion[3] = [[0.2, 0.7, 0.1], [0.1, 0.8, 0.1], [0.1, 0.6, 0.3]]
    return confused_crowd(confusion, 150, 3, prior=[0.6, 0.3, 0.1], random_state=1)


@pytest.fixture(scope="module")
def found(crowd):
    truth = dict(enumerate(crowd.truth[:100]))
    return compare_methods(crowd.annotations, METHODS, truth=truth, random_state=0)


def test_changed_counts_tasks_off_every_majority(crowd, found):
    votes = crowd.annotations.to_matrix()
    labels = clone(FULL).fit_predict(crowd.annotations)
    changed = 0
    for task, row in votes.iterrows():
        counts = row.dropna().value_counts()
        changed += labels[task] not in set(counts.index[counts == counts.max()])
    assert found.table.loc["full", "changed"] == pytest.approx(changed / 150)
    assert found.table.loc["vote", "changed"] == 0
    assert changed > 0


def test_agreement_is_the_share_of_equal_labels(found):
    labels = found.labels
    for one in METHODS:
        others = [np.mean(labels[one] == labels[two]) for two in METHODS if two != one]
        assert found.table.loc[one, "agreement"] == pytest.approx(np.mean(others))
    assert found.agreement.loc["vote", "full"] == np.mean(labels["vote"] == labels["full"])
    assert (np.diag(found.agreement) == 1).all()


def test_scores_are_those_of_score(crowd, found):
    expected = score(clone(FULL).fit(crowd.annotations), dict(enumerate(crowd.truth[:100])))
    row = found.table.loc["full"]
    assert row["accuracy"] == expected.loc["accuracy", "value"]
    assert row["macro_f1_low"] == expected.loc["macro F1", "low"]
    assert row["minority_recall"] == expected.loc["minority recall", "value"]
    assert row["n_truths"] == 100


def test_a_better_model_predicts_better():
    confusion = one_coin_confusion([0.95, 0.9, 0.5, 0.5, 0.5], n_classes=2)
    votes = confused_crowd(confusion, 400, 5, random_state=0).annotations
    found = compare_methods(votes, METHODS, held_out=0.2, n_resamples=0)
    assert found.table["held_out"].idxmin() == "vote"
    assert found.table["objective"].isna().tolist() == [True, False, False]


def test_a_method_that_refuses_is_noted(crowd):
    found = compare_methods(crowd.annotations, {"kos": KOS(), "vote": MajorityVote()})
    assert "two classes" in found.table.loc["kos", "note"]
    assert np.isnan(found.table.loc["kos", "held_out"])
    assert list(found.labels) == ["vote"]
    assert np.isnan(found.table.loc["vote", "agreement"])
    with pytest.raises(ParameterError, match=r"No method could be fitted[\s\S]* one: "):
        compare_methods(crowd.annotations, {"one": KOS(), "other": KOS()})


def test_advice_becomes_a_note(crowd):
    found = compare_methods(crowd.annotations, {"full": DawidSkene(max_iter=1)}, held_out=0)
    assert "max_iter=1" in found.table.loc["full", "note"]
    assert "held_out" not in found.table


def test_learners_take_features(crowd):
    from crowdwise.learn import SoftProb

    X = np.eye(3)[crowd.truth] + np.random.default_rng(0).normal(0, 0.3, (150, 3))
    methods = {"learner": SoftProb(), "vote": MajorityVote()}
    found = compare_methods(crowd.annotations, methods, X=pd.DataFrame(X), n_resamples=100)
    assert found.table.loc["learner", "note"] == ""
    alone = compare_methods(crowd.annotations, methods, n_resamples=0)
    assert "needs features" in alone.table.loc["learner", "note"]


def test_a_list_of_names_or_estimators_will_do(crowd, found):
    listed = ["MajorityVote", FULL, "SoftProb"]
    X = np.random.default_rng(0).normal(size=(150, 2))
    table = compare_methods(crowd.annotations, listed, X=X, held_out=0).table
    assert table.index.tolist() == ["MajorityVote", "DawidSkene", "SoftProb"]
    assert table.loc["DawidSkene", "changed"] == found.table.loc["full", "changed"]
    alone = compare_methods(crowd.annotations, "MajorityVote", held_out=0).table
    assert alone.index.tolist() == ["MajorityVote"]
    name_methods = compare_methods(crowd.annotations, {"vote": "MajorityVote"}, held_out=0).table
    assert name_methods.index.tolist() == ["vote"]


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        (["MajorityVot"], "'MajorityVot' is not a method"),
        ([MajorityVote], "MajorityVote'> is not a method"),
        ([3], "3 is not a method"),
        ([OneCoin(), "OneCoin"], "named OneCoin"),
        ([], "no methods"),
        ({}, "no methods"),
    ],
    ids=["name", "class", "number", "twice", "empty list", "empty mapping"],
)
def test_what_is_no_method_is_named(crowd, methods, message):
    with pytest.raises(ParameterError, match=message):
        compare_methods(crowd.annotations, methods)


def test_a_share_that_is_none():
    with pytest.raises(ParameterError, match="held_out"):
        compare_methods([[0, 1], [1, 1]], {"vote": MajorityVote()}, held_out=1.0)
