"""LIA's comparison on birds, word pairs and entailment, by the number of labels per task."""

from collections.abc import Mapping
from typing import Any

from crowdbench.plain import without_search
from crowdbench.table import Row, Table
from crowdbench.tables._lia import (
    DECAYED,
    REDUNDANCY,
    SOURCE,
    EmbeddedTwoStage,
    TrueLabels,
    by_the_paper,
    columns,
    on_its_tasks,
    paper,
    two_stage,
    whole,
    with_best_settings,
)
from crowdwise import aggregate

PUBLISHED: dict[str, dict[str, list[tuple[float, float | None]]]] = {
    "MAJ": {
        "BB": [(63.9, 0.5), (71.1, 0.4), (74.4, 0.4), (76.4, 0.3), (75.9, 0.0)],
        "WS": [(82.8, 0.8), (87.1, 0.6), (88.6, 0.2)],
        "RTE": [(72.8, 0.2), (84.8, 0.1), (90.0, 0.1)],
    },
    "MAJ*-E": {
        "BB": [(64.4, 0.5), (70.9, 0.5), (75.9, 0.5), (76.2, 0.3), (78.4, 0.0)],
        "WS": [(87.2, 0.8), (91.4, 0.4), (93.3, 0.0)],
        "RTE": [(72.8, 0.4), (84.0, 0.2), (90.4, 0.1)],
    },
    "MAJ*": {
        "BB": [(65.1, 0.7), (70.9, 0.5), (75.4, 0.5), (76.1, 0.2), (78.4, 0.0)],
        "WS": [(87.7, 0.7), (91.3, 0.4), (93.3, 0.0)],
        "RTE": [(74.5, 0.3), (84.8, 0.1), (89.9, 0.1)],
    },
    "MMCE": {
        "BB": [(66.9, 0.7), (73.9, 0.5), (76.5, 0.3), (78.5, 0.4), (79.6, 0.1)],
        "WS": [(80.1, 0.5), (87.0, 0.3), (90.2, 0.3)],
        "RTE": [(75.3, 0.3), (88.5, 0.3), (92.7, 0.1)],
    },
    "MMCE*-E": {
        "BB": [(63.2, 0.4), (74.2, 0.4), (76.9, 0.4), (77.7, 0.4), (78.8, None)],
        "WS": [(79.3, 0.4), (84.4, 0.3), (80.0, 0.0)],
        "RTE": [(77.3, 0.2), (88.9, 0.2), (92.7, 0.2)],
    },
    "MMCE*": {
        "BB": [(63.2, 0.4), (73.2, 0.5), (77.0, 0.3), (77.7, 0.4), (78.8, None)],
        "WS": [(80.0, 0.4), (84.0, 0.3), (80.0, 0.0)],
        "RTE": [(73.2, 0.3), (85.3, 0.2), (87.1, 0.1)],
    },
    "Snorkel": {
        "BB": [(63.8, 0.7), (72.4, 0.6), (76.0, 0.4), (76.0, 0.3), (76.0, 0.0)],
        "WS": [(76.2, 0.7), (76.3, 0.6), (76.3, 0.1)],
        "RTE": [(65.2, 0.3), (79.1, 0.1), (90.0, 0.0)],
    },
    "MeTaL": {
        "BB": [(63.0, 0.7), (71.5, 0.6), (83.0, 0.3), (87.0, 0.1), (89.0, 0.0)],
        "WS": [(76.0, None), (85.1, 0.7), (93.1, 0.0)],
        "RTE": [(61.0, 0.3), (72.4, 0.3), (78.0, 0.0)],
    },
    "LIA-E": {
        "BB": [(65.1, 0.6), (73.0, 0.4), (78.1, 0.4), (77.2, 0.3), (78.9, 0.0)],
        "WS": [(87.7, None), (87.7, 0.5), (87.7, None)],
        "RTE": [(76.7, 0.3), (84.3, 0.1), (91.6, 0.0)],
    },
    "LIA": {
        "BB": [(71.5, 0.4), (76.2, 0.5), (83.1, 0.2), (90.0, 0.3), (93.0, 0.6)],
        "WS": [(88.7, 0.7), (92.7, 0.4), (96.3, 0.1)],
        "RTE": [(78.0, 0.3), (89.1, 0.1), (93.1, 0.1)],
    },
}
MAKERS = {
    "MAJ": lambda column: aggregate.MajorityVote(),
    "MAJ*-E": lambda column: two_stage(aggregate.MajorityVote(), EmbeddedTwoStage),
    "MAJ*": lambda column: two_stage(aggregate.MajorityVote()),
    "MMCE": lambda column: aggregate.MinimaxEntropy(),
    "MMCE*-E": lambda column: two_stage(aggregate.MinimaxEntropy(), EmbeddedTwoStage),
    "MMCE*": lambda column: two_stage(aggregate.MinimaxEntropy()),
    "Snorkel": lambda column: aggregate.GenerativeModel(),
    "MeTaL": lambda column: aggregate.LabelModel(),
    "LIA-E": with_best_settings("none"),
    "LIA": with_best_settings("as they are"),
}
FULL = [f"{name} R={sizes[-1]}" for name, sizes in REDUNDANCY.items()]
LIA = paper(PUBLISHED["LIA"], REDUNDANCY)


