"""What stands for a task, chosen by the labels of held-out tasks."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.preprocessing import StandardScaler

from crowdwise.embed import RLL, Encoder, output_choice
from crowdwise.embed.output_choice import calibrated_evidence, predict
from crowdwise.laws.checks import save_and_load
from crowdwise.learn import Training
from crowdwise.simulate import label_by_crowd, one_coin_confusion

WORKERS = one_coin_confusion([0.95, 0.9, 0.85, 0.8], n_classes=2)
PARTS = {
    "encoder": Encoder((16, 8), activation="relu", dropout=0.0),
    "groups_per_epoch": 10_000,
    "random_state": 0,
}


def crowd(*, bent):
    """Tasks whose class is the sign of one feature, or of the product of two."""
    X = np.random.default_rng(0).normal(size=(240, 4)).astype(np.float32)
    truth = (X[:, 0] * (X[:, 1] if bent else 1.0) > 0).astype(int)
    return X, label_by_crowd(truth, WORKERS, per_task=4, random_state=0)


def test_vectors_are_chosen_where_no_linear_classifier_can_do_without():
    X, votes = crowd(bent=True)
    model = RLL(**PARTS).fit(X, votes)
    chosen = model.search_.chosen
    assert chosen["output"] != "features"
    assert (
        model.size_ == model.transform(X).shape[1] == {"both": 12, "vectors": 8}[chosen["output"]]
    )
    assert {c["output"] for c in model.search_.candidates} == {"features", "both", "vectors"}
    assert {c.get("classes") for c in model.search_.candidates} == {None, "majority", "IBCC"}
    assert (model.aggregator_ is None) == (chosen["classes"] == "majority")
    assert model.aggregator is None
    again = save_and_load(model)
    assert again.search_ == model.search_
    assert_allclose(again.transform(X), model.transform(X), atol=1e-6)


def test_features_stay_where_they_do_as_well():
    X, votes = crowd(bent=False)
    model = RLL(**{**PARTS, "groups_per_epoch": 500}).fit(X, votes)
    assert model.search_.chosen == {"output": "features"}
    assert_allclose(model.transform(X), StandardScaler().fit_transform(X), atol=1e-5)


@pytest.mark.parametrize(("later", "chosen"), [(0.0, "features"), (0.3, "vectors")])
def test_what_wins_on_the_first_fold_must_win_on_the_others_too(monkeypatch, later, chosen):
    X, votes = crowd(bent=False)
    vectors = {"output": "vectors", "classes": "majority"}

    def judged(*given):
        fold, hidden = given[-2:]
        noise = np.random.default_rng(hidden).normal(size=(2, (fold == hidden).sum()))
        gain = 0.3 if hidden == 0 else later
        return [({"output": "features"}, 0.1 * noise[0]), (vectors, 0.1 * noise[1] + gain)]

    monkeypatch.setattr(output_choice, "judge", judged)
    folds = np.random.RandomState(0)
    found = output_choice.choose_output(
        X, votes, None, [({"classes": "majority"}, None)], {}, folds
    )
    assert found.chosen["output"] == chosen
    assert "no say before" in found.why


def test_the_best_embedder_is_tried_with_further_encoders(monkeypatch):
    """On this set of noise the labels of held-out tasks are made to prefer one of them."""
    X, votes = crowd(bent=False)
    asked = []

    def judged(*given):
        embedders, fold, hidden = given[3:]
        asked.append([settings for settings, _ in embedders])
        noise = np.random.default_rng(hidden).normal(scale=0.1, size=(fold == hidden).sum())
        gains = {"IBCC": 0.3, "tanh": 0.6}
        own = [({"output": "features"}, noise)]
        for settings, _ in embedders:
            gain = gains.get(settings.get("encoder", settings["classes"]), 0.0)
            own.append(({"output": "both", **settings}, noise + gain))
        return own

    monkeypatch.setattr(output_choice, "judge", judged)
    model = RLL(groups_per_epoch=500, random_state=0).fit(X, votes)
    best = {"classes": "IBCC", "encoder": "tanh"}
    further = [{"classes": "IBCC", "encoder": name} for name in RLL.encoders]
    assert asked[:2] == [[{"classes": "majority"}, {"classes": "IBCC"}], further]
    assert asked[2:] == [[best]] * (len(asked) - 2) != []
    assert model.search_.chosen == {"output": "both", **best}
    assert model.size_ == model.transform(X).shape[1] == 4 + RLL.encoders["tanh"].sizes[-1]
    assert model.encoder is None
    again = save_and_load(model)
    assert_allclose(again.transform(X), model.transform(X), atol=1e-6)
    asked.clear()
    RLL(**{**PARTS, "groups_per_epoch": 500}).fit(X, votes)
    assert asked[:2] == [[{"classes": "majority"}, {"classes": "IBCC"}], [{"classes": "IBCC"}]]


def test_a_classifier_that_is_merely_surer_separates_no_more():
    rng = np.random.default_rng(0)
    likelihood = np.array([[0.9, 0.1], [0.1, 0.9]])[rng.integers(2, size=400)]
    right = np.where(likelihood > 0.5, 0.8, 0.2)
    wrong = rng.random(400) < 0.2
    proba = np.where(wrong[:, None], 1.0 - right, right)
    faint = proba**0.5 / (proba**0.5).sum(axis=1, keepdims=True)
    assert_allclose(
        calibrated_evidence(faint, likelihood).mean(),
        calibrated_evidence(proba, likelihood).mean(),
        atol=1e-2,
    )
    noisier = np.where(rng.random(400)[:, None] < 0.1, 1.0 - proba, proba)
    worse = calibrated_evidence(noisier, likelihood).mean()
    assert worse < calibrated_evidence(faint, likelihood).mean() - 0.03


def test_both_are_features_beside_vectors():
    X, votes = crowd(bent=False)
    brief = {"training": Training(epochs=1, batch_size=64), "random_state": 0}
    made = {
        o: RLL(output=o, **brief).fit(X, votes) for o in ("features", "both", "vectors", "auto")
    }
    rows = {o: model.transform(X) for o, model in made.items()}
    assert_allclose(rows["both"], np.hstack([rows["features"], rows["vectors"]]))
    assert_allclose(rows["auto"], rows["vectors"])
    assert made["both"].size_ == 36
    assert made["auto"].search_ is None


def test_too_few_tasks_have_vectors():
    model = RLL(groups_per_epoch=64, random_state=0).fit(
        np.eye(4), [[0, 0], [1, 1], [0, 0], [1, 1]]
    )
    assert model.search_.chosen == {"output": "vectors"}
    assert "too few" in model.search_.why


@pytest.mark.parametrize("width", [5, 200])
def test_the_classifier_behind_has_a_penalty_of_its_own(width):
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(300, width))
    truth = rng.random(300) < 1 / (1 + np.exp(-2 * rows[:, 0]))
    proba = predict(rows[:150], np.eye(2)[truth[:150].astype(int)], rows[150:])
    loss = -np.log(proba[np.arange(150), truth[150:].astype(int)]).mean()
    assert loss < np.log(2)
