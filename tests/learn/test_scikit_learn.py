"""Learners in scikit-learn's own tools, with annotations as y."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone, is_classifier
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    train_test_split,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from crowdwise import Annotations, learn
from crowdwise.aggregate import IBCC, MajorityVote
from crowdwise.errors import AnnotationError
from crowdwise.learn import SpeeLFC, Training, TwoStage

QUICK = Training(epochs=40)
METHODS = [getattr(learn, name) for name in learn.LEARNERS]


def test_annotations_stand_for_their_most_frequent_labels():
    votes = Annotations.from_dict(
        {
            "q1": {"a": "yes", "b": "no", "c": "yes"},
            "q2": {"b": "no"},
            "q3": {"a": "no", "c": "yes"},
        }
    )
    assert np.asarray(votes).tolist() == ["yes", "no", "no"]  # the first of tied ones
    assert np.asarray(votes, dtype="U3").dtype == "<U3"


@pytest.mark.parametrize("model", [SpeeLFC(training=QUICK, random_state=0), TwoStage()], ids=str)
def test_cross_validation_is_stratified_and_scores_labels(crowd, model):
    assert is_classifier(model)
    found = cross_validate(model, crowd.X, crowd.votes, cv=4, return_indices=True)
    share = np.asarray(crowd.votes)
    overall = np.bincount(share) / len(share)
    for train, test, score in zip(*found["indices"].values(), found["test_score"], strict=True):
        assert_allclose(np.bincount(share[test]) / len(test), overall, atol=0.02)
        fitted = clone(model).fit(crowd.X[train], crowd.votes[train])
        assert fitted.log_likelihood(crowd.X[test], crowd.votes[test]) == pytest.approx(score)


def test_a_grid_is_searched_by_held_out_labels(crowd):
    model = TwoStage(MajorityVote(), make_pipeline(StandardScaler(), LogisticRegression()))
    grid = {
        "aggregator": [MajorityVote(), IBCC()],
        "classifier__logisticregression__C": [1e-4, 0.1],
        "targets": ["hard", "soft"],
    }
    search = GridSearchCV(model, grid, cv=3).fit(crowd.X, crowd.votes)
    assert search.best_params_["classifier__logisticregression__C"] == 0.1
    assert search.score(crowd.new_X, crowd.new_truth) > 0.85
    assert search.score(crowd.new_X, crowd.new_votes) < 0
    assert_array_equal(search.classes_, [0, 1, 2])


def test_probabilities_are_cross_validated(crowd):
    model = TwoStage()
    folds = list(StratifiedKFold(4).split(crowd.X, crowd.votes))
    params = {"annotations": crowd.votes}
    found = cross_val_predict(model, crowd.X, params=params, cv=folds, method="predict_proba")
    for train, test in folds:
        fitted = clone(model).fit(crowd.X[train], crowd.votes[train])
        assert_allclose(found[test], fitted.predict_proba(crowd.X[test]))
    with pytest.raises(AnnotationError, match=r"params=.*annotations.* and no y"):
        cross_val_predict(model, crowd.X, crowd.votes, method="predict_proba")


def test_a_pipeline_ends_in_a_learner(crowd):
    steps = make_pipeline(StandardScaler(), PCA(8), SpeeLFC(training=QUICK, random_state=0))
    grid = {"speelfc__training__learning_rate": [1e-5, 0.05], "pca__n_components": [6, 10]}
    search = GridSearchCV(steps, grid, cv=KFold(3)).fit(crowd.X, crowd.votes)
    assert search.best_params_["speelfc__training__learning_rate"] == 0.05
    assert search.predict_proba(crowd.new_X).shape == (200, 3)
    assert search.score(crowd.new_X, crowd.new_truth) > 0.8


def test_tasks_are_split_like_rows(crowd):
    X, new_X, votes, new_votes = train_test_split(
        crowd.X, crowd.votes, test_size=0.25, stratify=crowd.votes, random_state=0
    )
    assert (len(votes), len(new_votes)) == (300, 100)
    places = [np.flatnonzero((row == crowd.X).all(axis=1))[0] for row in X[:5]]
    assert_array_equal(votes.tasks[:5], crowd.votes.tasks[places])
    assert TwoStage().fit(X, votes).score(new_X, new_votes) < 0


def test_agreement_with_the_majority_is_a_score_too(crowd):
    found = cross_val_score(TwoStage(), crowd.X, crowd.votes, cv=3, scoring="accuracy")
    assert 0.5 < found.mean() < 0.95


@pytest.mark.parametrize("names", [["a", "b", "c"], [10, 20, 30]], ids=str)
def test_classes_have_any_names(crowd, names):
    votes = Annotations(**{**fields(crowd.votes), "classes": np.array(names)})
    found = cross_val_score(TwoStage(), crowd.X, votes, cv=3)
    assert_allclose(found, cross_val_score(TwoStage(), crowd.X, crowd.votes, cv=3))


def fields(annotations):
    return {name: getattr(annotations, name) for name in annotations.__dataclass_fields__}


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.__name__)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_learner_is_cross_validated(method, crowd):
    model = method()
    settings = model.get_params(deep=False)
    short = {"max_iter": 10, "random_state": 0, "n_members": 2, "rounds": 2}
    model.set_params(**{name: value for name, value in short.items() if name in settings})
    if "training" in settings:
        model.set_params(training=Training(epochs=3))
    if method is learn.LIA:
        model.set_params(objective__epochs=2, objective__marginal_epochs=2)
    found = cross_val_score(model, crowd.X[:60], crowd.votes[:60], cv=2)
    assert found.shape == (2,)
    assert (found < 0).all()
    assert np.isfinite(found).all()
