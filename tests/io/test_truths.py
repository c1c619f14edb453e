"""Known truths in any shape."""

import pandas as pd
import polars as pl
import pytest

from crowdwise.errors import AnnotationError
from crowdwise.io.gold import collect_truths


@pytest.mark.parametrize(
    "truth",
    [
        {"a": 1, "b": 2, "c": None},
        pd.Series({"a": 1, "b": 2}),
        pd.Series([1, 2, 1], index=["a", "b", "a"]),
        pd.DataFrame({"task": ["a", "b"], "label": [7, 7], "gold": [1, 2]}),
        pl.DataFrame({"item": ["a", "b", "b"], "truth": [1, 2, None]}),
        pl.LazyFrame({"task": ["a", "b"], "label": [1, 2]}),
    ],
    ids=["dict", "series", "repeated", "pandas", "polars", "lazy"],
)
def test_takes_any_shape(truth):
    assert collect_truths(truth).to_dict() == {"a": 1, "b": 2}


def test_two_truths_of_a_task():
    truth = pd.Series([1, 2, 3, 3], index=[("q", 1), ("q", 1), "c", "c"])
    with pytest.raises(
        AnnotationError, match=r"two different truths for 1 tasks(.|\n)*\('q', 1\): 1 and 2"
    ):
        collect_truths(truth)


def test_values_without_tasks():
    with pytest.raises(AnnotationError, match=r"A list does not say which task"):
        collect_truths([1, 2])
