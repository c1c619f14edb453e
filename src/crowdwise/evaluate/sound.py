"""Predictions that can be scored: every task once, with a distribution over the classes."""

from __future__ import annotations

import numpy as np
import pandas as pd

from crowdwise.errors import AnnotationError, explain, listing
from crowdwise.typing import Floats

# By how much probabilities may miss a sum of 1: each may be rounded to two digits.
ROUNDED, MOST = 0.005, 0.05


def refuse_repeats(predicted: pd.DataFrame | pd.Series) -> None:
    """Refuse a task, or a class, that has several predictions."""
    names = {"task": predicted.index}
    if isinstance(predicted, pd.DataFrame):
        names["class"] = predicted.columns
    for what, index in names.items():
        again = index[index.duplicated()].unique()
        if len(again):
            raise AnnotationError(
                explain(
                    f"{len(again):,} of the names of a {what} occur more than once.",
                    first=f"{what}={listing(again[:1])}",
                    expected=f"one prediction for each {what}",
                    fix="drop or merge the repeated ones",
                )
            )


def as_distributions(predicted: pd.DataFrame) -> Floats:
    """Probabilities as an array, refused unless each row is a distribution but for rounding."""
    proba = predicted.apply(pd.to_numeric, errors="coerce").to_numpy(dtype=np.float64)
    total, slack = proba.sum(axis=1), min(MOST, ROUNDED * proba.shape[1]) + 1e-9
    with np.errstate(invalid="ignore"):
        bad = ~((proba >= -1e-9).all(axis=1) & (np.abs(total - 1.0) <= slack))
    if bad.any():
        row = int(bad.argmax())
        raise AnnotationError(
            explain(
                f"{int(bad.sum()):,} of {len(bad):,} predictions are no distributions.",
                first=f"task={listing(predicted.index[row : row + 1])}: "
                f"[{listing(predicted.iloc[row].to_numpy())}]",
                expected="probabilities of the classes, which sum to 1",
                fix="divide each row by its sum, and leave out tasks without a prediction",
            )
        )
    return proba / total[:, None]
