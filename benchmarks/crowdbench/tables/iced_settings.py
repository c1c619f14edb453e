"""Which settings of ICED predict the labels of held-out tasks best: how its recipe was chosen."""

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

from crowdbench.measures import FOLDS, on_held_out_tasks
from crowdbench.plain import without_search
from crowdbench.sets import LearningSet
from crowdbench.table import Column, Row, Table
from crowdbench.tables._iced import GSAD, NAMES, SOURCE, USPS, iced, learning_set
from crowdwise.aggregate import IBCC, DawidSkene, HardDawidSkene, OneCoin
from crowdwise.learn import Autoencoder, Interpolation

OTHER_DRAWS = 100  # crowds that no other table uses
AGGREGATORS = {
    "hard D&S": HardDawidSkene(),
    "D&S": DawidSkene(),
    "IBCC": IBCC(),
    "one coin": OneCoin(),
}


DECODERS = {"refit": Autoencoder(), "interpolate": Interpolation()}


def make_iced(prior: str, rule: str, decoder: str, rounds: int) -> Callable[[str], Any]:
    """ICED with one choice of each."""
    return lambda _: iced(
        class_prior=prior,
        aggregator=AGGREGATORS[rule],
        decoder=DECODERS[decoder],
        rounds=rounds,
    )


def draw(column: str, seed: int) -> LearningSet:
    return learning_set(NAMES[column], "published", OTHER_DRAWS + seed)


TABLE = Table(
    name="iced-settings",
    title="Settings of ICED by held-out labels",
    source=SOURCE,
    about=(
        "The source of the class prior, the aggregator, how new tasks get their features, and the "
        "number of rounds, compared by the mean log probability of the labels of held-out tasks "
        "(a fifth of them per fold). No truth is used, and the crowds are drawn with other seeds "
        "than in the other tables."
    ),
    rows=without_search(
        {
            f"{prior}'s prior; {rule}; {decoder}; {rounds} rounds": Row(
                make_iced(prior, rule, decoder, rounds)
            )
            for prior, rule, (decoder, rounds) in product(
                ("aggregator", "network"),
                AGGREGATORS,
                (("refit", 30), ("interpolate", 30), ("interpolate", 60)),
            )
        }
    ),
    columns={name: Column(partial(draw, name), redrawn=True) for name in (USPS, GSAD)},
    measure=on_held_out_tasks,
    metrics=("held-out",),
    seeds=FOLDS,
    quick_seeds=1,
    quick_rows=(
        "aggregator's prior; hard D&S; interpolate; 30 rounds",
        "network's prior; IBCC; interpolate; 60 rounds",
    ),
    quick_columns=(USPS,),
    overall=True,
)
