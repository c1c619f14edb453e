"""ICED's comparison on three imbalanced sets, and baselines that the paper leaves out."""

from typing import Any

from crowdbench.plain import without_search
from crowdbench.table import Row, Table
from crowdbench.tables._iced import (
    GSAD,
    NETWORK,
    SEEN,
    SOURCE,
    USPS,
    Oversampled,
    columns,
    iced,
    net,
    on_balanced_test,
    paper,
    settings,
)
from crowdwise.aggregate import IBCC, DawidSkene, HardDawidSkene, MajorityVote
from crowdwise.learn import MBEM, ClusteredPersonalClassifier, CrowdLayer, SpeeLFC, TwoStage

# By the labels of held-out tasks: see the table iced-settings.
CHOSEN: dict[str, dict[str, Any]] = {
    USPS: {"aggregator": DawidSkene(), "class_prior": "network"},
    GSAD: {"aggregator": DawidSkene(), "class_prior": "network"},
}
ON_SEEN_SETS = {
    column + rest: SEEN for column in (USPS, GSAD) for rest in ("", ", easy", ", medium", ", hard")
}
ROWS = {
    "MV + LR": Row(
        lambda _: TwoStage(MajorityVote()),
        paper((0.8179, 0.8175), (0.8494, 0.8480), (0.7094, 0.6872)),
    ),
    "MV + DNN": Row(
        lambda _: TwoStage(MajorityVote(), net()),
        paper((0.8000, 0.7979), (0.8735, 0.8732), (0.8333, 0.8327)),
    ),
    "D&S + LR": Row(
        lambda _: TwoStage(DawidSkene()),
        paper((0.7671, 0.7592), (0.8193, 0.8136), (0.6974, 0.6716)),
    ),
    "D&S + DNN": Row(
        lambda _: TwoStage(DawidSkene(), net()),
        paper((0.7636, 0.7562), (0.7530, 0.7386), (0.8085, 0.8082)),
    ),
    "Crowd-Layer": Row(
        lambda column: CrowdLayer(truth=NETWORK, training=settings(column, per_task=False)),
        paper((0.8200, 0.8167), (0.9006, 0.8998), (0.8342, 0.8295)),
    ),
    "MBEM": Row(
        lambda _: MBEM(truth=NETWORK, training=settings(epochs=22)),
        paper((0.6967, 0.4211), (0.7813, 0.5334), (0.6826, 0.5577)),
    ),
    "MBEM (authors' code)": Row(
        lambda _: MBEM(truth=NETWORK, self_training=True, training=settings(epochs=11)),
        paper((0.6967, 0.4211), (0.7813, 0.5334), (0.6826, 0.5577)),
    ),
    "CPC": Row(
        lambda _: ClusteredPersonalClassifier(),
        paper((0.8021, 0.8020), (0.8313, 0.8311), (0.6154, 0.5917)),
    ),
    "ICED": Row(
        lambda _: iced(),
        paper((0.8521, 0.8512), (0.9036, 0.9030), (0.8872, 0.8865)),
        not_blind=ON_SEEN_SETS,
    ),
    "ICED (stopped by held-out labels)": Row(
        lambda _: iced(training=settings(epochs=1, patience=8)),
        not_blind=ON_SEEN_SETS,
    ),
    "ICED (settings by held-out labels)": Row(
        lambda column: iced(**CHOSEN[column]), columns=tuple(CHOSEN)
    ),
    "ICED (network prior)": Row(lambda _: iced("network"), not_blind=ON_SEEN_SETS),
    "MV + DNN, class-weighted": Row(
        lambda _: TwoStage(MajorityVote(), net(class_weight="balanced"))
    ),
    "D&S + DNN, class-weighted": Row(
        lambda _: TwoStage(DawidSkene(), net(class_weight="balanced"))
    ),
    "MV + SMOTE + DNN": Row(lambda _: TwoStage(MajorityVote(), Oversampled())),
    "IBCC + DNN": Row(lambda _: TwoStage(IBCC(), net())),
    "Hard D&S + DNN": Row(lambda _: TwoStage(HardDawidSkene(), net())),
    "SpeeLFC": Row(
        lambda column: SpeeLFC(truth=NETWORK, training=settings(column, per_task=False))
    ),
}
BEST = (
    "Crowd-Layer",
    "MV + DNN",
    "MV + DNN, class-weighted",
    "D&S + DNN, class-weighted",
    "SpeeLFC",
    "MBEM",
)
KINDS = ("ICED", "ICED (settings by held-out labels)", "ICED (network prior)")
ABOUT = (
    "The base sets are real and the workers simulated. The paper does not say how, and other "
    "crowds give other figures, so ours are comparable but not identical. GSAD's features are "
    "standardized within batches, which makes it easier; Gisette-like is made from MNIST's 4 "
    "and 9. All networks have one layer of 128 units and are trained for 45 epochs. F1 is the "
    "mean over both classes; the paper's F1 of MBEM can only be that of one class."
)

TABLE = Table(
    name="iced-table2",
    title="ICED's Table 2: classifiers from imbalanced crowds, on a balanced test part",
    source=SOURCE,
    about=ABOUT,
    notes=(
        "What remains unknown of the crowds: the distribution of accuracies (a share of agreed "
        "tasks and a quality of majority votes leave many), whether they differ between classes, "
        "and the rare class itself, which the paper does not name. On USPS, accuracies come from "
        "Beta(1/2, 1/2), drawn again until both published figures are met; nothing about ICED's "
        "own results entered that choice. The published D&S rows are below majority vote and ours "
        "above: whatever made them so is in neither figure. On GSAD, majority votes that agree as "
        "rarely as published are better than published, with features that are easier.",
        "Nothing was ever chosen on Gisette-like-Syn, and the row with settings by held-out labels "
        "is blind everywhere.",
        "ICED's optimizer starts anew in every stage and round, and its warm-up from an "
        "autoencoder; the paper says nothing of either.",
    ),
    rows=without_search(ROWS),
    columns=columns(["published"]),
    measure=on_balanced_test,
    metrics=("accuracy", "macro F1", "minority F1", "minority recall", "training"),
    pairs=[(kind, name) for kind in KINDS for name in BEST],
    quick_rows=("MV + LR", "MV + DNN", "Crowd-Layer", "ICED", "ICED (network prior)"),
    quick_columns=("USPS-Syn",),
)
