"""Real crowds whose tasks have features, split into training and test tasks."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import real_crowds
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

from crowdwise import Annotations


@dataclass(frozen=True)
class FeatureSet:
    """Features and labels of training tasks; features and truth of test tasks."""

    name: str
    X: pd.DataFrame
    annotations: Annotations
    truth: pd.Series  # of the training tasks, only to look at afterward
    X_test: pd.DataFrame
    y_test: pd.Series


def load(name: str, *, lsa: int | None = None) -> FeatureSet:
    """A set with its published split, or with no test part where it has none.

    ``lsa`` makes that many features from the texts of the training and test tasks (TF-IDF and
    a truncated SVD fitted on the training texts) instead of taking the embeddings.
    """
    root = real_crowds.folder()
    crowd = real_crowds.load(name)
    features = _texts(name, lsa, crowd) if lsa else _stored(name)
    truth = pd.read_csv(root / name / "truth.csv", dtype=str, keep_default_na=False)
    truth = pd.Series(truth["label"].to_numpy(), index=truth["task"].to_numpy())
    split_file = root / name / "split.csv"
    test = []
    if split_file.exists():
        split = pd.read_csv(split_file, dtype=str).set_index("task")["split"]
        test = [task for task in split.index[split == "test"] if task not in crowd.truth.index]
    rows = features.loc[crowd.annotations.tasks]
    return FeatureSet(
        name, rows, crowd.annotations, crowd.truth, features.reindex(test), truth.reindex(test)
    )


def _stored(name: str) -> pd.DataFrame:
    stored = np.load(real_crowds.folder() / name / "features.npz", allow_pickle=False)
    return pd.DataFrame(stored["X"].astype(np.float32), index=stored["task"].astype(str))


def _texts(name: str, size: int, crowd: real_crowds.RealCrowd) -> pd.DataFrame:
    items = pd.read_csv(
        real_crowds.folder() / name / "items.csv.gz", dtype=str, keep_default_na=False
    ).set_index("task")["text"]
    words = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True)
    words.fit(items.loc[crowd.annotations.tasks])
    reduced = TruncatedSVD(size, random_state=0).fit(
        words.transform(items.loc[crowd.annotations.tasks])
    )
    return pd.DataFrame(reduced.transform(words.transform(items)), index=items.index)
