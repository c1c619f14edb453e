"""Data for the tables: crowds with features, split into training and test parts.

Labels and truths come from :mod:`crowdwise.datasets`. Features that no publisher serves as a
file (sentence embeddings, the image features of a paper) are read from the folder that
``$CROWDWISE_DATA`` names: ``<set>/features.npz`` with the arrays ``X`` and ``task``.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from crowdwise.annotations import Annotations
from crowdwise.annotations.names import locate
from crowdwise.datasets import Crowd, load
from crowdwise.datasets.crowd import with_tasks
from crowdwise.errors import FileError, explain
from crowdwise.typing import Array

PLACE = "CROWDWISE_DATA"


@dataclass(frozen=True, eq=False)
class LearningSet:
    """What a learner is given, and what it is scored on.

    Attributes
    ----------
    X, annotations : ndarray and Annotations
        Row ``i`` describes ``annotations.tasks[i]``.
    truth : Series by task
        Of the training tasks; only to look at afterward.
    X_test, y_test : ndarray, or None
        The test part, where there is one.
    valid : LearningSet, or None
        The validation part, with its own labels and truth.
    """

    name: str
    X: Array
    annotations: Annotations
    truth: pd.Series
    X_test: Array | None = None
    y_test: Array | None = None
    valid: LearningSet | None = None


@lru_cache(maxsize=8)
def crowd(name: str, **options: Any) -> Crowd:
    """A real crowd, downloaded unless it is in the cache."""
    return load(name, progress=False, **options)


def learning_set(
    name: str, *, features: str = "published", truth: str | None = None, cut: bool = True
) -> LearningSet:
    """A set with its published split; all tasks are for training where it has none.

    With ``cut=False`` all tasks are for training in any case.

    ``features`` are those that the set is published with, those ``"stored"`` in a folder, or
    ``"lsa"``: TF-IDF of the texts and 1200 leading directions, both from training texts alone.
    """
    whole = crowd(name, truth=truth) if truth else crowd(name)
    whole = with_features(whole, features)
    if whole.split is None or "test" not in set(whole.split) or not cut:
        return _whole(whole)
    train, test = whole.part("train"), whole.part("test")
    valid = whole.part("valid") if "valid" in set(whole.split) else None
    found = _whole(train)
    assert test.X is not None
    assert test.X_tasks is not None
    assert test.truth is not None
    known = np.isin(test.X_tasks, test.truth.index)  # some sets know the truth of most test tasks
    return replace(
        found,
        X_test=test.X[known],
        y_test=test.truth.loc[test.X_tasks[known]].to_numpy(),
        valid=None if valid is None else _whole(valid),
    )


def _whole(part: Crowd) -> LearningSet:
    assert part.X is not None
    assert part.X_tasks is not None
    assert part.truth is not None
    votes = with_tasks(part.annotations, part.X_tasks)
    return LearningSet(part.name, part.X, votes, part.truth)


def with_features(whole: Crowd, kind: str) -> Crowd:
    """The crowd with features of the chosen kind."""
    if kind == "published":
        return whole
    X, names = stored_features(whole.name) if kind == "stored" else lsa_features(whole)
    tasks = whole.annotations.tasks if whole.split is None else whole.split.index.to_numpy()
    rows = locate(names.astype(str), tasks.astype(str))
    kept = rows >= 0
    return replace(whole, X=X[rows[kept]], X_tasks=tasks[kept])


def stored_features(name: str) -> tuple[Array, Array]:
    """Features and their tasks from the folder of features."""
    folder = os.environ.get(PLACE)
    file = Path(folder or ".") / name / "features.npz"
    if not folder or not file.exists():
        raise FileError(
            explain(
                f"The features of {name} are not here; no publisher offers them as a file.",
                expected=f"{name}/features.npz, with arrays X and task, in ${PLACE}",
            )
        )
    with np.load(file, allow_pickle=False) as stored:
        return stored["X"].astype(np.float32), stored["task"].astype(str)


def lsa_features(whole: Crowd, size: int = 1200) -> tuple[Array, Array]:
    """Latent semantic features of all texts, learned from those of the training tasks."""
    from sklearn.decomposition import TruncatedSVD

    assert whole.items is not None
    assert whole.split is not None
    texts = whole.items["text"]
    training = texts.loc[whole.split.index[whole.split == "train"]]
    words = word_weights().fit(training)
    reduced = TruncatedSVD(size, random_state=0).fit(words.transform(training))
    return reduced.transform(words.transform(texts)), texts.index.to_numpy()


def word_weights() -> Any:
    """The weights of words and word pairs in all tables with texts."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True)
