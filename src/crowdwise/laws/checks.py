"""Shared parts of the laws: fits, extreme crowds, and assertions."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning

from crowdwise.annotations import Annotations, StoredAnnotations
from crowdwise.annotations.store import StoreWriter
from crowdwise.base.aggregator import Aggregator
from crowdwise.errors import CrowdwiseError
from crowdwise.laws.quick import Model, quick
from crowdwise.persist import load
from crowdwise.persist.registry import registered_name
from crowdwise.simulate import confused_crowd, one_coin_confusion
from crowdwise.typing import Array, FeaturesLike, Floats, Ints

if TYPE_CHECKING:
    from crowdwise.base.learner import Learner

ROUNDING = 1e-4  # effect of another order of summation after some steps in single precision
RANDOMNESS = 0.1  # mean difference that other random numbers may cause


def unusual_crowds() -> list[Annotations]:
    """Make extreme crowds, each of a kind that occurs in practice."""
    rng = np.random.default_rng(8)
    some = confused_crowd(one_coin_confusion([0.9, 0.8, 0.7, 0.6], 2), 12, 3, random_state=9)
    flat = some.annotations
    return [
        Annotations.from_matrix([[0]]),  # one task, one worker, one label
        Annotations.from_matrix([[0, 1]]),  # one task, two workers who disagree
        Annotations.from_matrix([[0], [1], [0]]),  # one worker
        Annotations.from_matrix([[1, 1, 1], [1, 1, 1]]),  # one class
        Annotations.from_matrix([[0, -1, -1], [-1, 1, -1], [-1, -1, 0]]),  # nobody overlaps
        Annotations.from_matrix([[0, 1, -1], [1, 0, -1], [-1, -1, 1]]),  # two islands
        Annotations.from_matrix([[0, 0], [0, 0]], classes=[0, 1]),  # a class nobody used
        flat.subsample(1, random_state=0),  # one label per task
        replace(flat, tasks=flat.tasks).filter(flat.task > 3),  # tasks without labels
        replace(flat, weight=np.zeros(flat.n_annotations, np.float32)),  # all of weight 0
        Annotations.from_matrix(rng.integers(0, 2, (1, 40))),  # one task, many workers
        Annotations.from_codes(np.arange(30), np.arange(30), rng.integers(0, 2, 30)),
    ]


def store_without_names(votes: Annotations, folder: Path) -> StoredAnnotations:
    """Store the same annotations on disk, with tasks in the same order."""
    writer = StoreWriter(folder)
    writer.append(None, votes.redundancy, votes.pair_cells.code, votes.weight)
    writer.finish(votes.workers.astype(str), votes.classes.astype(str), votes.pairs)
    return StoredAnnotations.load(folder)


def rebuild(annotations: Annotations, frame: pd.DataFrame) -> Annotations:
    """Build annotations from another table, with the same names."""
    return Annotations.from_frame(
        frame,
        tasks=annotations.tasks,
        workers=annotations.workers,
        classes=annotations.classes,
    )


def add_weightless(
    votes: Annotations, worker: Ints, names: Sequence[str] = (), tasks: Sequence[str] = ()
) -> Annotations:
    """Return the annotations plus, for each given worker, a contradicting label of weight 0.

    Numbers after the last worker are new workers with these names; the labels are of new tasks,
    as far as there are names for them.
    """
    n = len(worker)
    task = np.append(votes.n_tasks + np.arange(len(tasks)), votes.task[: n - len(tasks)])
    counted = np.ones(votes.n_annotations) if votes.weight is None else votes.weight
    return Annotations.from_codes(
        np.append(votes.task, task),
        np.append(votes.worker, worker),
        np.append(votes.label, (votes.label[:n] + 1) % votes.n_classes),
        tasks=np.array([*votes.tasks, *tasks], dtype=object),
        workers=np.array([*votes.workers, *names], dtype=object),
        classes=votes.classes,
        weight=np.append(counted, np.zeros(n)),
    )


def global_state() -> Array:
    """Return the state of numpy's global generator, which no method may use."""
    state: Array = np.random.get_state(legacy=False)["state"]["key"]  # noqa: NPY002
    return state.copy()


def fit_quick(learner: Learner, X: FeaturesLike, votes: Annotations) -> Model:
    """Fit a quick copy; stopping before convergence breaks no law."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return quick(learner).fit(X, votes)


def get_results(model: Model, X: FeaturesLike) -> list[Floats]:
    """Return a learner's results for new rows, then for its own tasks."""
    if hasattr(model, "transform"):
        return [model.transform(X), model.posterior_, model.confidence_]
    return [model.predict_proba(X), model.posterior_]


def assert_same(learner: Learner, order: str, found: Model, expected: Model, X: Floats) -> None:
    """Assert equality up to rounding; only similarity for methods with own randomness."""
    # Third parties may have no traits.
    drawn = getattr(getattr(learner, "traits", None), "random_per", ())
    for one, other in zip(get_results(found, X), get_results(expected, X), strict=True):
        if order in drawn:
            assert np.abs(one - other).mean() < RANDOMNESS
        else:
            assert_allclose(one, other, atol=ROUNDING)


def assert_distribution(proba: Array) -> None:
    """Assert that rows are finite, non-negative and sum to one."""
    assert np.isfinite(proba).all()
    assert (proba > -1e-9).all()
    assert_allclose(proba.sum(axis=-1), 1, atol=1e-5)


def assert_refused(learner: Learner, X: Floats, votes: Annotations, what: str) -> None:
    """Assert that learning from this raises a ``CrowdwiseError``."""
    try:
        fit_quick(learner, X, votes)
    except CrowdwiseError:
        return
    raise AssertionError(f"{what} was accepted")


def is_third_party(method: Model) -> bool:
    """Return whether a file cannot name its class or a part's: only crowdwise's can be saved."""
    parts = [part for part in method.get_params().values() if isinstance(part, BaseEstimator)]
    return any(registered_name(type(one)) is None for one in (method, *parts))


def save_and_load(model: Model) -> Model:
    """Return the model after saving and loading it."""
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        again = load(Path(folder) / "model")
    assert type(again) is type(model)
    assert str(again.get_params()) == str(model.get_params())
    return again


def fit_copy(method: Aggregator, annotations: Annotations | StoredAnnotations) -> Model:
    """Fit a copy; stopping before convergence breaks no law."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return seed(method).fit(annotations)


def fit_posterior(method: Aggregator, annotations: Annotations) -> Floats:
    """Return the posterior of a fitted copy."""
    return fit_copy(method, annotations).posterior_


def seed(method: Aggregator) -> Aggregator:
    """Copy a method with a fixed random seed."""
    copy = clone(method)
    return copy.set_params(random_state=0) if "random_state" in copy.get_params() else copy