def all_of(*names: str) -> list[str]:
    """The columns of some sets."""
    return [f"{name} R={size}" for name in names for size in REDUNDANCY[name]]


SEEN = (
    "features from words, and weight decay, were tried after seeing that LIA with sentence "
    "embeddings falls short of its published accuracy on RTE; their settings were then chosen by "
    "held-out labels alone."
)


def with_decay(features: str, published: Mapping[str, Any]) -> Row:
    """LIA with weight decay, on the sets where held-out labels prefer it."""
    names = [name for kind, name in DECAYED if kind == features]
    return Row(with_best_settings(features, decay=True), published, all_of(*names), SEEN)


OURS = {
    "D&S": lambda column: aggregate.DawidSkene(),
    "IBCC": lambda column: aggregate.IBCC(),
}
TABLE = Table(
    name="lia-table2",
    title="LIA's Table 2: accuracy by the number of labels per task",
    source=SOURCE,
    about=(
        "Each seed draws the labels that are kept. Features are VGG-16 (BB), GloVe (WS) and "
        "sentence embeddings (RTE; the paper's BERT features are not published) or, for words in "
        "common, how much of the second sentence of a pair the first one contains. Ratings of "
        "word pairs are soft labels. LIA's settings are the best by held-out labels "
        "(lia-settings); its accuracy is that of the posterior, with the classifier's beside it."
    ),
    notes=(
        "The published MMCE seems to be penalized per annotation instead of per parameter: on "
        "birds the method does far better than its published row.",
        "On all three sets held-out labels prefer linear networks to the paper's four layers of "
        "16, and in some cases weight decay. Settings were chosen with all labels of a set: with "
        "few labels per task they need not be the best, and weight decay without features is far "
        "from it.",
        "The last rows are not methods: a logistic regression trained on the truth of four fifths "
        "of the tasks, to show how well the features predict the others. For entailment, sentence "
        "embeddings are nearly uninformative, and words in common, which need only the texts, "
        "are not much better. With these LIA still predicts held-out labels better.",
    ),
    rows=without_search(
        {
            **{
                name: Row(make, paper(PUBLISHED[name], REDUNDANCY)) for name, make in MAKERS.items()
            },
            "LIA (10 x 1,000 steps)": Row(by_the_paper, LIA, FULL),
            "LIA (linear networks)": Row(with_best_settings("linear"), LIA),
            "LIA (words in common)": Row(
                with_best_settings("words in common"), LIA, all_of("RTE"), SEEN
            ),
            "LIA-E, weight decay": with_decay("none", paper(PUBLISHED["LIA-E"], REDUNDANCY)),
            "LIA (linear networks), weight decay": with_decay("linear", LIA),
            "LIA (words in common), weight decay": with_decay("words in common", LIA),
            **{name: Row(make) for name, make in OURS.items()},
            "true labels + LR, on other tasks": Row(lambda column: TrueLabels(), columns=FULL),
            "the same, by words in common": Row(
                lambda column: TrueLabels(words=True), columns=["RTE R=10"]
            ),
        }
    ),
    columns=columns(REDUNDANCY, whole),
    measure=on_its_tasks,
    metrics=("accuracy", "balanced accuracy", "classifier"),
    pairs=(("LIA", "MMCE"), ("LIA", "D&S"), ("LIA", "LIA-E"), ("LIA (words in common)", "IBCC")),
    quick_columns=("BB R=5", "BB R=39", "WS R=10", "RTE R=10"),
)
