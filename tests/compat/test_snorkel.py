"""Snorkel's label models: arguments, arrays and scores."""

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score

from crowdwise import aggregate
from crowdwise.compat.snorkel import LabelModel, MajorityLabelVoter, break_ties
from crowdwise.errors import AnnotationError, ParameterError


@pytest.fixture(scope="module")
def weak():
    """Five labeling functions that abstain at times."""
    rng = np.random.default_rng(0)
    truth = rng.choice(2, 400, p=[0.7, 0.3])
    right = rng.random((400, 5)) < [0.9, 0.85, 0.8, 0.7, 0.6]
    L = np.where(right, truth[:, None], 1 - truth[:, None])
    L[rng.random(L.shape) < 0.3] = -1
    return L, truth


@pytest.fixture(scope="module")
def model(weak):
    found = LabelModel(cardinality=2, verbose=False)
    assert found.fit(weak[0], class_balance=[0.7, 0.3], n_epochs=300, seed=3) is None
    return found


def test_it_is_our_label_model(weak, model):
    start = np.random.RandomState(3).random_sample()
    ours = aggregate.LabelModel(class_prior=[0.7, 0.3], start=start, max_iter=300)
    expected = ours.fit(aggregate_of(weak[0])).posterior_
    assert model.predict_proba(weak[0]) == pytest.approx(expected)


def aggregate_of(L):
    from crowdwise import Annotations

    return Annotations.from_snorkel(L, cardinality=2)


def test_predictions(weak, model):
    L, truth = weak
    labels, proba = model.predict(L, return_probs=True)
    assert labels.dtype.kind == "i"
    assert proba.shape == (400, 2)
    assert proba.sum(axis=1) == pytest.approx(np.ones(400))
    assert (labels == proba.argmax(axis=1)).all()
    assert np.mean(labels == truth) > 0.9
    abstained = model.predict_proba(np.full((1, 5), -1))
    assert abstained[0] == pytest.approx([0.7, 0.3])


def test_conditional_probabilities_and_weights(weak, model):
    found = model.get_conditional_probs()
    assert found.shape == (5, 3, 2)
    assert found.sum(axis=1) == pytest.approx(np.ones((5, 2)))
    assert found[:, 1:] == pytest.approx(model.model_.rates_.swapaxes(1, 2))
    coverage = (weak[0] != -1).mean(axis=0)
    for number, weight in enumerate(model.get_weights()):
        right = sum(found[number, k + 1, k] * p for k, p in enumerate([0.7, 0.3]))
        assert weight == pytest.approx(right / coverage[number])
    assert (np.diff(model.get_weights()) < 0).all()  # as good as they were made


def test_class_balance_from_truths(weak):
    L, truth = weak
    one, other = LabelModel(), LabelModel()
    one.fit(L, Y_dev=truth, seed=1)
    other.fit(L, class_balance=(np.bincount(truth) / 400).tolist(), seed=1)
    assert (one.predict_proba(L) == other.predict_proba(L)).all()
    plain = LabelModel()
    plain.fit(L, seed=1)
    assert plain.model_.prior_.tolist() == [0.5, 0.5]


def test_settings_reach_the_model(weak):
    found = LabelModel()
    found.fit(weak[0], n_epochs=7, lr=0.02, l2=0.5, prec_init=0.6, mu_eps=0.05)
    params = found.model_.get_params()
    assert (params["max_iter"], params["learning_rate"], params["start"]) == (7, 0.02, 0.5)
    assert (params["penalty"], params["precision"], params["floor"]) == (0.25, 0.6, 0.05)


def test_ties():
    proba = np.array([[0.5, 0.5], [0.9, 0.1], [1 / 3 + 1e-7, 2 / 3 - 1e-7]])
    tied = np.full((40, 2), 0.5)
    assert break_ties(proba, "abstain").tolist() == [-1, 0, 1]
    drawn = break_ties(tied, "random")
    assert (drawn == break_ties(tied, "random")).all()
    assert set(drawn) == {0, 1}
    assert set(break_ties(tied, "true-random")) == {0, 1}
    with pytest.raises(ParameterError, match="tie_break_policy='wat'"):
        break_ties(proba, "wat")


def test_the_policy_for_ties_reaches_predictions_and_scores():
    L, voter = np.tile([0, 1], (40, 1)), MajorityLabelVoter()
    assert (voter.predict(L) == -1).all()
    labels, proba = voter.predict(L, return_probs=True, tie_break_policy="random")
    assert set(labels) == {0, 1}
    assert (proba == 0.5).all()
    for policy, coverage in (("abstain", 0.0), ("random", 1.0)):
        found = voter.score(L, np.zeros(40), ["coverage"], tie_break_policy=policy)
        assert found == {"coverage": coverage}


def test_scores(weak, model):
    L, truth = weak
    names = ["accuracy", "coverage", "precision", "recall", "f1", "f1_micro", "f1_macro",
             "matthews_corrcoef", "roc_auc"]  # fmt: skip
    found = model.score(L, truth, names)
    labels = model.predict(L)
    there = labels != -1
    assert found["accuracy"] == accuracy_score(truth[there], labels[there])
    assert found["f1_macro"] == f1_score(truth[there], labels[there], average="macro")
    assert found["coverage"] == there.mean()
    assert found["roc_auc"] > 0.9
    assert model.score(L, truth) == {"accuracy": found["accuracy"]}
    with pytest.raises(ParameterError, match="'wat'"):
        model.score(L, truth, ["wat"])


def test_saved_and_loaded(weak, model, tmp_path):
    model.save(tmp_path / "model")
    again = LabelModel(cardinality=7)
    again.load(tmp_path / "model")
    assert (again.predict_proba(weak[0]) == model.predict_proba(weak[0])).all()
    assert (again.get_weights() == model.get_weights()).all()


def test_majority():
    L = np.array([[0, 0, 1], [0, 1, -1], [-1, -1, -1]])
    voter = MajorityLabelVoter(cardinality=2)
    assert voter.predict_proba(L).tolist() == [[1, 0], [0.5, 0.5], [0.5, 0.5]]
    assert voter.predict(L).tolist() == [0, -1, -1]


def test_refusals(weak):
    L = weak[0]
    model = LabelModel()
    with pytest.raises(ParameterError, match="not fitted"):
        model.predict(L)
    with pytest.raises(AnnotationError, match="labels from -1 to 2"):
        model.fit(L + (L == 1))
    with pytest.raises(AnnotationError, match="type float64"):
        model.fit(L.astype(float))
    with pytest.raises(AnnotationError, match="three workers"):
        model.fit(L[:, :2])
    with pytest.raises(ParameterError, match="class balance"):
        model.fit(L, class_balance=[1.0, 0.0])
    with pytest.raises(ParameterError, match="optimizer='adam'"):
        model.fit(L, optimizer="adam")
    with pytest.raises(ParameterError, match="no setting 'epochs'"):
        model.fit(L, epochs=3)
    model.fit(L, optimizer="sgd", log_freq=3, progress_bar=False)
