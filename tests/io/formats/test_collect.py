"""What formats share."""

import numpy as np
import pandas as pd
import pytest

from crowdwise.io.formats.collect import find_true, join_labels


def test_yes_and_no():
    assert find_true(pd.Series(["TRUE", "true", "1", "no", None, "FALSE"])).tolist() == [
        True, True, True, False, False, False,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("values", "label"),
    [("a", "a"), ([], None), (["a"], "a"), (["b", "a"], "a + b"), (["a", "a"], "a"),
     (np.array([2, 1]), "1 + 2"), ([[1]], [[1]])],
)  # fmt: skip
def test_several_labels_are_one(values, label):
    assert join_labels(values) == label
