"""Rows of frames find their tasks, workers, label names and classes, or are refused."""

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import ShuffleSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils import resample

from crowdwise import Annotations
from crowdwise.base.fitting import in_task_order, order_by_name
from crowdwise.embed import RLL
from crowdwise.errors import AnnotationError
from crowdwise.learn import EM, LIA, CrowdLab, SoftProb, SpeeLFC, Training, TwoStage
from crowdwise.learn.label_pairs import label_table
from crowdwise.nets.features import as_features, worker_table

NAMES = np.array(["t1", "t2", "t3", "t4"], dtype=object)
FRAME = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0]}, index=NAMES)
BRIEF = Training(epochs=3)


def named(votes, tasks):
    return Annotations.from_codes(
        votes.task, votes.worker, votes.label, tasks=tasks, classes=votes.classes
    )


@pytest.fixture(scope="module")
def texts(crowd):
    """Tasks named by text, and a frame of features that is indexed by them."""
    names = np.array([f"t{i:03}" for i in range(400)], dtype=object)
    return named(crowd.votes, names), pd.DataFrame(crowd.X, index=names)


MODELS = [
    SoftProb(),
    TwoStage(),
    CrowdLab(random_state=0),
    SpeeLFC(training=BRIEF, random_state=0),
    LIA(objective=EM(1, 2, None), training=BRIEF, random_state=0),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_a_reversed_frame_is_put_in_order(model, crowd):
    frame = pd.DataFrame(crowd.X)
    assert isinstance(frame[::-1].index, pd.RangeIndex)  # which counts, but not from 0 up
    straight = model.fit(frame, crowd.votes).posterior_
    score = model.score(frame, crowd.votes)
    assert model.score(frame[::-1], crowd.votes) == pytest.approx(score)
    assert_allclose(model.fit(frame[::-1], crowd.votes).posterior_, straight, atol=1e-5)


def test_an_embedder_puts_a_reversed_frame_in_order(crowd):
    frame = pd.DataFrame(crowd.X)
    training = Training(learning_rate=1e-2, batch_size=128, epochs=1, device="cpu")
    model = RLL(groups_per_epoch=128, training=training, random_state=0)
    straight = model.fit(frame, crowd.votes).transform(frame)
    assert_allclose(model.fit(frame[::-1], crowd.votes).transform(frame), straight, atol=1e-5)


BAD = {
    "mistyped": (["t4", "t3", "t2", "t1 "], "1 of 4 task names are missing.*first:    task 't1'"),
    "repeated": (["t4", "t3", "t2", "t1", "t1"], "1 of 4 task names are more than once.*'t1'"),
    "one of two": (["t2", "t1", "u", "v"], "2 of 4 task names are missing.*'t3'"),
}


@pytest.mark.parametrize(("index", "message"), BAD.values(), ids=BAD)
@pytest.mark.parametrize("take", [as_features, in_task_order], ids=["network", "plain"])
def test_names_that_fit_only_partly_are_refused(take, index, message):
    frame = pd.DataFrame({"x": np.arange(float(len(index)))}, index=index)
    with pytest.raises(AnnotationError, match=f"(?s){message}"):
        take(frame, NAMES)


LEFT_OVER = {"of other rows": [1, 2, 3, 9], "put together": [0, 1, 0, 1], "one short": [3, 2, 1, 7]}


@pytest.mark.parametrize("index", LEFT_OVER.values(), ids=LEFT_OVER)
@pytest.mark.parametrize("needed", [False, True])
def test_row_numbers_that_fit_only_partly_are_refused(index, needed):
    frame = pd.DataFrame({"x": np.arange(4.0)}, index=index)
    with pytest.raises(AnnotationError, match=r"(?s)task names are.*to_numpy"):
        order_by_name(frame, np.arange(4), needed=needed)


def test_promise_01_rows_from_0_of_features_that_are_called_tasks_are_tasks():
    frame = pd.DataFrame({"x": np.arange(4.0)})
    assert order_by_name(frame, np.arange(1, 5)) is None  # as an array
    with pytest.raises(AnnotationError, match="1 of 4 task names are missing"):
        order_by_name(frame.rename_axis("task"), np.arange(1, 5))


@pytest.mark.parametrize("tasks", [np.arange(4), np.array(list("0123"), dtype=object)], ids=str)
def test_names_of_another_type_are_refused_unless_they_are_in_order(tasks):
    other = [str(task) for task in tasks] if tasks.dtype != object else list(range(4))
    frame = FRAME.set_axis(other)
    assert order_by_name(frame, tasks) is None
    with pytest.raises(AnnotationError, match=r"(?s)different type.*first:    task '?0'? is '?0'?"):
        order_by_name(frame[::-1], tasks)


def test_row_numbers_that_are_text_in_part_say_nothing():
    tasks = np.array(["0", "1", "10", "2"], dtype=object)
    assert order_by_name(FRAME.set_axis([3, 1, 2, 0]), tasks) is None


def test_rows_of_other_tasks_are_passed_over():
    more = pd.concat([FRAME, FRAME.set_axis(["z", "z", "y", "x"])])[::-1]
    assert in_task_order(more, NAMES)["x"].tolist() == [1.0, 2.0, 3.0, 4.0]
    wanted = np.array(["t3", "t1"], dtype=object)
    assert as_features(more, wanted).rows(torch.arange(2)).flatten().tolist() == [3.0, 1.0]


@pytest.mark.parametrize("index", [range(4), ["a", "b", "a", "b"], [7, 5, 6, 4]], ids=str)
def test_an_index_of_other_names_says_nothing(index):
    frame = FRAME.set_axis(list(index) if not isinstance(index, range) else pd.RangeIndex(4))
    assert in_task_order(frame, NAMES) is frame
    assert order_by_name(frame, NAMES) is None


def test_plain_frames_are_split_and_drawn_like_rows(texts):
    votes, frame = texts
    counted = frame.reset_index(drop=True)
    splits = ShuffleSplit(2, random_state=0)
    by_place = cross_val_score(TwoStage(), counted, votes, cv=splits)
    assert_allclose(cross_val_score(TwoStage(), frame, votes, cv=splits), by_place)
    assert_allclose(cross_val_score(TwoStage(), frame.to_numpy(), votes, cv=splits), by_place)
    rows, drawn = resample(frame, votes, random_state=0)  # with replacement
    assert in_task_order(rows, drawn.tasks) is rows


def test_a_series_of_texts_is_put_in_order(texts, crowd):
    votes, frame = texts
    text = pd.Series(np.array(["up", "down", "far"])[crowd.truth], index=frame.index)
    model = TwoStage(classifier=make_pipeline(CountVectorizer(), LogisticRegression()))
    model.fit(text.sample(frac=1, random_state=0), votes)
    assert model.score(text, crowd.truth) > 0.95


@pytest.mark.parametrize(
    "table", [worker_table, label_table], ids=["worker_features", "label_features"]
)
def test_features_of_workers_and_label_names_are_found_by_name(table):
    counted = FRAME.reset_index(drop=True)[::-1]
    assert table(counted, np.arange(4)).flatten().tolist() == [1.0, 2.0, 3.0, 4.0]
    assert table(FRAME[::-1], NAMES).flatten().tolist() == [1.0, 2.0, 3.0, 4.0]
    assert table(FRAME.to_numpy(), NAMES).flatten().tolist() == [1.0, 2.0, 3.0, 4.0]
    for index in (["t1", "t2", "t3", "t4 "], list("abcd"), ["t1", "t2", "t3", "t4", "t4"]):
        with pytest.raises(AnnotationError, match=r"names are (missing|more than once)"):
            table(FRAME.iloc[[0, 1, 2, 3, 3][: len(index)]].set_axis(index), NAMES)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([["a"]] * 4, "could not convert"),
        (np.ones((4, 1)) * 1j, "complex"),
        (np.ones((3, 1)), r"shape \(3, 1\)"),
        (np.ones(4), r"shape \(4,\)"),
        (np.array([[1.0], [2.0], [np.nan], [1.0]]), "row 2 holds nan"),
    ],
    ids=["text", "complex", "too few", "flat", "missing"],
)
def test_features_of_workers_are_rows_of_numbers(rows, message):
    with pytest.raises(AnnotationError, match=f"(?s){message}.*one row of finite numbers per wor"):
        worker_table(rows, NAMES)
    grown = torch.ones(4, 1, requires_grad=True)
    assert_array_equal(worker_table(grown, NAMES), np.ones((4, 1)))


