"""Predictions that cannot be scored are refused, and the first of them named."""

import numpy as np
import pandas as pd
import pytest

from crowdwise.errors import AnnotationError
from crowdwise.evaluate import score


@pytest.fixture
def frame():
    """Probabilities of six tasks, and their truths."""
    tasks, names = [f"t{i}" for i in range(6)], ["no", "yes", "maybe"]
    proba = np.random.default_rng(0).dirichlet(np.ones(3), 6)
    truth = pd.Series(["no", "yes", "no", "maybe", "yes", "no"], index=tasks)
    return pd.DataFrame(proba, index=tasks, columns=names), truth


def test_refuses_a_task_or_a_class_with_two_predictions(frame):
    proba, truth = frame
    twice = pd.concat([proba, proba[:2]])
    with pytest.raises(AnnotationError, match="names of a task occur more than once: 2"):
        score(twice, truth)
    with pytest.raises(AnnotationError, match="names of a task occur more than once: 2"):
        score(twice.idxmax(axis=1), truth)
    with pytest.raises(AnnotationError, match="names of a class"):
        score(proba.set_axis([proba.columns[0]] * proba.shape[1], axis=1), truth)


@pytest.mark.parametrize(("n_classes", "digits"), [(3, 2), (10, 3), (10, 2), (40, 3)])
def test_rounding_is_no_mistake(n_classes, digits):
    proba = np.random.default_rng(0).dirichlet(np.ones(n_classes), 200)
    truth = pd.Series(proba.argmax(axis=1))
    rounded = score(pd.DataFrame(proba).round(digits), truth, n_resamples=0)
    exact = score(pd.DataFrame(proba), truth, n_resamples=0)
    assert rounded.value["Brier score"] == pytest.approx(exact.value["Brier score"], abs=0.02)


@pytest.mark.parametrize(
    "change",
    [
        lambda row: row * np.nan,
        lambda row: row * 2,
        lambda row: row + np.eye(1, len(row))[0] * 3 - np.eye(1, len(row), 1)[0] * 3,
        lambda row: row.astype(object).where(row < 0, "sure"),
    ],
    ids=["NaN", "sum", "negative", "text"],
)
def test_refuses_what_is_no_distribution(frame, change):
    proba, truth = frame
    broken = proba.astype(object)
    broken.iloc[3] = change(proba.iloc[3])
    message = "1 of 6 predictions is not a distribution"
    with pytest.raises(AnnotationError, match=message) as error:
        score(broken, truth)
    assert "task='t3'" in str(error.value)
    score(broken, truth.drop("t3"), n_resamples=0)  # nobody asks about it
