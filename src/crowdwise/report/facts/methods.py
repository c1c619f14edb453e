"""What each method believes, and which of them to believe."""

import logging
import time
import warnings
from dataclasses import dataclass
from typing import Any

import pandas as pd
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from crowdwise import aggregate
from crowdwise.annotations import Annotations
from crowdwise.base.params import InvalidParameterError
from crowdwise.errors import AnnotationError, ParameterError, explain
from crowdwise.evaluate import Estimate, score
from crowdwise.inference.simplex import tied
from crowdwise.report.facts.held_out import HeldOut, held_out_facts
from crowdwise.typing import Floats

METHODS = ("MajorityVote", "Wawa", "OneCoin", "GLAD", "MACE", "IBCC", "DawidSkene")
SCORES = ("accuracy", "balanced accuracy", "minority recall", "macro F1", "log loss")

N_RESAMPLES = 400  # of the scores against the truth, of every method

log = logging.getLogger("crowdwise.report")


@dataclass(frozen=True)
class MethodFacts:
    """One method's view of the same annotations."""

    name: str
    main: bool  # whether the rest of the report rests on it
    seconds: float
    converged: bool
    shares: Floats  # (class,): expected share of tasks of each class
    confidence: float  # mean over tasks
    same: float  # share of tasks with the main method's label; a tie counts its share
    held_out: HeldOut | None  # how well it foretells hidden labels
    scores: dict[str, Estimate]  # against the truth, where it is known


@dataclass(frozen=True)
class Fit:
    """A fitted method, and how the fit went."""

    name: str
    model: Any
    seconds: float
    converged: bool

    @property
    def posterior(self) -> Floats:
        return self.model.posterior_


def method_facts(
    data: Annotations,
    fits: list[Fit],
    main: Fit,
    truth: pd.Series | None,
    random_state: Any,
) -> tuple[tuple[MethodFacts, ...], str]:
    """Compare fitted methods; also says so where only some of the tasks were used."""
    hidden, note = held_out_facts(data, {fit.name: fit.model for fit in fits}, random_state)
    labelled = data.redundancy > 0
    found = []
    for fit in fits:
        posterior = fit.posterior[labelled]
        found.append(
            MethodFacts(
                name=fit.name,
                main=fit is main,
                seconds=fit.seconds,
                converged=fit.converged,
                shares=posterior.mean(axis=0),
                confidence=float(posterior.max(axis=1).mean()),
                same=same_labels(posterior, main.posterior[labelled]),
                held_out=hidden.get(fit.name),
                scores={} if truth is None else scores_of(fit.model, truth, random_state),
            )
        )
    return tuple(found), note


def fit_methods(
    data: Annotations, main: Any, methods: tuple[str, ...], random_state: Any
) -> tuple[list[Fit], Fit]:
    """Fit all methods that can take these data, the main one first to be sure of it."""
    chosen = fit_one(_ready(main, random_state), data)
    fits = []
    for name in methods:
        if name == chosen.name:
            fits.append(chosen)
            continue
        model = _ready(name, random_state)
        try:
            fits.append(fit_one(model, data))
        except AnnotationError as error:  # a method for two classes only, say
            log.info("%s is left out: %s", name, str(error).splitlines()[0])
    if chosen not in fits:
        fits.append(chosen)
    return fits, chosen


def fit_one(model: Any, data: Annotations) -> Fit:
    """Fit, and note how long it took and whether it came to an end."""
    name = type(model).__name__
    log.info("fitting %s", name)
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model.fit(data)
        except InvalidParameterError as error:
            raise ParameterError(explain(str(error), fix=f"see {name}'s documentation")) from None
    unfinished = any(issubclass(warning.category, ConvergenceWarning) for warning in caught)
    return Fit(name, model, time.perf_counter() - start, not unfinished)


def same_labels(posterior: Floats, other: Floats) -> float:
    """Share of tasks with the same label under both; tied labels count their share of it."""
    one, two = tied(posterior), tied(other)
    both = (one & two).sum(axis=1) / (one.sum(axis=1) * two.sum(axis=1))
    return float(both.mean()) if len(both) else float("nan")


def scores_of(model: Any, truth: pd.Series, random_state: Any) -> dict[str, Estimate]:
    """Scores against the truth, by name."""
    table = score(model, truth, n_resamples=N_RESAMPLES, random_state=random_state)
    return {
        name: Estimate(row["value"], row["low"], row["high"], int(row["n_tasks"]))
        for name, row in table.loc[[*SCORES]].iterrows()
    }


def _ready(method: Any, random_state: Any) -> Any:
    """An unfitted aggregator, from its name or from one that may be fitted already."""
    if isinstance(method, str):
        if method not in aggregate.__all__:
            raise ParameterError(
                explain(f"There is no method {method!r}.", expected=", ".join(aggregate.__all__))
            )
        model = getattr(aggregate, method)()
    else:
        model = clone(method)
    known = model.get_params()
    if "random_state" in known and known["random_state"] is None:
        model.set_params(random_state=random_state)
    return model
