"""LIA's workers: told by their features, and the paper's two extreme ones."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit

from crowdwise import Annotations
from crowdwise.errors import AnnotationError, ParameterError
from crowdwise.learn import LIA, MLP, AnnotMix, MaDL, SpeeLFC, Training
from crowdwise.simulate import label_by_crowd, one_coin_confusion

SMALL = MLP((8,), activation="selu")
QUICK = Training(
    learning_rate={"truth": 0.1, "noise": 3e-3}, weight_decay={"noise": 1e-2}, epochs=100
)


def make_lia():
    training = Training(optimizer="amsgrad", learning_rate=1e-2)
    return LIA(truth=SMALL, difficulty=SMALL, training=training, random_state=0)


@pytest.fixture(scope="module")
def described():
    """Thirty workers whose competence their features give away; the last ten come later."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 4))
    truth = (X[:, 0] + X[:, 1] > 0).astype(int)
    features = rng.normal(size=(30, 3))
    skill = expit(1.0 + 2.5 * features[:, 0])  # the other two features mean nothing
    names = np.array([f"worker {w:02d}" for w in range(30)])
    votes = label_by_crowd(truth, one_coin_confusion(skill, 2), 12, random_state=0)
    votes = Annotations.from_codes(votes.task, votes.worker, votes.label, workers=names)
    features = pd.DataFrame(features, index=names)
    old, new = names[:20], names[20:]
    frames = (votes.select_workers(who).to_frame() for who in (old, new))
    seen, later = (Annotations.from_frame(frame, tasks=np.arange(500)) for frame in frames)
    return X, truth, seen, later, features, skill


@pytest.mark.parametrize("method", [LIA, MaDL, AnnotMix], ids=lambda m: m.__name__)
def test_features_tell_of_workers_never_seen(described, method):
    X, truth, seen, later, features, skill = described
    model = make_lia() if method is LIA else method(training=QUICK, random_state=0)
    model.fit(X, seen, worker_features=features.loc[seen.workers])
    known = model.for_workers(later.workers, features)
    assert known.score(X, later) > model.score(X, later) + 0.03
    accuracy = model.predict_worker_accuracy(X, later.workers, features).mean(axis=0)
    assert np.corrcoef(accuracy, skill[20:])[0, 1] > 0.9
    assert model.score(X, truth) > 0.9


def test_new_workers_may_be_given_in_any_way(described):
    X, _, seen, later, features, _ = described
    training = Training(epochs=3)
    model = MaDL(training=training, random_state=0).fit(X, seen, features.loc[seen.workers])
    table = features.loc[later.workers]
    by_name = model.predict_worker_proba(X[:5], later.workers, features)  # found by their names
    assert by_name.shape == (5, 10, 2)
    again = model.predict_worker_proba(X[:5], later.workers, table.to_numpy())
    assert_allclose(again, by_name, rtol=1e-5)
    assert_allclose(model.predict_worker_proba(X[:5], None, table), by_name, rtol=1e-5)
    one = model.predict_worker_proba(X[:5], later.workers[3], table.iloc[[3]])
    assert_allclose(one[:, 0], by_name[:, 3], rtol=1e-5)  # single precision inside


def test_a_known_worker_comes_out_the_same_by_features(described):
    X, _, seen, _, features, _ = described
    training = Training(epochs=3)
    model = MaDL(training=training, random_state=0).fit(X, seen, features.loc[seen.workers])
    by_name = model.predict_worker_proba(X[:5], seen.workers[:4])
    by_features = model.predict_worker_proba(X[:5], ["a", "b", "c", "d"], features[:4].to_numpy())
    assert_allclose(by_features, by_name)
    unknown = model.for_workers(["a"], features[:1].to_numpy()).predict_worker_proba(X[:5], ["b"])
    assert_allclose(unknown, model.predict_worker_proba(X[:5], ["nobody"]))


def test_the_model_itself_stays_as_it_is(described):
    X, _, seen, later, features, _ = described
    model = MaDL(training=Training(epochs=2), random_state=0).fit(X, seen, features[:20])
    before = model.predict_worker_proba(X[:5])
    other = model.for_workers(later.workers, features)
    assert not hasattr(other, "confusion_")
    assert_allclose(model.predict_worker_proba(X[:5]), before)
    assert model.confusion_.shape == (20, 2, 2)


def test_says_what_is_wrong_with_features(described):
    X, _, seen, later, features, _ = described
    model = MaDL(training=Training(epochs=1)).fit(X, seen, features[:20])
    with pytest.raises(AnnotationError, match="3 columns that the model was learned with"):
        model.predict_worker_proba(X, later.workers, features.iloc[20:, :2].to_numpy())
    with pytest.raises(AnnotationError, match="1 of 1 worker names are missing"):
        model.predict_worker_proba(X, ["somebody else"], features)
    plain = SpeeLFC(training=Training(epochs=1)).fit(X, seen)
    with pytest.raises(ParameterError, match="SpeeLFC was learned without worker features"):
        plain.predict_worker_proba(X, later.workers, features)


@pytest.mark.parametrize("n_slots", [1, 2])
def test_the_extreme_workers_come_out_on_top_and_at_the_bottom(n_slots):
    """The paper's sanity check: add one who is always right and one who is always wrong."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    truth = (X[:, 0] + X[:, 1] > 0).astype(int)
    skill = [0.9, 0.85, 0.8, 0.75, 0.7, 0.65, 0.6, 0.55]
    table = label_by_crowd(truth, one_coin_confusion(skill, 2), 4, random_state=0).to_matrix()
    table["always right"], table["always wrong"] = truth, 1 - truth
    model = LIA(n_slots=n_slots, training=LIA.default_training, random_state=0).fit(X, table)
    diagonal = model.confusion_.diagonal(axis1=1, axis2=2).mean(axis=1)
    assert model.workers_[diagonal.argmax()] == "always right"
    assert model.workers_[diagonal.argmin()] == "always wrong"
    assert diagonal.max() > 0.9
    assert diagonal.min() < 0.1
