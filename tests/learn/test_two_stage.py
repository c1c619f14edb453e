"""Two stages equal the two stages done by hand, with any aggregator and any classifier."""

import feature_sets
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import crowdwise
from crowdwise.aggregate import IBCC, DawidSkene, MajorityVote
from crowdwise.errors import AnnotationError, ParameterError
from crowdwise.inference import pooled_confusion
from crowdwise.learn import MLP, NetClassifier, Training, TwoStage


def by_hand(X, votes, targets):
    """Aggregate, then fit: what the class is short for."""
    first = IBCC().fit(votes)
    tree = DecisionTreeClassifier(max_depth=3, random_state=0)
    told = np.flatnonzero(votes.redundancy)
    best = first.posterior_.argmax(axis=1)
    if targets == "hard":
        return tree.fit(X[told], best[told])
    examples = [(i, k) for i in told for k in range(3) if targets == "soft" or k == best[i]]
    task, label = (np.array(column) for column in zip(*examples, strict=True))
    return tree.fit(X[task], label, sample_weight=first.posterior_[task, label])


@pytest.mark.parametrize("targets", ["hard", "soft", "weighted"])
def test_equals_the_stages_by_hand(crowd, targets):
    votes = crowd.votes.filter(crowd.votes.task % 7 != 3)  # some tasks have no labels
    tree = DecisionTreeClassifier(max_depth=3, random_state=0)
    model = TwoStage(IBCC(), tree, targets=targets).fit(crowd.X, votes)
    expected = by_hand(crowd.X, votes, targets).predict_proba(crowd.new_X)
    assert_allclose(model.predict_proba(crowd.new_X), expected)
    assert_allclose(model.posterior_, IBCC().fit(votes).posterior_)


def test_the_default_is_ibcc_and_scaled_regression(crowd):
    model = TwoStage().fit(crowd.X * 100.0, crowd.votes)
    hand = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    hand.fit(crowd.X, IBCC().fit(crowd.votes).posterior_.argmax(axis=1))
    expected = hand.predict_proba(crowd.new_X)
    assert_allclose(model.predict_proba(crowd.new_X * 100.0), expected, atol=1e-4)
    assert isinstance(model.aggregator_, IBCC)
    assert model.score(crowd.new_X * 100.0, crowd.new_truth) > 0.85


def test_confusion_is_the_aggregators_or_counted(crowd):
    skene, vote = (TwoStage(a).fit(crowd.X, crowd.votes) for a in (DawidSkene(), MajorityVote()))
    assert_array_equal(skene.confusion_, skene.aggregator_.confusion_)
    assert_allclose(vote.confusion_, pooled_confusion(crowd.votes, crowd.votes.shares()))


def test_pooled_confusion_equals_the_plain_loops(lopsided):
    annotations = lopsided.votes(weighted=True)
    posterior = np.random.default_rng(3).dirichlet(np.ones(3), lopsided.n_tasks)
    counts = np.zeros((5, 3, 3))
    for task, worker, share, weight in lopsided.rows_of(annotations):
        counts[worker] += weight * np.outer(posterior[task], share)
    crowd = counts.sum(axis=0) + 1 / 3
    expected = counts + crowd / crowd.sum(axis=1, keepdims=True)
    expected /= expected.sum(axis=2, keepdims=True)
    assert_allclose(pooled_confusion(annotations, posterior), expected)


def test_gold_reaches_both_stages(crowd):
    wrong = {task: (crowd.truth[task] + 1) % 3 for task in range(400)}
    model = TwoStage(MajorityVote()).fit(crowd.X, crowd.votes, gold=wrong)
    assert_array_equal(model.posterior_.argmax(axis=1), (crowd.truth + 1) % 3)
    assert (model.predict(crowd.new_X) == (crowd.new_truth + 1) % 3).mean() > 0.85


def test_ties_may_be_left_out(crowd):
    votes = crowd.votes.subsample(2, random_state=0)
    model = TwoStage(MajorityVote(ties="abstain"), DecisionTreeClassifier()).fit(crowd.X, votes)
    tied = votes.shares().max(axis=1) < 0.9
    assert tied.sum() > 50
    assert model.classifier_.tree_.n_node_samples[0] == 400 - tied.sum()