def test_predicted_probabilities_are_found_by_task_and_class(texts):
    votes, frame = texts
    votes = Annotations.from_codes(
        votes.task, votes.worker, votes.label, tasks=votes.tasks, classes=["a", "b", "c"]
    )
    proba = np.random.default_rng(0).dirichlet([3.0, 2.0, 1.0], 400)
    straight = CrowdLab(random_state=0).fit(None, votes, pred_probs=proba).posterior_
    table = pd.DataFrame(proba, index=frame.index, columns=["a", "b", "c"])
    for given in (
        table,
        table[::-1],
        table[["c", "a", "b"]],
        table.set_axis(["p", "q", "r"], axis=1),
    ):
        again = CrowdLab(random_state=0).fit(None, votes, pred_probs=given)
        assert_array_equal(again.posterior_, straight)
    with pytest.raises(AnnotationError, match="1 of 3 class names are missing from the columns"):
        CrowdLab().fit(None, votes, pred_probs=table.rename(columns={"c": "C"}))


@pytest.mark.parametrize("form", [np.asarray, np.ndarray.tolist], ids=["array", "list"])
def test_promise_01_rows_go_by_place_beside_labels_without_names(form):
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 60)
    X = pd.DataFrame({"a": truth + rng.normal(0, 0.1, 60)})
    labels = np.where(rng.random((60, 3)) < 0.9, truth[:, None], 1 - truth[:, None])
    place = rng.permutation(60)
    for rows in (place, place[:40]):  # shuffled alike, and a part
        model = TwoStage().fit(X.iloc[rows], form(labels[rows]))
        assert (model.predict(X) == truth).mean() > 0.9
        assert np.isfinite(model.score(X.iloc[rows], form(labels[rows])))
    assert np.isfinite(cross_val_score(TwoStage(), X, labels, cv=3)).all()
    assert (
        TwoStage().fit(X.rename_axis("task").iloc[place], labels).predict(X) == truth
    ).mean() > 0.9
