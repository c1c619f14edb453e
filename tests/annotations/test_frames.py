"""Long frames of every make."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

import crowdwise as cw
from crowdwise import Annotations
from crowdwise.annotations.frames import to_floats
from crowdwise.errors import AnnotationError, ParameterError

DATA = {
    "task": ["b", "a", "b", "a"],
    "worker": [7, 7, 5, 5],
    "label": ["x", "y", None, "x"],
    "w": [1.0, 2.0, 3.0, 4.0],
    "t": [4, 3, 2, 1],
    "truth": ["x", None, "x", "z"],
}


@pytest.fixture(params=["pandas", "polars", "arrow", "categorical"])
def frame(request):
    makers = {
        "pandas": pd.DataFrame,
        "polars": pl.DataFrame,
        "arrow": pa.table,
        "categorical": lambda data: pd.DataFrame(data).astype(
            {"task": "category", "label": "category"}
        ),
    }
    return makers[request.param](DATA)


def test_reads_frames_of_any_make(frame, triples):
    annotations = Annotations.from_frame(frame, weight="w", time="t", gold="truth")
    assert triples(annotations) == [("a", 7, "y"), ("a", 5, "x"), ("b", 7, "x")]
    assert annotations.weight.tolist() == [2, 4, 1]
    assert annotations.time.tolist() == [3, 1, 4]
    assert annotations.classes.tolist() == ["x", "y", "z"]  # z is only in gold
    assert annotations.gold.tolist() == [2, 0]
    assert annotations.notes == (
        "truths of a class that no worker gave ('z'): 1",
        "rows without a label left out: 1",
    )


def test_order_of_rows_leaves_no_trace():
    data = pd.DataFrame(DATA)
    assert Annotations.from_frame(data[::-1]).classes.tolist() == ["x", "y"]
    assert Annotations.from_frame(data[::-1]).tasks.tolist() == ["a", "b"]


def test_columns_of_any_name():
    frame = pd.DataFrame(DATA).rename(columns={"task": "q", "worker": "who", "label": "said"})
    assert Annotations.from_frame(frame, "q", "who", "said").n_annotations == 3
    with pytest.raises(AnnotationError, match=r"no column 'task' for the task(.|\n)*q, who, said"):
        Annotations.from_frame(frame)
    with pytest.raises(AnnotationError, match="no column 'v' for the weight"):
        Annotations.from_frame(pd.DataFrame(DATA), weight="v")


@pytest.mark.parametrize("make", [pd.DataFrame, lambda d: pd.DataFrame(d).astype("category")])
def test_declared_names(make):
    frame = make({"task": ["a"], "worker": ["w"], "label": ["y"]})
    annotations = Annotations.from_frame(
        frame, tasks=["b", "a"], workers=["w", "v"], classes=["y", "x"]
    )
    assert annotations.tasks.tolist() == ["b", "a"]
    assert annotations.shape == (2, 2)
    assert (annotations.task[0], annotations.worker[0], annotations.label[0]) == (1, 0, 0)
    with pytest.raises(
        AnnotationError, match=r"unknown label occurs in 1 of 1(.|\n)*label='y'(.|\n)*\['n'\]"
    ):
        Annotations.from_frame(frame, classes=["n"])


def test_categories_that_no_row_has_are_left_out():
    column = pd.Categorical(["b", None, "b"], categories=["c", "b", "a"])
    frame = pd.DataFrame({"task": [1, 1, 2], "worker": [1, 2, 1], "label": column})
    assert Annotations.from_frame(frame).classes.tolist() == ["b"]


def test_missing_tasks_and_workers():
    frame = pd.DataFrame({"task": ["a", None], "worker": ["w", "w"], "label": [1, 1]})
    with pytest.raises(
        AnnotationError, match=r"task is missing in 1 of 2 annotations(.|\n)*row 2: task="
    ):
        Annotations.from_frame(frame)
    frame = pd.DataFrame({"task": ["a", "a"], "worker": [1.0, np.nan], "label": [1, 1]})
    with pytest.raises(AnnotationError, match="worker is missing in 1 of 2 annotations"):
        Annotations.from_frame(frame)


def test_a_row_without_a_label_may_lack_anything_else():
    frame = pd.DataFrame(
        {"task": ["a", "b", None], "worker": ["w", None, None], "label": [1, None, None]}
    )
    annotations = Annotations.from_frame(frame)
    assert annotations.tasks.tolist() == ["a", "b"]
    assert annotations.n_annotations == 1


def test_gold_must_be_one_per_task():
    frame = pd.DataFrame(
        {"task": [1, 1], "worker": [1, 2], "label": ["x", "y"], "gold": ["x", "y"]}
    )
    with pytest.raises(AnnotationError, match=r"A task has two different gold labels"):
        Annotations.from_frame(frame, gold="gold")


def test_gold_without_a_task_is_passed_over():
    frame = pd.DataFrame(
        {"task": ["a", None], "worker": [1, 2], "label": ["x", None], "gold": [None, "x"]}
    )
    assert Annotations.from_frame(frame, gold="gold").gold.tolist() == [-1]


def test_times_of_every_kind():
    frame = pd.DataFrame({"task": [1, 2], "worker": [1, 1], "label": [0, 1]})
    text = frame.assign(t=["2024-05-01T10:00:00+02:00", "2024-05-01 09:00"])
    annotations = Annotations.from_frame(text, time="t")
    assert annotations.time.astype("datetime64[h]").tolist() == [
        np.datetime64("2024-05-01T08", "h").item(), np.datetime64("2024-05-01T09", "h").item(),
    ]  # fmt: skip
    with pytest.raises(AnnotationError, match=r"cannot be read as times(.|\n)*2024-05-31"):
        Annotations.from_frame(frame.assign(t=["soon", "later"]), time="t")


def test_soft_labels():
    frame = pd.DataFrame({"task": [1, 2], "worker": [1, 1], "p": [1.0, 3.0], "q": [3.0, 1.0]})
    annotations = Annotations.from_frame(frame, soft={"yes": "p", "no": "q"})
    assert annotations.classes.tolist() == ["no", "yes"]
    assert annotations.soft.tolist() == [[0.75, 0.25], [0.25, 0.75]]
    assert annotations.label.tolist() == [0, 1]
    ordered = Annotations.from_frame(frame, soft={"yes": "p", "no": "q"}, classes=["yes", "no"])
    assert ordered.soft.tolist() == [[0.25, 0.75], [0.75, 0.25]]
    with pytest.raises(AnnotationError, match="no column 'r' for the probability of 'yes'"):
        Annotations.from_frame(frame, soft={"yes": "r"})


def test_repeats():
    frame = pd.DataFrame({"task": [1, 1], "worker": [1, 1], "label": ["x", "y"]})
    assert Annotations.from_frame(frame).n_repeats == 1
    assert Annotations.from_frame(frame, repeats="last").label.tolist() == [1]
    with pytest.raises(ParameterError, match=r"repeats='some' is unknown(.|\n)*all, first"):
        Annotations.from_frame(frame, repeats="some")


def test_an_empty_frame():
    assert Annotations.from_frame(pd.DataFrame({"task": [], "worker": [], "label": []})).shape == (
        0,
        0,
    )


@pytest.mark.parametrize("make", [pl.DataFrame, pa.table])
def test_large_numbers_beside_a_missing_one_stay_whole(make):
    ids = [2**60 + 1, 2**60, None]
    frame = make(
        {"task": [1, 1, 2], "worker": ids, "label": ["x", "y", None], "time": [1, None, 3]}
    )
    for built in (Annotations.from_frame(frame, time="time"), cw.read(frame)):
        assert built.workers.tolist() == [2**60, 2**60 + 1]
        assert built.time.tolist()[0] == 1
        assert np.isnan(built.time[1])


def test_a_lazy_frame_is_collected():
    lazy = pl.LazyFrame({"task": [1, 2], "worker": [1, 1], "label": ["x", "y"]})
    assert Annotations.from_frame(lazy).n_annotations == 2
    assert cw.read(lazy).n_annotations == 2
    assert Annotations.from_matrix(pl.LazyFrame({"a": [0, 1], "b": [1, 1]})).shape == (2, 2)


def test_what_is_no_frame_is_refused():
    twins = pd.DataFrame([[1, 2, 3, 4]], columns=["task", "task", "worker", "label"])
    with pytest.raises(
        AnnotationError, match=r"two columns with the same name(.|\n)*'task'(.|\n)*rename"
    ):
        Annotations.from_frame(twins)
    with pytest.raises(AnnotationError, match=r"A list is not a frame(.|\n)*polars"):
        Annotations.from_frame([1, 2])


def test_the_order_of_classes_outlives_gold():
    scale = pd.Categorical(["low", "high"], categories=["low", "mid", "high"], ordered=True)
    frame = pd.DataFrame(
        {"task": [1, 2], "worker": [1, 1], "label": scale, "gold": ["high", "all"]}
    )
    annotations = Annotations.from_frame(frame, gold="gold")
    assert annotations.classes.tolist() == ["low", "mid", "high", "all"]
    assert annotations.label.tolist() == [0, 2]
    assert annotations.gold.tolist() == [2, 3]
    plain = frame.assign(label=frame["label"].astype(str))
    assert Annotations.from_frame(plain, gold="gold").classes.tolist() == ["all", "high", "low"]
    declared = Annotations.from_frame(plain, gold="gold", classes=["low", "high"])
    assert declared.classes.tolist() == ["low", "high", "all"]


def test_a_row_may_tell_a_truth_alone():
    frame = pd.DataFrame(
        {"task": [1, 2], "worker": ["a", None], "label": ["x", None], "gold": [None, "y"]}
    )
    annotations = Annotations.from_frame(frame, gold="gold")
    assert annotations.tasks.tolist() == [1, 2]
    assert annotations.gold_labels.to_dict() == {2: "y"}
    assert annotations.notes == ("truths of a class that no worker gave ('y'): 1",)


def test_gold_of_no_task_at_all():
    frame = pd.DataFrame(
        {"task": [None, None], "worker": [1, 2], "label": [None, None], "gold": ["x", None]}
    )
    assert Annotations.from_frame(frame, gold="gold").shape == (0, 2)


@pytest.mark.parametrize("weight", [-1.0, np.nan, np.inf, "much"])
def test_weights_that_are_not_usable(weight):
    frame = pd.DataFrame({"task": [2, 1], "worker": [1, 1], "label": [0, 1], "weight": [1, weight]})
    with pytest.raises(
        AnnotationError, match=r"frame has 1 weight that(.|\n)*row 2: weight=(.|\n)*fix"
    ):
        Annotations.from_frame(frame, weight="weight")
    unlabeled = frame.assign(label=[0, None])
    assert Annotations.from_frame(unlabeled, weight="weight").weight.tolist() == [1]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["0,5", "1", " -2,25", ",5", None], [0.5, 1, -2.25, 0.5, np.nan]),
        (["1,500", "0,5"], [1.5, 0.5]),
        (["1,500", "2,000"], None),  # thousands?
        (["0,5", "1.5"], None),
        (["0,5", "1,500,000"], None),
        (["50%", "5%"], None),
        (["0,5", "half"], None),
        (["0,5", 1.5], None),
    ],
)
def test_decimal_commas_are_read_unless_they_may_be_thousands(texts, expected):
    for column in (pd.Series(texts, dtype=object), pd.Series(texts, dtype="category")):
        found = to_floats(column)
        if expected is None:
            assert found is None
        else:
            assert_array_equal(found, expected)


def test_numbers_that_cannot_be_read_come_with_advice():
    frame = pd.DataFrame({"task": [1, 1], "worker": [1, 2], "label": [0, 1], "w": ["50%", "1"]})
    with pytest.raises(AnnotationError, match="with a decimal point, without % or other marks"):
        Annotations.from_frame(frame, weight="w")
    assert Annotations.from_frame(frame.assign(w=["0,5", "1"]), weight="w").weight[0] == 0.5
    with pytest.raises(AnnotationError, match=r"fix: +correct these weights"):
        Annotations.from_frame(frame.assign(w=["a", "1"]), weight="w")


def test_names_that_differ_by_spaces_are_noted():
    frame = pd.DataFrame(
        {"task": [1, 1, 2], "worker": ["a", " a ", "b"], "label": ["x", "x", "x "]}
    )
    assert Annotations.from_frame(frame).notes == (
        "2 workers differ only by surrounding spaces, such as ' a ' and 'a' (kept apart)",
        "2 labels differ only by surrounding spaces, such as 'x' and 'x ' (kept apart)",
    )


def test_columns_of_arrow_keep_their_gaps_and_types(triples):
    frame = pd.DataFrame(
        {
            "task": pd.to_datetime(["2024-05-01"] * 3).tz_localize("Europe/Berlin"),
            "worker": pd.period_range("2020", periods=3, freq="Y"),
            "label": pd.Categorical(["x", None, "z"]),
        }
    )
    table = pa.Table.from_pandas(frame)
    for built in (Annotations.from_frame(table), cw.read(table)):
        assert triples(built) == triples(Annotations.from_frame(frame))
        assert built.n_annotations == 2


def test_probabilities_that_are_no_numbers():
    frame = pd.DataFrame({"task": [1, 2], "worker": [1, 1], "a": ["0.5", "NA"], "b": [0.5, 1.0]})
    with pytest.raises(AnnotationError, match=r"values of soft cannot be used(.|\n)*row 2"):
        Annotations.from_frame(frame, soft={"x": "a", "y": "b"})
