"""Panels of language models as judges: labels without gold and with a little, and estimates."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from crowdbench.judges import (
    Estimating,
    Labeling,
    MeanRating,
    Rating,
    Regression,
    VoteShares,
    read_panel,
)
from crowdbench.table import Column, Row, Table
from crowdwise.aggregate import JudgePanel, MajorityVote

CIVIL, ASSET = "judges_civilcomments", "judges_asset"
CUT = 4.5  # of scores from 0 to 9, as published
SIZES = (0, 20, 50, 100, 400)
STUDIED = (
    "how the panel weighs and calibrates was chosen with the truths of the civil comments in view; "
    "no setting is particular to them."
)


def label(seed: int, *, scores: bool, n_gold: int) -> Labeling:
    return Labeling(*read_panel(CIVIL, CUT, scores), n_gold)


def rate_asset(seed: int) -> Rating:
    return Rating(*read_panel(ASSET, None, True))


def estimate_from(
    seed: int, *, name: str, cut: float | None, n_gold: int, of: str, n_draws: int
) -> Estimating:
    return Estimating(*read_panel(name, cut, True), n_gold, of, n_draws)


def labeling_column(what: str, n_gold: int) -> Column:
    load: Callable[[int], Any] = partial(label, scores=what == "scores", n_gold=n_gold)
    return Column(load, redrawn=n_gold > 0, about="24 judges of 5,000 comments")


def name_labeling(what: str, n_gold: int) -> str:
    return f"civil comments, {what}, {n_gold or 'no'} gold"


CIVIL_SHARE = partial(estimate_from, name=CIVIL, cut=CUT, n_gold=100, of="share", n_draws=5)
ASSET_MEAN = partial(estimate_from, name=ASSET, cut=None, of="mean", n_draws=20)
LABELING = {
    name_labeling(what, n): labeling_column(what, n) for what in ("scores", "labels") for n in SIZES
}
WITHOUT = tuple(name for name in LABELING if name.endswith("no gold"))
WITH = tuple(name for name in LABELING if name not in WITHOUT)
RATING = {"ASSET, scores": Column(rate_asset, about="11 judges of 300 items, against 15 people")}
ESTIMATES = {
    "civil comments, share from 100 gold": Column(
        CIVIL_SHARE, redrawn=True, about="the share of toxic comments; 5 draws of gold a run"
    ),
    "ASSET, mean from 50 gold": Column(
        partial(ASSET_MEAN, n_gold=50), redrawn=True, about="people's mean rating; 20 draws a run"
    ),
    "ASSET, mean from 100 gold": Column(
        partial(ASSET_MEAN, n_gold=100), redrawn=True, about="people's mean rating; 20 draws a run"
    ),
}
SEEN = (*LABELING, "civil comments, share from 100 gold")

TABLE = Table(
    name="judges",
    title="Panels of language models as judges",
    source="Scores of open language models (Zhao et al. 2026), with families by name.",
    about=(
        "Accuracy and log loss (in nats, no probability below 1e-6) are of the tasks without gold. "
        "Vote shares have half a vote for each class added. The regression is on the judges' "
        "standardized ratings, its penalty by cross-validation. Correlations are with people's "
        "mean rating. Estimates are 95 % intervals of `evaluate.estimate` about the tasks at "
        "hand; their width is relative to that of the same gold labels alone."
    ),
    rows={
        "JudgePanel": Row(lambda _: JudgePanel(), not_blind=dict.fromkeys(SEEN, STUDIED)),
        "JudgePanel, prior 0.5": Row(
            lambda _: JudgePanel(prior=0.5),
            columns=WITHOUT,
            not_blind=dict.fromkeys(LABELING, STUDIED),
        ),
        "vote shares": Row(lambda _: VoteShares(), columns=tuple(LABELING)),
        "logistic regression": Row(lambda _: Regression(), columns=WITH),
        "mean of standardized scores": Row(lambda _: MeanRating(), columns=tuple(RATING)),
        "MajorityVote": Row(lambda _: MajorityVote(), columns=tuple(ESTIMATES)),
    },
    columns={**LABELING, **RATING, **ESTIMATES},
    measure=lambda model, data, seed: data.measure(model, seed),
    metrics=("accuracy", "correlation", "coverage"),
    losses=("log loss", "relative width"),
    pairs=(("JudgePanel", "logistic regression"),),
    seeds=20,
    quick_seeds=2,
    quick_columns=(*WITHOUT, *WITH[:1], *RATING),
)
