"""Methods side by side: their answers, differences, confidence and stability."""

from __future__ import annotations

import logging
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import NoReturn, TypeAlias

import numpy as np
import pandas as pd

from crowdwise import progress
from crowdwise.annotations import Annotations, tied
from crowdwise.errors import CrowdwiseError, ParameterError, explain
from crowdwise.evaluate.held_out_labels import (
    Method,
    choose_held_out,
    compare_with_best,
    fit_clone,
    fit_to_rest,
    score_held_out,
)
from crowdwise.evaluate.intervals import IntervalSettings
from crowdwise.evaluate.scores import score
from crowdwise.evaluate.truth_alignment import Truths
from crowdwise.inference.posteriors import as_array, choose
from crowdwise.io import as_annotations
from crowdwise.typing import AnnotationsLike, FeaturesLike, Floats, Ints, RandomState

Row: TypeAlias = dict[str, float | str]  # of the table, by column

log = logging.getLogger("crowdwise")

SCORES = {  # column of each score
    "accuracy": "accuracy",
    "balanced accuracy": "balanced_accuracy",
    "macro F1": "macro_f1",
    "minority recall": "minority_recall",
    "log loss": "log_loss",
    "calibration error": "calibration_error",
}


@dataclass(frozen=True, eq=False)
class Comparison:
    """The result of :func:`compare_methods`.

    Attributes
    ----------
    table : DataFrame
        One row per method.
    agreement : DataFrame
        Share of tasks with the same label under two methods, method x method.
    labels : DataFrame
        The label of each task by each method, task x method.
    """

    table: pd.DataFrame
    agreement: pd.DataFrame
    labels: pd.DataFrame


def compare_methods(
    annotations: AnnotationsLike,
    methods: Mapping[str, Method | str] | Iterable[Method | str],
    *,
    X: FeaturesLike | None = None,
    truth: Truths | None = None,
    held_out: float = 0.1,
    n_resamples: int = 1000,
    confidence: float = 0.95,
    random_state: RandomState = 0,
) -> Comparison:
    """Compare methods, without truth and with it.

    Parameters
    ----------
    annotations : Annotations, frame, array, dict or path
        Anything that :func:`crowdwise.io.as_annotations` accepts.
    methods : mapping from name to estimator, or list
        Aggregators, and learners if X is given; a list holds estimators, or names such as
        "DawidSkene". They are cloned. If a method refuses the data, the column ``note`` says
        why and the others are empty.
    X : array or frame, optional
        Features of the tasks, for learners.
    truth : mapping, Series or frame, optional
        True labels of some tasks, for scores only: nothing is learned from them.
    held_out : float, default=0.1
        Share of the annotations to hold out and predict, at most one per task; 0 for none.
        Every method is then fitted twice.
    n_resamples, confidence, random_state
        For the intervals, and for choosing what to hold out.

    Returns
    -------
    Comparison
        Its ``table`` has, by method: ``changed``, the share of tasks whose label is not (one
        of) the majority's; ``agreement``, the mean share of tasks with the same label under
        another method; ``confidence``, the mean probability of the labels; ``held_out`` with
        ``held_out_low`` and ``held_out_high``, the mean log-likelihood of a held-out
        annotation, in nats, with workers' confusion matrices counted under the method's
        posterior (higher is better, and no truth is needed, but a method that predicts labels
        well need not be right); ``behind``, the gap to the best other method, with an
        interval that includes 0 if it may be due to chance; ``stability``, the share of tasks
        that keep their label without the held-out annotations; ``objective``, the final value
        of what the method maximizes, comparable only with itself; ``seconds``; and with truth
        the scores of :func:`score`.

    Examples
    --------
    >>> from crowdwise.aggregate import DawidSkene, MajorityVote
    >>> from crowdwise.simulate import confused_crowd, one_coin_confusion
    >>> confusion = one_coin_confusion([0.9, 0.8, 0.6, 0.5, 0.5], n_classes=2)
    >>> crowd = confused_crowd(confusion, n_tasks=200, per_task=5, random_state=0)
    >>> methods = {"vote": MajorityVote(), "DawidSkene": DawidSkene()}
    >>> found = compare_methods(crowd.annotations, methods, random_state=0)
    >>> bool(found.agreement.loc["vote", "DawidSkene"] > 0.8)
    True
    """
    votes, methods = as_annotations(annotations), name_methods(methods)
    _refuse_share(held_out)
    asked = choose_held_out(votes, held_out, random_state)
    settings = IntervalSettings(
        n_resamples=n_resamples, confidence=confidence, random_state=random_state
    )
    rows, labels, evidence = {}, {}, {}
    for name, method in progress.track(methods.items(), "comparing methods", unit="method"):
        log.info("fitting %s", name)
        try:
            rows[name], labels[name] = _run_method(method, votes, X, truth, settings)
            if asked.any():
                rest = fit_to_rest(method, votes, X, asked)
                evidence[name] = score_held_out(rest, votes, asked)
                kept = tied(rest)[np.arange(len(rest)), labels[name]]
                rows[name]["stability"] = float(kept.mean())
        except CrowdwiseError as error:
            rows[name] = {"note": str(error).partition("\n")[0]}
            labels.pop(name, None)
    if not labels:
        _refuse_all(rows)
    for name, row in compare_with_best(evidence, settings).items():
        rows[name] |= row
    agreement = share_labeled_alike(labels, list(methods))
    index = pd.Index(votes.tasks, name="task")
    chosen = {name: votes.classes.astype(object)[codes] for name, codes in labels.items()}
    return Comparison(_table(rows, agreement), agreement, pd.DataFrame(chosen, index=index))


