"""Workers who are judges, such as language models, and how much they err together."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from crowdwise.annotations import Annotations
from crowdwise.annotations.names import locate
from crowdwise.evaluate import dependence
from crowdwise.evaluate.dependence import LEAST_JUDGES, LEAST_TASKS
from crowdwise.typing import Floats

MOST_JUDGES = 40  # rows in the figure
MOST_CLASSES = 12  # each takes a fit of its own
DESCRIBED = ("family", "kind")  # facts that mark workers as judges
LEAST_RATED = 0.5  # share of all (task, judge) pairs below which workers are a crowd


@dataclass(frozen=True)
class Judge:
    """One judge of the panel."""

    name: str
    family: str
    cluster: int
    worth: float
    redundant: bool


@dataclass(frozen=True)
class FamilyOfJudges:
    """Judges that are likely to err together."""

    name: str
    n_judges: int
    correlation: float
    adds: float


@dataclass(frozen=True)
class PanelFacts:
    """How many independent judges a panel is worth, and which of them err together."""

    number: float
    low: float
    high: float
    judges: tuple[Judge, ...]  # ordered by cluster
    correlation: Floats  # (judge, judge): of their errors
    families: tuple[FamilyOfJudges, ...]
    note: str


def panel_facts(data: Annotations, known: pd.Series | None) -> PanelFacts | None:
    """Describe the judges; None if workers are not known to be judges."""
    if not is_panel(data):
        return None
    truth = None
    if known is not None and (locate(data.classes, known) >= 0).sum() >= LEAST_TASKS:
        truth = known[locate(data.classes, known) >= 0]
    found = dependence(data, truth)
    order = found.judges.sort_values(["cluster", "worth"], ascending=[True, False]).index
    place = pd.Series(range(len(order)), index=order)
    table = np.eye(len(order))
    one, other = place[found.pairs["first"]].to_numpy(), place[found.pairs["second"]].to_numpy()
    table[one, other] = table[other, one] = found.pairs["correlation"]
    judges = [
        Judge(str(name), str(row["family"]), int(row["cluster"]), row["worth"], row["redundant"])
        for name, row in found.judges.loc[order].iterrows()
    ]
    families = [
        FamilyOfJudges(str(name), int(row["n_judges"]), row["correlation"], row["adds"])
        for name, row in found.families.iterrows()
    ]
    number = found.effective_number
    return PanelFacts(
        number.value, number.low, number.high, tuple(judges), table, tuple(families), found.note
    )


def is_panel(data: Annotations) -> bool:
    """Return whether workers have scores, a family or a kind, and most rate most tasks."""
    about = data.about_workers
    described = data.score is not None or (
        about is not None and any(name in about for name in DESCRIBED)
    )
    few = LEAST_JUDGES <= data.n_workers <= MOST_JUDGES and 2 <= data.n_classes <= MOST_CLASSES
    if not described or not few:
        return False
    full = data.n_tasks * data.n_workers
    return data.n_tasks >= LEAST_TASKS and data.n_annotations >= LEAST_RATED * full
