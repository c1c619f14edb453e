"""Cutting a crowd into its parts keeps features, annotations and truth in step."""

import numpy as np
import pandas as pd
import pytest

from crowdwise import Annotations
from crowdwise.datasets import Crowd, info
from crowdwise.errors import ParameterError

TASKS = np.array(["e", "d", "c", "b", "a"], dtype=object)


@pytest.fixture
def crowd():
    """Five tasks in an order that is not sorted; ``a`` and ``d`` have no annotations."""
    rows = [("e", 0, "x"), ("c", 1, "y"), ("e", 1, "x"), ("b", 0, "z"), ("c", 2, "x")]
    frame = pd.DataFrame(rows, columns=["task", "worker", "label"])
    return Crowd(
        "made-up",
        Annotations.from_frame(frame, tasks=["e", "c", "b"], classes=["x", "y", "z"]),
        info("dog"),
        truth=pd.Series({"a": "z", "e": "x", "d": "y"}),
        X=np.arange(10).reshape(5, 2),
        X_tasks=TASKS,
        items=pd.DataFrame({"text": list(TASKS)}, index=TASKS),
        split=pd.Series({"a": "test", "b": "train", "c": "train", "d": "train", "e": "train"}),
    )


def test_a_part_has_one_order(crowd):
    train = crowd.part("train")
    assert train.annotations.tasks.tolist() == train.X_tasks.tolist() == ["e", "d", "c", "b"]
    assert train.X.tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert train.truth.to_dict() == {"e": "x", "d": "y"}
    assert train.items["text"].tolist() == ["e", "d", "c", "b"]
    assert set(train.split) == {"train"}


def test_a_part_keeps_every_annotation_worker_and_class(crowd):
    train, test = crowd.part("train"), crowd.part("test")
    assert train.annotations.to_frame().equals(crowd.annotations.to_frame())
    assert train.annotations.redundancy.tolist() == [2, 0, 2, 1]
    assert test.annotations.shape == (1, 3)
    assert test.annotations.classes.tolist() == ["x", "y", "z"]
    assert test.truth.to_dict() == {"a": "z"}


def test_weights_follow_their_annotations(crowd):
    weighted = Annotations.from_codes(
        [0, 1, 1, 2], [0, 0, 1, 1], [0, 1, 2, 0], tasks=["e", "c", "b"], weight=[1.0, 2.0, 3.0, 4.0]
    )
    from dataclasses import replace

    split = pd.Series({"c": "one", "b": "one", "e": "two"})
    part = replace(crowd, annotations=weighted, X=None, X_tasks=None, split=split).part("one")
    assert part.annotations.tasks.tolist() == ["c", "b"]
    assert part.annotations.weight.tolist() == [2.0, 3.0, 4.0]
    assert part.X is None


def test_an_unknown_part_gets_the_known_ones(crowd):
    with pytest.raises(ParameterError, match=r"no part 'valid'[^']*'test', 'train'"):
        crowd.part("valid")


def test_a_crowd_without_a_split_says_so(crowd):
    from dataclasses import replace

    with pytest.raises(ParameterError, match="this one has none"):
        replace(crowd, split=None).part("train")


def test_it_shows_what_it_holds(crowd):
    assert repr(crowd) == (
        "<made-up: 5 annotations of 3 tasks by 3 workers, 3 classes; truth of 3; X 5 x 2; "
        "split test, train>"
    )
