"""How often the test of independence is wrong, and how often it finds what is there."""

from __future__ import annotations

from functools import partial
from typing import Any

from crowdbench.judges import read_panel
from crowdbench.sets import crowd
from crowdbench.table import Column, Row, Table
from crowdbench.tables.coverage import simulate
from crowdbench.tables.judges import CUT
from crowdbench.tables.truth_inference import SETS
from crowdwise.aggregate import DawidSkene
from crowdwise.annotations import Annotations
from crowdwise.evaluate import check_independence


def draw(seed: int, **settings: Any) -> Annotations:
    return simulate(seed, **settings).annotations


def measure(_: Any, data: Annotations, seed: int) -> dict[str, float]:
    found = check_independence(data, random_state=seed)
    return {
        "p below 0.05": float(found.p_value < 0.05),
        "p below 0.01": float(found.is_dependent),
        "severe": float(found.is_severe),
        "correlation": found.correlation,
        "worth": found.worth / found.labels_per_task,
    }


def column(about: str, **settings: Any) -> Column:
    return Column(partial(draw, **settings), redrawn=True, about=about)


ALONE = {
    f"{n} workers, {r} labels per task, {k} classes": column(
        "independent", n_workers=n, per_task=r, n_classes=k
    )
    for n, r, k in ((5, 2, 2), (5, 5, 3), (20, 2, 2), (20, 3, 3), (20, 10, 2), (60, 3, 8))
}
ALONE |= {
    "300 workers, 2 labels per task": column("independent", n_workers=300, per_task=2),
    "60 workers, 3 labels per task, a rare class": column(
        "independent, one class of two is 5 %", n_workers=60, per_task=3, rare=0.05
    ),
    "60 workers, 4 labels per task, a third spammers": column(
        "independent", n_workers=60, per_task=4, spammers=1 / 3
    ),
}
TOGETHER = {
    f"{n} workers, {r} labels per task, {what}": column(about, n_workers=n, per_task=r, **how)
    for n, r in ((30, 5), (30, 15))
    for what, about, how in (
        ("uneven tasks", "dependent: all err more on hard tasks", {"spread": 1.0}),
        ("15 % traps", "dependent: most are wrong together", {"traps": 0.15}),
        ("a clique", "dependent: a fifth agree upon answers", {"clique": 0.2}),
        ("a large clique", "dependent: half agree upon answers", {"clique": 0.5}),
    )
}


def load_real(_: int, *, name: str) -> Annotations:
    return crowd(name).annotations


def load_judges(_: int) -> Annotations:
    return read_panel("judges_civilcomments", CUT, scores=False)[0]


REAL = {name: Column(partial(load_real, name=name), about="real") for name in SETS}
REAL["judges of civil comments"] = Column(load_judges, about="real: 24 language models")

TABLE = Table(
    name="independence",
    title="Whether workers err independently: how often the test is wrong, and what it finds",
    source="Simulated crowds, with 60 labels of each worker on average, and real ones.",
    about=(
        "`evaluate.check_independence`, without any truth. Independent crowds should have p below "
        "0.05 in at most one case of 20; of dependent ones, the more the better. A finding is "
        "severe if p is below 0.01 and labels are worth less than half as many independent ones; "
        "the worth is shown as a share of their number. Of real crowds, nearly all are dependent, "
        "most of them mildly."
    ),
    rows={"check_independence": Row(lambda _: DawidSkene())},
    columns={**ALONE, **TOGETHER, **REAL},
    measure=measure,
    metrics=("p below 0.05", "p below 0.01", "severe", "correlation", "worth"),
    seeds=100,
    quick_seeds=3,
    quick_columns=(*tuple(ALONE)[:2], *tuple(TOGETHER)[:2]),
)
