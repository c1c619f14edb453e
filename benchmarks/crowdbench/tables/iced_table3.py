"""ICED's three kinds of warm-up."""

from typing import Any

from crowdbench.plain import without_search
from crowdbench.table import Row, Table
from crowdbench.tables._iced import GISETTE, SOURCE, columns, iced, on_balanced_test, paper
from crowdwise.learn import (
    Autoencoder,
    CertainWarmUp,
    FullWarmUp,
    Interpolation,
    StagedWarmUp,
    WarmUp,
)
from crowdwise.learn.iced_parts import Decoder


def warm_up(how: type[WarmUp], stages: int = 1, start: type[Decoder] = Interpolation) -> Any:
    """The network after its warm-up, with the paper's number of epochs."""

    def make(column: str) -> Any:
        epochs = (15 if column == GISETTE else 6) // stages
        return iced(warm_up=how(epochs=epochs), decoder=start(), rounds=0)

    return make


TABLE = Table(
    name="iced-table3",
    title="ICED's Table 3: the network after three kinds of warm-up",
    source=SOURCE,
    about=(
        "Trad-I trains on all tasks, Trad-II on those with at most two dissenting labels, "
        "ICED-w on the same in three stages; 5 x 3 epochs on Gisette-like-Syn, 2 x 3 elsewhere. "
        "The paper's decoder is pre-trained, but not said to start the classifier: the first rows "
        "start at random, the last ones from the autoencoder that `ICED()` begins with."
    ),
    rows=without_search(
        {
            "Trad-I": Row(
                warm_up(FullWarmUp), paper((0.8014, 0.7989), (0.7500, 0.7333), (0.4581, 0.3142))
            ),
            "Trad-II": Row(
                warm_up(CertainWarmUp), paper((0.6079, 0.5372), (0.7922, 0.7828), (0.4504, 0.3105))
            ),
            "ICED-w": Row(
                warm_up(StagedWarmUp, stages=3),
                paper((0.8186, 0.8126), (0.8373, 0.8329), (0.8376, 0.8332)),
            ),
            "Trad-I, from an autoencoder": Row(warm_up(FullWarmUp, start=Autoencoder)),
            "Trad-II, from an autoencoder": Row(warm_up(CertainWarmUp, start=Autoencoder)),
            "ICED-w, from an autoencoder": Row(warm_up(StagedWarmUp, stages=3, start=Autoencoder)),
        }
    ),
    columns=columns(["published"]),
    measure=on_balanced_test,
    metrics=("accuracy", "macro F1", "minority recall"),
    pairs=[("ICED-w", "Trad-I"), ("ICED-w", "Trad-II")],
    quick_columns=("USPS-Syn",),
)
