"""What NeuCrowd's tables share: their data sets, and NeuCrowd with and without its parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from crowdbench.sets import LearningSet, learning_set
from crowdbench.table import Column, Published
from crowdbench.tables._embed import DECAYS, Probe, brief
from crowdwise import simulate
from crowdwise.datasets.crowd import Crowd, with_tasks
from crowdwise.embed import Encoder, NeuCrowd

SOURCE = (
    "Hao, Ding and Liu (2022), NeuCrowd: Neural sampling network for representation learning with "
    "crowdsourced labels, Knowledge and Information Systems 64, doi:10.1007/s10115-021-01644-7."
)
SYN1, SYN2, HOTEL = "Syn1", "Syn2", "Hotel"
PRE_K, ORAL = "Pre-K (stand-in)", "Oral (stand-in)"
REAL_WORKERS = (SYN1, SYN2, PRE_K, ORAL)  # Hotel has only counts of labels


def as_learning_set(crowd: Crowd) -> LearningSet:
    """A crowd's three parts, in the form that the tables use."""
    train, valid, test = (_part(crowd, name) for name in ("train", "valid", "test"))
    return replace(train, valid=valid, X_test=test.X, y_test=test.truth.to_numpy())


def _part(crowd: Crowd, name: str) -> LearningSet:
    part = crowd.part(name)
    assert part.X is not None
    assert part.X_tasks is not None
    assert part.truth is not None
    votes = with_tasks(part.annotations, part.X_tasks)
    return LearningSet(crowd.name, part.X, votes, part.truth.loc[part.X_tasks])


COLUMNS = {
    SYN1: Column(
        lambda seed: as_learning_set(simulate.neucrowd("syn1", random_state=seed)),
        redrawn=True,
        about="drawn anew for every seed: 7 workers, 1,200 features, 800 / 200 / 500 tasks",
    ),
    SYN2: Column(
        lambda seed: as_learning_set(simulate.neucrowd("syn2", random_state=seed)),
        redrawn=True,
        about="the same with 11 workers",
    ),
    HOTEL: Column(
        lambda _seed: learning_set("hotel"),
        about="447 / 112 / 140 tasks with the counts of 7 labels each; the truth is their "
        "majority, and one test task is worth .007",
        not_blind=(
            "test figures of Hotel had been seen before its grid of encoders was fixed (by "
            "validation)."
        ),
    ),
    PRE_K: Column(
        lambda seed: as_learning_set(simulate.stand_in("pre_k", random_state=seed)),
        redrawn=True,
        about="simulated: the real set is private, and only its statistics are matched",
        stand_in=True,
    ),
    ORAL: Column(
        lambda seed: as_learning_set(simulate.stand_in("oral_neucrowd", random_state=seed)),
        redrawn=True,
        about="simulated likewise",
        stand_in=True,
    ),
}


def paper(*pairs: Sequence[float]) -> dict[str, dict[str, Published]]:
    """Accuracy and AUC on Syn1, Syn2 and Hotel; the other sets are not the paper's."""
    return {
        column: {"accuracy": Published(accuracy), "AUC": Published(auc)}
        for column, (accuracy, auc) in zip((SYN1, SYN2, HOTEL), pairs, strict=False)
    }


def neucrowd(
    recipe: str | None = None, *, targets: str = "hard", **changes: Any
) -> Callable[[str], Probe]:
    """NeuCrowd with 60,000 groups per epoch, as in the authors' code, for two epochs."""
    settings = {"training": brief(2), **changes}
    model = NeuCrowd(**settings) if recipe is None else NeuCrowd.recipe(recipe, **settings)
    bias = model.encoder.bias if isinstance(model.encoder, Encoder) else "zero"
    return lambda column: Probe(model, targets=targets, choices=choices_on(column, bias))


def choices_on(column: str, bias: str = "zero") -> tuple[Any, ...]:
    """Two weight decays; on Hotel, which is small and fast, also a wide encoder."""
    wide = Encoder((256, 128), dropout=0.5, bias=bias)
    return (*DECAYS, (wide, 1e-3)) if column == HOTEL else DECAYS
