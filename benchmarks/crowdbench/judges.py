"""Panels of language models as judges: the data, and what to compare a panel with.

Scores are read from the folder that ``$CROWDWISE_DATA`` names: ``<set>/scores.csv`` (columns
task, worker, score), ``truth.csv`` (task, label) and ``workers.csv`` (worker, family).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from scipy.special import logit
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

from crowdbench.sets import PLACE
from crowdwise.aggregate.judge_panel import rate
from crowdwise.annotations import Annotations
from crowdwise.errors import FileError, explain
from crowdwise.evaluate import estimate
from crowdwise.typing import Array, Floats

LEAST = 1e-6  # probability that the log loss takes a wrong answer to have had
INVERSE_PENALTIES = 10.0 ** np.arange(-4.0, 1.1, 0.5)
N_FOLDS = 5


@lru_cache(maxsize=8)
def read_panel(name: str, cut: float | None, scores: bool) -> tuple[Annotations, Floats]:
    """Judges' scores, or the labels that a cut makes of them; and the truth of each task."""
    folder = Path(os.environ.get(PLACE) or ".") / name
    if not folder.is_dir():
        what = f"The judges of {name} are not here."
        raise FileError(explain(what, expected=f"the folder {name} in ${PLACE}"))
    table = next(folder.glob("scores.csv*"))
    frame = pd.read_csv(table).dropna(subset="score").rename(columns={"score": "label"})
    votes = Annotations.from_frame(frame, missing=None).with_scores(cut)
    if not scores:
        votes = Annotations.from_codes(
            votes.task,
            votes.worker,
            votes.label,
            tasks=votes.tasks,
            workers=votes.workers,
            classes=votes.classes,
        )
    votes = votes.with_workers(pd.read_csv(folder / "workers.csv"))
    truth = pd.read_csv(folder / "truth.csv").set_index("task")["label"]
    return votes, truth.loc[votes.tasks].to_numpy(dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Labeling:
    """How well the tasks without gold are labeled, with that many gold labels."""

    votes: Annotations
    truth: Floats
    n_gold: int

    def measure(self, model: Any, seed: int) -> dict[str, float]:
        chosen = np.random.default_rng(seed).choice(len(self.truth), self.n_gold, replace=False)
        gold = pd.Series(self.truth[chosen].astype(int), index=self.votes.tasks[chosen])
        model.fit(self.votes, gold) if self.n_gold else model.fit(self.votes)
        proba = np.asarray(model.predict_proba(self.votes))
        rest = np.setdiff1d(np.arange(len(self.truth)), chosen)
        true, p = self.truth[rest].astype(int), proba[rest]
        said = p[np.arange(len(rest)), true].clip(LEAST, 1 - LEAST)
        right = np.where(p[:, 0] == p[:, 1], 0.5, p.argmax(axis=1) == true)  # ties count half
        return {"accuracy": float(right.mean()), "log loss": float(-np.log(said).mean())}


@dataclass(frozen=True, eq=False)
class Rating:
    """How the panel's log-odds go with people's ratings."""

    votes: Annotations
    truth: Floats

    def measure(self, model: Any, seed: int) -> dict[str, float]:
        proba = np.asarray(model.fit(self.votes).predict_proba(self.votes))[:, 1]
        odds = logit(proba.clip(LEAST, 1 - LEAST))
        return {"correlation": float(np.corrcoef(odds, self.truth)[0, 1])}


@dataclass(frozen=True, eq=False)
class Estimating:
    """How often an estimate about all tasks covers, and its width beside that of gold alone."""

    votes: Annotations
    truth: Floats
    n_gold: int
    of: str
    n_draws: int  # of gold labels, for each seed

    def measure(self, model: Any, seed: int) -> dict[str, float]:
        inside, width = [], []
        rng = np.random.default_rng(seed)
        for _ in range(self.n_draws):
            chosen = rng.choice(len(self.truth), self.n_gold, replace=False)
            values = self.truth[chosen]
            gold = dict(zip(self.votes.tasks[chosen].tolist(), values.tolist(), strict=True))
            found = estimate(self.votes, gold, self.of, model=model, finite=True)
            inside.append(found.low <= self.truth.mean() <= found.high)
            width.append((found.high - found.low) / (found.alone.high - found.alone.low))
        return {"coverage": float(np.mean(inside)), "relative width": float(np.mean(width))}


class VoteShares(BaseEstimator):
    """The share of each class among a task's labels, with half a vote for each class added."""

    def fit(self, votes: Annotations, gold: Any = None) -> Self:
        return self

    def predict_proba(self, votes: Annotations) -> Floats:
        counts = votes.votes() + 0.5
        return counts / counts.sum(axis=1, keepdims=True)


class MeanRating(BaseEstimator):
    """The mean of the judges' standardized scores, as log-odds."""

    def fit(self, votes: Annotations, gold: Any = None) -> Self:
        return self

    def predict_proba(self, votes: Annotations) -> Floats:
        yes = 1.0 / (1.0 + np.exp(-standardize(votes).mean(axis=1)))
        return np.column_stack([1.0 - yes, yes])


class Regression(BaseEstimator):
    """Logistic regression of gold labels on judges' standardized ratings, penalty by CV."""

    def fit(self, votes: Annotations, gold: pd.Series) -> Self:
        place = pd.Index(votes.tasks).get_indexer(gold.index)
        folds = max(min(N_FOLDS, int(gold.value_counts().min())), 2)
        found = GridSearchCV(
            LogisticRegression(max_iter=1000),
            {"C": INVERSE_PENALTIES},
            cv=folds,
            scoring="neg_log_loss",
        )
        self.classifier_ = found.fit(standardize(votes)[place], gold)
        return self

    def predict_proba(self, votes: Annotations) -> Array:
        found: Array = self.classifier_.predict_proba(standardize(votes))
        return found


def standardize(votes: Annotations) -> Floats:
    """Scores, or labels where there are none, in deviations from each judge's mean; 0: none."""
    value = votes.label.astype(np.float64) if votes.score is None else votes.score
    ratings = rate(votes, value[:, None])
    table: Floats = ratings.standardize(0, *ratings.by_judge(0)).table().toarray()
    return table
