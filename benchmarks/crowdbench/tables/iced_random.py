"""ICED with its defaults on imbalanced crowds drawn at random, beside majority vote."""

from __future__ import annotations

from functools import partial

import numpy as np

from crowdbench.baselines import VotesThenLR
from crowdbench.sets import LearningSet
from crowdbench.table import Column, Row, Table
from crowdbench.tables._defaults import SIMULATED, simulated
from crowdbench.tables.defaults import measure
from crowdwise.learn import ICED

N_CROWDS = 10
FIRST = 1000  # seeds that no other table draws crowds with


def draw(number: int, seed: int) -> LearningSet:
    """A crowd of 5 to 15 workers with 2 to 5 labels a task, the rarest class 1:3 to 1:20."""
    rng = np.random.RandomState(FIRST + number)
    ratio, n_workers = 3.0 * (20 / 3) ** rng.rand(), int(rng.randint(5, 16))
    n_labels = int(rng.randint(2, 6))
    name = SIMULATED[number % len(SIMULATED)]
    return simulated(name, ratio, n_labels, FIRST + number, n_workers)


TABLE = Table(
    name="iced-random",
    title="ICED with its defaults on ten imbalanced crowds drawn at random",
    source="Our own: real features, simulated workers.",
    about=(
        "USPS, GSAD and MNIST's 4 and 9 by turns, 600 training and 1,000 test tasks, the rarest "
        "class 1:3 to 1:20 in both, 5 to 15 workers who are right on .5 to .8 of each class, 2 to "
        "5 labels a task."
    ),
    rows={"majority vote + LR": Row(lambda _: VotesThenLR()), "ICED": Row(lambda _: ICED())},
    columns={f"crowd {number}": Column(partial(draw, number)) for number in range(N_CROWDS)},
    measure=measure,
    metrics=("accuracy", "balanced accuracy"),
    losses=("log loss",),
    seeds=1,
    quick_seeds=1,
    quick_columns=("crowd 2",),
    overall=True,
)
