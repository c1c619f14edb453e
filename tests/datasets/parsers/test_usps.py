"""Digits in the columns of a Matlab file."""

from io import BytesIO

import numpy as np
from scipy.io import savemat

from crowdwise.datasets.parsers import usps


def test_columns_are_digits_and_ten_is_zero(published):
    buffer = BytesIO()
    content = {"Train_DAT": np.arange(6.0).reshape(2, 3), "trainlabels": [[1, 10, 9]]}
    content |= {"Test_DAT": np.array([[7.0], [8.0]]), "testlabels": [[10]]}
    savemat(buffer, {key: np.asarray(value) for key, value in content.items()})
    tables = usps.parse(published(USPS__mat=buffer.getvalue()))
    assert tables.X.tolist() == [[0, 3], [1, 4], [2, 5], [7, 8]]
    assert tables.truth.to_dict() == {
        "train-0000": 1,
        "train-0001": 0,
        "train-0002": 9,
        "test-0000": 0,
    }
    assert tables.split.tolist() == ["train", "train", "train", "test"]
