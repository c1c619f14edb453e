"""What RLL's tables share: stand-ins for its private data sets, and its methods."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from crowdbench.sets import crowd, word_weights
from crowdbench.table import Column, Published
from crowdbench.tables._embed import Probe, brief
from crowdwise import simulate
from crowdwise.datasets.crowd import Crowd
from crowdwise.embed import RLL
from crowdwise.typing import Floats

SOURCE = (
    "Xu et al. (2019), Learning effective embeddings from crowdsourced labels: An educational case "
    "study, ICDE, doi:10.1109/ICDE.2019.00208."
)
ABOUT = (
    "The paper's sets are private. These are simulated with the published sizes, numbers of "
    "workers and class ratios, so the published figures are shown for orientation only. Five-fold "
    "cross-validation against the simulated truth; all settings were fixed beforehand, except that "
    "one row tunes eta, as the paper does, by labels of held-out tasks. Classroom "
    "is a public set of the same kind: exchanges in math lessons, labeled by three raters. Its "
    "truth is their majority, and its folds keep lessons whole."
)
ORAL, CLASS, CLASSROOM = "oral (stand-in)", "class (stand-in)", "classroom on task"
N_FOLDS = 5


def stand_in(name: str, redundancy: int | None = None) -> Callable[[int], Crowd]:
    """The stand-in of a seed, with at most ``redundancy`` labels per task."""

    def load(seed: int) -> Crowd:
        crowd = simulate.stand_in(name, random_state=seed)
        if redundancy is None:
            return crowd
        return replace(crowd, annotations=crowd.annotations.subsample(redundancy, seed))

    return load


def classroom(redundancy: int | None = None) -> Callable[[int], Crowd]:
    """The public exchanges in folds of whole lessons, at most ``redundancy`` labels per task."""

    def load(seed: int) -> Crowd:
        whole = crowd("classroom_on_task")
        assert whole.items is not None
        lesson, names = pd.factorize(whole.items["lesson"])
        fold = np.random.RandomState(seed).permutation(np.arange(len(names)) % N_FOLDS)
        votes = whole.annotations
        return replace(
            whole,
            annotations=votes if redundancy is None else votes.subsample(redundancy, seed),
            X=exchange_features(),
            X_tasks=whole.items.index.to_numpy(),
            split=pd.Series(fold[lesson], index=whole.items.index),
        )

    return load


@lru_cache(maxsize=1)
def exchange_features(size: int = 100) -> Floats:
    """Latent semantic features of the student's and the teacher's turn, and word counts."""
    from sklearn.decomposition import TruncatedSVD

    items = crowd("classroom_on_task").items
    assert items is not None
    parts = []
    for turn in ("student_text", "teacher_text"):
        texts = items[turn].fillna("")
        words = word_weights().fit(texts)
        parts.append(TruncatedSVD(size, random_state=0).fit_transform(words.transform(texts)))
        parts.append(np.log1p(texts.str.split().str.len().to_numpy(dtype=float))[:, None])
    return np.hstack(parts).astype(np.float32)


COLUMNS = {
    ORAL: Column(stand_in("oral"), redrawn=True, about="880 tasks, 5 workers", stand_in=True),
    CLASS: Column(stand_in("class"), redrawn=True, about="472 tasks, 5 workers", stand_in=True),
    CLASSROOM: Column(classroom(), redrawn=True, about="real: 2,246 exchanges, 3 labels each"),
}


def paper(oral: tuple[float, float], class_: tuple[float, float]) -> dict[str, Any]:
    """Published accuracy and F1 on the real sets."""
    pairs = {ORAL: oral, CLASS: class_}
    return {
        column: {"accuracy": Published(accuracy), "F1": Published(f1)}
        for column, (accuracy, f1) in pairs.items()
    }


def probe(embedder: Any = None, **settings: Any) -> Callable[[str], Probe]:
    """A method with one weight decay and one penalty."""
    return lambda _column: Probe(embedder, choices=(1e-3,), strengths=(1.0,), **settings)


def rll(
    recipe: str | None = None, *, etas: tuple[float, ...] = (), **changes: Any
) -> Callable[[str], Probe]:
    """RLL, Bayesian unless changed."""
    settings = {"groups_per_epoch": 6000, "training": brief(8), **changes}
    made = RLL(**settings) if recipe is None else RLL.recipe(recipe, **settings)
    return probe(made, etas=etas)
