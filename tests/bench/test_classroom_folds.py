"""The classroom column: folds of whole lessons, features of both turns."""

import numpy as np
import pandas as pd
import pytest

from crowdbench.tables import _rll
from crowdwise.annotations import Annotations
from crowdwise.datasets.crowd import Crowd


@pytest.fixture
def whole(monkeypatch):
    n = 60
    names = np.array([f"t{i}" for i in range(n)], dtype=object)
    rng = np.random.default_rng(0)
    words = np.array(["add", "sum", "two", "three", "why", "yes", "no"])
    said = [" ".join(rng.choice(words, 5)) for _ in range(2 * n)]
    items = pd.DataFrame(
        {
            "lesson": np.arange(n) % 12,
            "student_text": said[:n],
            "teacher_text": [None, *said[n + 1 :]],
        },
        index=pd.Index(names, name="task"),
    )
    task, worker = np.divmod(np.arange(3 * n), 3)
    votes = Annotations.from_codes(task, worker, rng.integers(2, size=3 * n), tasks=names)
    real = Crowd(
        name="classroom_on_task", annotations=votes, truth=None, X=None, items=items, info=None
    )
    monkeypatch.setattr(_rll, "crowd", lambda name: real)
    cached = _rll.exchange_features  # one of the tests puts another in its place
    cached.cache_clear()
    yield real
    cached.cache_clear()


def test_no_lesson_is_in_two_folds(whole, monkeypatch):
    monkeypatch.setattr(_rll, "exchange_features", lambda: np.zeros((60, 1)))
    made = _rll.classroom(redundancy=1)(3)
    folds = made.split.groupby(whole.items["lesson"]).nunique()
    assert (folds == 1).all()
    assert made.split.nunique() == _rll.N_FOLDS
    assert (made.annotations.redundancy == 1).all()
    assert not made.split.equals(_rll.classroom()(4).split)


def test_each_turn_has_its_features_and_its_length(whole):
    X = _rll.exchange_features(size=3)
    assert X.shape == (60, 2 * (3 + 1))
    np.testing.assert_allclose(X[:, 3], np.log1p(5), rtol=1e-6)
    assert X[0, 7] == 0.0  # nothing was said