def name_methods(
    methods: Mapping[str, Method | str] | Iterable[Method | str],
) -> dict[str, Method]:
    """Return estimators by name; those in a list are named after their classes."""
    if isinstance(methods, Mapping):
        named = {name: _as_estimator(method) for name, method in methods.items()}
        names = list(named)
    else:
        listed = [methods] if isinstance(methods, str) else methods
        estimators = [_as_estimator(method) for method in listed]
        names = [type(estimator).__name__ for estimator in estimators]
        named = dict(zip(names, estimators, strict=True))
    if not named:
        raise ParameterError(
            explain(
                "There are no methods to compare.",
                expected="one or more",
                fix="leave methods out for the usual ones, or list some",
            )
        )
    if len(named) < len(names):
        raise ParameterError(
            explain(
                f"Two of the methods are named {Counter(names).most_common(1)[0][0]}.",
                expected="methods of different classes, or a mapping from names to methods",
                fix="give each a name: {'few steps': DawidSkene(max_iter=5), …}",
            )
        )
    return named


def _as_estimator(method: Method | str) -> Method:
    """Return an estimator, given itself or its name."""
    if isinstance(method, str):
        for package, listed in (("aggregate", "__all__"), ("learn", "LEARNERS")):
            home = import_module(f"crowdwise.{package}")
            if method in getattr(home, listed):
                return getattr(home, method)()
    if isinstance(method, str | type) or not hasattr(method, "fit"):
        raise ParameterError(
            explain(
                f"{method!r:.80} is not a method to compare.",
                expected="an estimator such as DawidSkene(), or its name, such as 'DawidSkene'",
                fix="list all names in a shell: crowdwise methods",
            )
        )
    return method


def _refuse_share(held_out: float) -> None:
    if not 0 <= held_out < 1:
        raise ParameterError(
            explain(
                f"held_out={held_out} is not a valid share of the labels.",
                expected="0 or more, and less than 1",
                fix="held_out=0.2 holds out a fifth of them, held_out=0 none",
            )
        )


def _refuse_all(rows: dict[str, Row]) -> NoReturn:
    """Refuse a comparison in which every method has refused the data."""
    name, row = next(iter(rows.items()))
    raise ParameterError(
        explain(
            "No method could be fitted.",
            first=f"{name}: {row['note']}",
            expected="annotations that at least one of the methods can use",
            fix="resolve the first problem, or choose other methods",
        )
    )


def _table(rows: dict[str, Row], agreement: pd.DataFrame) -> pd.DataFrame:
    """Assemble the table: one row per method, with its mean agreement with the others."""
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis("method")
    table = table.drop(columns="note").assign(note=table["note"].fillna(""))
    others = agreement.to_numpy().copy()
    np.fill_diagonal(others, np.nan)
    table.insert(1, "agreement", [_mean(row) for row in others])
    return table


def _run_method(
    method: Method,
    votes: Annotations,
    X: FeaturesLike | None,
    truth: Truths | None,
    settings: IntervalSettings,
) -> tuple[Row, Ints]:
    """Run one method; returns its row of the table and the class number of each task's label."""
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = fit_clone(method, votes, X)
    seconds = time.perf_counter() - start
    labels, best = choose(model.posterior_), tied(votes.votes())
    row: Row = {
        "changed": float(1.0 - best[np.arange(len(labels)), labels].mean()),
        "confidence": float(model.posterior_.max(axis=1).mean()),
        "objective": last_objective(model),
        "seconds": seconds,
    }
    if truth is not None:
        row |= _score_columns(model, votes, truth, settings)
    user = [str(w.message) for w in caught if issubclass(w.category, UserWarning)]
    return {**row, "note": user[0].partition(". ")[0] if user else ""}, labels


def _score_columns(
    model: Method, votes: Annotations, truth: Truths, settings: IntervalSettings
) -> Row:
    tasks = pd.Index(votes.tasks, name="task", tupleize_cols=False)
    proba = pd.DataFrame(as_array(model.posterior_), index=tasks, columns=votes.classes)
    found, row = score(proba, truth, **settings), {}
    for name, column in SCORES.items():
        row[column] = found.loc[name, "value"]
        row |= {f"{column}_low": found.loc[name, "low"], f"{column}_high": found.loc[name, "high"]}
    return {**row, "n_truths": int(found["n_tasks"].iloc[0])}


def share_labeled_alike(labels: Mapping[str, Ints], names: list[str]) -> pd.DataFrame:
    """Return the share of tasks with the same label, method x method; NaN without labels."""
    wide = pd.DataFrame(np.nan, index=names, columns=names)
    for one, mine in labels.items():
        for other, theirs in labels.items():
            wide.loc[one, other] = float(np.mean(mine == theirs))
    return wide


def last_objective(model: Method) -> float:
    """Return the final value of the objective; NaN for a method without one."""
    steps = getattr(model, "objective_", None)
    if steps is None and hasattr(model, "history_"):
        losses = getattr(model.history_, "loss", None)
        return -float(min(losses[-1])) if losses else float("nan")
    return float(steps[-1]) if steps is not None and len(steps) else float("nan")


def _mean(values: Floats) -> float:
    there = values[np.isfinite(values)]
    return float(there.mean()) if len(there) else float("nan")
