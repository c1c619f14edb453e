"""Results of each method, and how methods differ."""

import logging
import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.base import clone

from crowdwise import aggregate, progress
from crowdwise.annotations import Annotations, tied
from crowdwise.annotations.names import locate
from crowdwise.base.aggregator import Aggregator
from crowdwise.errors import AnnotationError, ParameterError, explain
from crowdwise.evaluate import Estimate, score
from crowdwise.evaluate.held_out_labels import (
    choose_held_out,
    compare_with_best,
    fit_to_rest,
    score_held_out,
)
from crowdwise.evaluate.learning_curve import Fit, fit_and_time, same_labels
from crowdwise.report.facts.limits import sample_tasks
from crowdwise.typing import Floats, RandomState

MAIN = aggregate.DEFAULT.__name__
METHODS = ("MajorityVote", "Wawa", "OneCoin", "GLAD", "MACE", "IBCC", "DawidSkene", MAIN)
SCORES = (
    "accuracy",
    "balanced accuracy",
    "minority recall",
    "macro F1",
    "log loss",
    "calibration error",
)

N_RESAMPLES = 400  # for the scores against the truth, of every method
HIDDEN = 0.2  # share of the annotations to hold out, at most one per task
MOST_ANNOTATIONS = 200_000  # larger data are sampled, by whole tasks
FEWEST = 10  # held-out labels for a meaningful comparison

log = logging.getLogger("crowdwise.report")


@dataclass(frozen=True)
class HeldOut:
    """The probability that a method gives to held-out labels, as a geometric mean."""

    probability: Estimate
    behind: float  # the highest probability of any method minus this one's
    as_good_as_best: bool  # whether the difference is not significant
    kept: float  # share of tasks with the same label without the held-out ones


@dataclass(frozen=True)
class MethodFacts:
    """One method's results on the same annotations."""

    name: str
    main: bool  # whether the rest of the report is based on it
    seconds: float
    converged: bool
    shares: Floats  # (class,): expected share of tasks of each class
    confidence: float  # mean over tasks
    same: float  # share of tasks with the main method's label; ties count in part
    held_out: HeldOut | None  # how well it predicts held-out labels
    scores: dict[str, Estimate]  # against known truths


def method_facts(
    data: Annotations,
    fits: list[Fit],
    main: Fit,
    truth: pd.Series | None,
    random_state: RandomState,
) -> tuple[tuple[MethodFacts, ...], str]:
    """Compare fitted methods; the text says if only some of the tasks were used."""
    hidden, note = held_out_facts(data, {fit.name: fit.model for fit in fits}, random_state)
    labeled = data.redundancy > 0
    found = []
    for fit in fits:
        posterior = fit.posterior[labeled]
        found.append(
            MethodFacts(
                name=fit.name,
                main=fit is main,
                seconds=fit.seconds,
                converged=fit.converged,
                shares=posterior.mean(axis=0),
                confidence=float(posterior.max(axis=1).mean()),
                same=same_labels(posterior, main.posterior[labeled]),
                held_out=hidden.get(fit.name),
                scores={} if truth is None else scores_of(fit.model, truth, random_state),
            )
        )
    return tuple(found), note


def fit_methods(
    data: Annotations, main: str | Aggregator, methods: tuple[str, ...], random_state: RandomState
) -> tuple[list[Fit], Fit]:
    """Fit all methods that accept these data; only the main one has to."""
    chosen = fit_and_time(_ready(main, random_state), data)
    fits = []
    for name in progress.track(methods, "fitting methods", unit="method"):
        if name == chosen.name:
            fits.append(chosen)
            continue
        model = _ready(name, random_state)
        try:
            fits.append(fit_and_time(model, data))
        except AnnotationError as error:  # such as a method for two classes only
            log.info("%s is left out: %s", name, str(error).splitlines()[0])
    if chosen not in fits:
        fits.append(chosen)
    return fits, chosen


def scores_of(
    model: Aggregator, truth: pd.Series, random_state: RandomState
) -> dict[str, Estimate]:
    """Compute scores against the truth, by name."""
    table = score(model, truth, n_resamples=N_RESAMPLES, random_state=random_state)
    return {
        name: Estimate(row["value"], row["low"], row["high"], int(row["n_tasks"]))
        for name, row in table.loc[[*SCORES]].iterrows()
    }


def _ready(method: str | Aggregator, random_state: RandomState) -> Aggregator:
    """Return an unfitted aggregator, from a name or from an estimator, fitted or not."""
    if isinstance(method, str):
        if method not in aggregate.__all__:
            raise ParameterError(
                explain(
                    f"There is no method {method!r}.",
                    expected=", ".join(aggregate.__all__),
                    fix="choose one of these",
                )
            )
        model = getattr(aggregate, method)()
    else:
        model = clone(method)
    known = model.get_params()
    if "random_state" in known and known["random_state"] is None:
        model.set_params(random_state=random_state)
    return model


def held_out_facts(
    data: Annotations, models: dict[str, Aggregator], random_state: RandomState
) -> tuple[dict[str, HeldOut], str]:
    """Hold out some labels and let each method predict them; empty if there are too few.

    The text says if only some of the tasks were used.
    """
    data, note = sample_tasks(data, MOST_ANNOTATIONS, random_state)
    hidden = choose_held_out(data, HIDDEN, random_state)
    if hidden.sum() < FEWEST:
        return {}, ""
    evidence, kept = {}, {}
    for name, model in progress.track(models.items(), "predicting held-out labels", unit="method"):
        try:
            rest = fit_to_rest(model, data, None, hidden)
        except AnnotationError:  # no usable annotations are left
            continue
        evidence[name] = score_held_out(rest, data, hidden)
        kept[name] = share_kept(model, data, rest)
    rows = compare_with_best(evidence, {"random_state": random_state})
    best = math.exp(max(row["held_out"] for row in rows.values()))
    return {
        name: held_out(row, best, int(hidden.sum()), kept[name]) for name, row in rows.items()
    }, note


def share_kept(model: Aggregator, data: Annotations, rest: Floats) -> float:
    """Compute the share of tasks whose label is still among the best with fewer labels."""
    if not hasattr(model, "posterior_"):
        return math.nan
    label = model.posterior_[locate(model.tasks_, data.tasks)].argmax(axis=1)
    return float(tied(rest)[np.arange(len(rest)), label].mean())


def held_out(row: dict[str, float], best: float, n_hidden: int, kept: float) -> HeldOut:
    """Convert mean log-likelihoods to probabilities, which are easier to read."""
    value, low, high = (math.exp(row[f"held_out{end}"]) for end in ("", "_low", "_high"))
    return HeldOut(Estimate(value, low, high, n_hidden), best - value, row["behind_low"] <= 0, kept)
