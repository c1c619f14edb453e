"""Scores: scikit-learn's where it has them, plain loops where it has not."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn import metrics

from crowdwise import memory
from crowdwise.aggregate import DawidSkene, MajorityVote, Wawa
from crowdwise.errors import AnnotationError, ParameterError
from crowdwise.evaluate import (
    accuracy,
    balanced_accuracy,
    brier_score,
    class_f1,
    class_recall,
    confidence_auroc,
    expected_calibration_error,
    log_loss,
    macro_f1,
    reliability_table,
    score,
)
from crowdwise.inference import CompactPosterior
from crowdwise.learn import SoftProb, SpeeLFC, Training
from crowdwise.simulate import label_by_crowd, simulate_crowd


@pytest.fixture(scope="module")
def predicted():
    """A lopsided posterior without ties, and truths that it often misses."""
    rng = np.random.default_rng(0)
    truth = rng.choice(3, 400, p=[0.7, 0.25, 0.05])
    logits = rng.normal(size=(400, 3)) + 1.5 * np.eye(3)[truth] + [0.8, 0.0, -0.3]
    posterior = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    return posterior, truth


@pytest.fixture
def frame(predicted):
    posterior, truth = predicted
    tasks = [f"t{i}" for i in range(len(truth))]
    names = ["no", "yes", "maybe"]
    return pd.DataFrame(posterior, index=tasks, columns=names), pd.Series(
        np.array(names)[truth], index=tasks
    )


def test_equals_scikit_learn(predicted):
    posterior, truth = predicted
    label = posterior.argmax(axis=1)
    assert_allclose(accuracy(posterior, truth), np.mean(label == truth))
    assert_allclose(
        balanced_accuracy(posterior, truth), metrics.balanced_accuracy_score(truth, label)
    )
    assert_allclose(macro_f1(posterior, truth), metrics.f1_score(truth, label, average="macro"))
    assert_allclose(class_f1(posterior, truth), metrics.f1_score(truth, label, average=None))
    assert_allclose(
        class_recall(posterior, truth), metrics.recall_score(truth, label, average=None)
    )
    assert_allclose(log_loss(posterior, truth), metrics.log_loss(truth, posterior))
    assert_allclose(
        confidence_auroc(posterior, truth).value,
        metrics.roc_auc_score(label == truth, posterior.max(axis=1)),
    )
    one_hot = np.eye(3)[truth]
    assert_allclose(
        brier_score(posterior, truth), np.mean(((posterior - one_hot) ** 2).sum(axis=1))
    )


def test_ties_count_in_part():
    posterior = np.array([[0.5, 0.5, 0.0], [0.4, 0.4, 0.2], [1 / 3, 1 / 3, 1 / 3], [0.0, 0.2, 0.8]])
    assert_allclose(accuracy(posterior, [0, 2, 1, 2]), (1 / 2 + 0 + 1 / 3 + 1) / 4)
    assert_allclose(class_recall(posterior, np.array([0, 2, 1, 2])), [1 / 2, 1 / 3, 1 / 2])


@pytest.mark.parametrize("bins", ["mass", "width"])
def test_calibration_error_equals_plain_loops(predicted, bins):
    posterior, truth = predicted
    trust, right = posterior.max(axis=1), posterior.argmax(axis=1) == truth
    edges = np.linspace(0, 1, 6)
    if bins == "mass":
        edges = np.sort(trust)[[0, 79, 159, 239, 319, 399]]
        edges[0] = 0
    expected = 0.0
    for low, high in pairwise(edges):
        inside = [i for i in range(400) if low < trust[i] <= high]
        if inside:
            gap = abs(np.mean(trust[inside]) - np.mean(right[inside]))
            expected += gap * len(inside) / 400
    found = expected_calibration_error(posterior, truth, n_bins=5, bins=bins)
    assert_allclose(found, expected)


def test_a_calibrated_posterior_has_little_error():
    rng = np.random.default_rng(1)
    posterior = rng.dirichlet([2, 1, 0.5], size=20_000)
    truth = (rng.random((20_000, 1)) > posterior.cumsum(axis=1)).sum(axis=1)
    assert expected_calibration_error(posterior, truth) < 0.02
    sharpened = posterior**3 / (posterior**3).sum(axis=1, keepdims=True)
    assert expected_calibration_error(sharpened, truth) > 0.1


def test_reliability_table_adds_up(frame):
    proba, truth = frame
    table = reliability_table(proba, truth, n_bins=4)
    assert table["n_tasks"].sum() == 400
    assert table["n_tasks"].tolist() == [100] * 4
    assert_allclose(
        (table["accuracy"] * table["n_tasks"]).sum() / 400,
        np.mean(proba.idxmax(axis=1) == truth),
    )
    assert (table["low"] < table["accuracy"]).all()
    assert (table["high"] > table["accuracy"]).all()
    assert ((table["from"] <= table["confidence"]) & (table["confidence"] <= table["to"])).all()


def test_auroc_interval_is_delongs(predicted):
    posterior, truth = predicted
    trust, right = posterior.max(axis=1), posterior.argmax(axis=1) == truth
    above = (trust[right][:, None] > trust[~right]).astype(float)
    variance = above.mean(axis=1).var() / right.sum() + above.mean(axis=0).var() / (~right).sum()
    found = confidence_auroc(posterior, truth)
    assert_allclose((found.high - found.low) / (2 * 1.959964), np.sqrt(variance), rtol=1e-6)


def test_auroc_counts_equal_confidence_half():
    posterior = np.array([[0.9, 0.1], [0.8, 0.2], [0.8, 0.2], [0.6, 0.4]])
    # Right at .9 and .8, wrong at .8 and .6: pairs 1, 1, 1/2, 1.
    assert_allclose(confidence_auroc(posterior, np.array([0, 0, 1, 1])).value, 3.5 / 4)


def test_auroc_needs_right_and_wrong_labels():
    found = confidence_auroc(np.array([[0.9, 0.1]]), np.array([0]))
    assert np.isnan(found.value)
    assert found.note == "Every label is correct."


def test_a_ruled_out_truth_costs_the_floor():
    assert_allclose(log_loss(np.array([[1.0, 0.0]]), np.array([1]), floor=0.01), -np.log(0.01))
    with pytest.raises(ParameterError, match="floor"):
        log_loss(np.array([[1.0, 0.0]]), np.array([1]), floor=0)


def test_the_frame_has_every_score_with_its_interval(predicted, frame):
    posterior, truth = predicted
    table = score(*frame)
    expected = {
        "accuracy": accuracy(posterior, truth),
        "balanced accuracy": balanced_accuracy(posterior, truth),
        "macro F1": macro_f1(posterior, truth),
        "minority F1": class_f1(posterior, truth)[2],
        "minority recall": class_recall(posterior, truth)[2],
        "log loss": log_loss(posterior, truth),
        "Brier score": brier_score(posterior, truth),
        "calibration error": expected_calibration_error(posterior, truth),
        "confidence AUROC": confidence_auroc(posterior, truth).value,
    }
    assert_allclose(table["value"], pd.Series(expected)[table.index])
    rest = table.drop(index="calibration error")  # biased, so that its interval may be beside it
    assert ((rest["low"] < rest["value"]) & (rest["value"] < rest["high"])).all()
    assert (table["n_tasks"] == 400).all()
    assert score(*frame, minority="yes").loc["minority F1", "value"] == pytest.approx(
        class_f1(posterior, truth)[1]
    )


def test_intervals_hold_the_truth_about_as_often_as_they_say():
    def draw(n, rng):
        truth = rng.choice(2, n, p=[0.8, 0.2])
        logit = rng.normal(size=n) + 1.5 * truth - 1
        yes = 1 / (1 + np.exp(-logit))
        return pd.DataFrame({0: 1 - yes, 1: yes}), pd.Series(truth)

    rng = np.random.default_rng(0)
    many = score(*draw(300_000, rng), n_resamples=0)["value"]
    tables = [score(*draw(150, rng), n_resamples=300) for _ in range(80)]
    held = pd.DataFrame([(t["low"] <= many) & (many <= t["high"]) for t in tables]).mean()
    assert (held.drop("calibration error") >= 0.86).all(), held


def test_takes_models_labels_and_truths_of_any_kind():
    crowd = simulate_crowd(200, 20, random_state=0)
    model = DawidSkene().fit(crowd.annotations)
    truth = pd.Series(crowd.truth, index=crowd.annotations.tasks)
    table = score(model, truth)
    assert_allclose(table, score(model.probas_, truth.to_dict()))
    by_frame = truth.rename_axis("task").rename("label").reset_index()
    assert_allclose(table, score(model, by_frame))
    hard = score(model.labels_, truth)
    assert_allclose(hard["value"], table["value"].iloc[:5])
    assert len(hard) == 5


def test_only_tasks_with_a_truth_count(frame):
    proba, truth = frame
    some = truth.iloc[::3]
    extra = pd.concat([some, pd.Series({"unheard of": "no"}), pd.Series({"t1": None})])
    table = score(proba, extra)
    assert (table["n_tasks"] == len(some)).all()
    label = proba.idxmax(axis=1)[some.index]
    assert_allclose(table.loc["accuracy", "value"], np.mean(label == some))


@pytest.mark.filterwarnings("ignore:1 of 3 truths are of an unknown class")
def test_a_class_nobody_predicted_is_wrong():
    proba = pd.DataFrame({"a": [0.9, 0.2, 0.7], "b": [0.1, 0.8, 0.3]})
    table = score(proba, {0: "a", 1: "b", 2: "c"})
    assert_allclose(table.loc["accuracy", "value"], 2 / 3)
    assert_allclose(table.loc["balanced accuracy", "value"], 2 / 3)
    assert table.loc["minority recall", "value"] in (0, 1)
    assert score(proba, {0: "a", 1: "b", 2: "c"}, minority="c").loc["minority F1", "value"] == 0


def test_no_label_is_not_right():
    labels = MajorityVote(ties="abstain").fit_predict([[0, 0], [0, 1], [1, 1]])
    assert_allclose(score(labels, {0: 0, 1: 0, 2: 1}).loc["accuracy", "value"], 2 / 3)


@pytest.mark.parametrize("learner", [SoftProb(), SpeeLFC(random_state=0)])
def test_a_learner_is_scored_by_its_posterior(learner):
    rng = np.random.default_rng(2)
    truth = rng.choice(2, 30, p=[0.7, 0.3])
    confusion = np.array([[[0.9, 0.1], [0.4, 0.6]], [[0.7, 0.3], [0.2, 0.8]]])
    codes = label_by_crowd(truth, confusion, 2, random_state=0)
    tasks = np.array([f"t{i}" for i in range(30)], dtype=object)
    votes = replace(codes, tasks=tasks, classes=np.array(["no", "yes"], dtype=object))
    X = rng.normal(size=(30, 2)) + truth[:, None]
    if hasattr(learner, "training"):
        learner.set_params(training=Training(epochs=3, device="cpu"))
    model = learner.fit(X, votes)
    known = dict(zip(tasks[5:], votes.classes[truth[5:]], strict=True))
    frame = pd.DataFrame(model.posterior_, index=tasks, columns=votes.classes)
    pd.testing.assert_frame_equal(score(model, known), score(frame, known))
    right = sum(row.argmax() == t for row, t in zip(model.posterior_[5:], truth[5:], strict=True))
    assert score(model, known).loc["accuracy", "value"] == pytest.approx(right / 25)


@pytest.mark.parametrize(
    ("predicted", "truth", "what"),
    [
        (pd.Series({"a": 0}), {"b": 0}, "No truth is for a task that was predicted"),
        (pd.Series({1: "x"}), {"1": "x"}, "same type"),
        (pd.Series({"a": 0}), {}, "There are no truths to score by"),
        (pd.Series({"a": 0}), {"a": "0"}, "None of the true labels"),
        (pd.Series({"a": 0}), pd.DataFrame({"task": ["a"], "x": [1]}), "no column for the label"),
        (pd.Series({"a": 0}), pd.DataFrame({"task": ["a", "a"], "label": [0, 1]}), "two different"),
        (pd.Series({"a": 0}), [0], "which task"),
        ([0, 1], {"a": 0}, "cannot be scored"),
        (SoftProb(), {"a": 0}, "SoftProb cannot be scored"),
    ],
)
def test_refuses_what_does_not_match(predicted, truth, what):
    with pytest.raises(AnnotationError, match=what):
        score(predicted, truth)


@pytest.mark.parametrize("bad", [{"minority": "?"}, {"bins": "x"}, {"n_bins": 0}])
def test_refuses_bad_parameters(frame, bad):
    with pytest.raises(ParameterError, match="expected"):
        score(*frame, **bad)


def test_real_crowd(real_crowd):
    crowd = real_crowd("bluebirds")
    table = score(MajorityVote().fit(crowd.annotations), crowd.truth)
    assert_allclose(table.loc["accuracy", "value"], 0.7593, atol=5e-5)
    table = score(DawidSkene().fit(crowd.annotations), crowd.truth)
    assert_allclose(table.loc["accuracy", "value"], 0.8981, atol=5e-5)


MEASURES = (
    accuracy, balanced_accuracy, macro_f1, class_f1, class_recall, log_loss, brier_score,
    expected_calibration_error, confidence_auroc,
)  # fmt: skip


@pytest.mark.parametrize("measure", MEASURES)
def test_promise_09_numbers_that_are_no_truths_are_not_scored(measure):
    rng = np.random.default_rng(0)
    posterior, truth = rng.dirichlet([1, 1, 1], 50), rng.integers(0, 3, 50)
    some = np.where(np.arange(50) % 3 == 0, -1, truth)
    found, expected = measure(posterior, some), measure(posterior[some >= 0], truth[some >= 0])
    np.testing.assert_array_equal(np.asarray(found, dtype=float), np.asarray(expected, dtype=float))
    for bad in (truth + 1, truth - 2, truth[:-1], truth * 1.0, truth.astype(str), truth[:, None]):
        with pytest.raises(ParameterError, match=r"do not match predictions(.|\n)*fix: "):
            measure(posterior, bad)
    with pytest.raises(ParameterError, match="do not match predictions"):
        measure(posterior.argmax(axis=1), truth)
    with pytest.raises(AnnotationError, match="no truths"):
        measure(posterior, np.full(50, -1))


@pytest.mark.parametrize("measure", MEASURES)
def test_promise_17_compact_results_are_scored_like_others(measure, monkeypatch):
    rng = np.random.default_rng(0)
    votes, truth = rng.integers(0, 5, (60, 3)), rng.integers(-1, 5, 60)
    dense = Wawa().fit(votes).posterior_
    monkeypatch.setattr(memory, "LARGE", 0)
    compact = Wawa().fit(votes).posterior_
    assert isinstance(compact, CompactPosterior)
    found, expected = (np.asarray(measure(own, truth), dtype=float) for own in (compact, dense))
    assert_allclose(found, expected)