def test_classifiers_without_probabilities_say_which(crowd):
    model = TwoStage(classifier=LinearSVC()).fit(crowd.X, crowd.votes)
    proba = model.predict_proba(crowd.new_X)
    assert set(np.unique(proba)) == {0.0, 1.0}
    assert model.score(crowd.new_X, crowd.new_truth) > 0.8
    assert np.isfinite(model.score(crowd.new_X, crowd.new_votes))


def test_a_class_nobody_chose_has_no_chance(crowd):
    votes = crowd.votes.filter(crowd.votes.label > 0)
    model = TwoStage(MajorityVote()).fit(crowd.X, votes)
    assert model.predict_proba(crowd.new_X).shape == (200, 3)
    assert_array_equal(model.predict_proba(crowd.new_X)[:, 0], 0.0)
    assert set(model.predict(crowd.new_X)) == {1, 2}


def test_features_may_be_anything_the_classifier_takes(crowd):
    words = np.array(["red apple", "green leaf", "blue sea"], dtype=object)
    texts = words[crowd.truth].tolist()
    model = TwoStage(classifier=make_pipeline(CountVectorizer(), MultinomialNB()), targets="soft")
    model.fit(texts, crowd.votes)
    assert model.predict(["apple", "the sea"]).tolist() == [0, 2]
    assert (
        TwoStage().fit(csr_array(crowd.X), crowd.votes).score(csr_array(crowd.X), crowd.truth) > 0.8
    )
    half = TwoStage().fit(crowd.X.astype(np.float16), crowd.votes)
    assert half.score(crowd.new_X.astype(np.float16), crowd.new_truth) > 0.85


def test_a_network_may_be_the_classifier(crowd):
    net = NetClassifier(truth=MLP((16,)), training=Training(epochs=100), random_state=0)
    frame = pd.DataFrame(crowd.X, index=np.random.default_rng(0).permutation(400) + 1000)
    for targets in ("hard", "soft"):
        model = TwoStage(IBCC(), net, targets=targets).fit(frame, crowd.votes)
        assert model.score(crowd.new_X, crowd.new_truth) > 0.85


def test_weights_need_a_classifier_that_takes_them(crowd):
    model = TwoStage(classifier=KNeighborsClassifier(), targets="soft")
    with pytest.raises(
        ParameterError, match=r"KNeighborsClassifier does not accept weights(.|\n)*hard"
    ):
        model.fit(crowd.X, crowd.votes)
    assert model.set_params(targets="hard").fit(crowd.X, crowd.votes).score(crowd.X, crowd.truth)


def test_one_class_is_nothing_to_learn(crowd):
    with pytest.raises(AnnotationError, match="same inferred class"):
        TwoStage(MajorityVote()).fit(crowd.X, crowd.votes.filter(crowd.votes.label == 1))


def test_stages_have_parameters_of_their_own():
    model = TwoStage(DawidSkene(), make_pipeline(StandardScaler(), LogisticRegression()))
    model.set_params(aggregator__smoothing=2.0, classifier__logisticregression__C=7.0)
    assert model.aggregator.smoothing == 2.0
    assert model.classifier[-1].C == 7.0


def test_a_pipeline_is_saved_with_it(crowd, tmp_path):
    model = TwoStage(MajorityVote(), targets="soft").fit(crowd.X, crowd.votes)
    model.save(tmp_path / "model")
    again = crowdwise.load(tmp_path / "model")
    assert_array_equal(again.predict_proba(crowd.new_X), model.predict_proba(crowd.new_X))


@pytest.mark.parametrize("settings", [{"targets": "votes"}, {"aggregator": 3}], ids=str)
def test_refuses_what_makes_no_sense(crowd, settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        TwoStage(**settings).fit(crowd.X, crowd.votes)


def test_music_genres(real_crowd):
    real_crowd("mgc")
    music = feature_sets.load("mgc")
    found = [
        TwoStage(a).fit(music.X, music.annotations).score(music.X_test, music.y_test)
        for a in (MajorityVote(), IBCC())
    ]
    assert found == pytest.approx([0.573, 0.643], abs=0.03)
