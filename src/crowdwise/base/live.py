"""Live learning from new labels, as a part that a method may have."""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from crowdwise.annotations import Annotations
from crowdwise.annotations.columns import drop_weightless
from crowdwise.errors import AnnotationError, ParameterError, explain
from crowdwise.inference.engines.engine import Engine, Posterior, Sums
from crowdwise.inference.engines.memory import MemoryEngine
from crowdwise.inference.ledger import Fitted, Ledger, Snapshot
from crowdwise.inference.live import Judge, LiveCrowd
from crowdwise.inference.posteriors import as_array
from crowdwise.inference.simplex import clamp
from crowdwise.io import as_annotations, as_gold
from crowdwise.io.accept import refuse_other_type, refuse_too_many
from crowdwise.memory import LARGE, refuse_too_large
from crowdwise.persist.registry import Value
from crowdwise.typing import AnnotationsLike, Array, Floats, GoldLike, Ints

WORK = 4_000  # maximum number of labels that are looked at again for each new one
ROUNDS = 100  # maximum number of rounds over all tasks in one update


class LiveMethod(Protocol):
    """The methods that updates need."""

    tasks_: Array
    workers_: Array
    classes_: Array
    posterior_: Floats
    _live: LiveCrowd | None

    def _learn(self, sums: Sums, crowd: Floats) -> None:
        """Set the learned attributes of ``workers_`` from their sums, and from all workers'.

        ``sums.counts`` has the rows of ``workers_``; ``crowd`` is the sum over all workers.
        """

    def _take(self, votes: Annotations) -> Annotations:
        """Prepare new labels for the method."""
        ...

    def _count(self, engine: MemoryEngine, posterior: Floats) -> Floats:
        """Return what is counted for each task when workers are assessed."""
        ...

    def _fit(self, engine: Engine) -> Posterior: ...

    def _posterior(self, engine: Engine) -> Posterior: ...

    def _memory(self, engine: Engine) -> int: ...


@dataclass(frozen=True)
class LiveUpdates:
    """Learning from more labels without a new fit: ``Aggregator.update``.

    The labels so far and the sums over them are a :class:`LiveCrowd`, stored in the model.
    """

    # Whenever there are this many times more labels, the method starts again from the votes, as
    # ``fit`` does: if its result depends on the start, an old one would lead elsewhere.
    growth: float = 1.25

    def update(
        self,
        model: LiveMethod,
        labels: AnnotationsLike,
        gold: GoldLike,
        memory: float | None,
        wait: bool,
    ) -> None:
        """Add new labels, and update the model's learned attributes."""
        votes = model._take(drop_weightless(as_annotations(labels)))
        live = self._continue(model, memory)
        for book, names, role in (
            (live.classes, votes.classes, "label"),
            (live.workers, votes.workers, "worker"),
            (live.tasks, votes.tasks, "task"),
        ):
            refuse_other_type(names, book.number, role)
        live.classes.enroll(votes.classes)
        _refuse_too_large(type(model).__name__, live, votes)
        codes = None if gold is None else _find_gold(gold, votes, live)
        touched = live.add(votes, codes)
        _name(model, live)
        if not live.n_labels:
            return
        fitted = self._refit(model, live, wait)
        if fitted is not None:
            touched = live.take(fitted)
        if len(touched):
            live.visit(touched, _judge_with(model))
        effort = min(WORK * max(votes.n_annotations, 1), ROUNDS * live.n_labels)
        live.settle(_judge_with(model), effort)
        crowd = live.counts.view.sum(axis=0)
        model._learn(Sums(0.0, live.truths, live.counts.view), crowd)
        model.posterior_ = live.show_posterior()

    def _continue(self, model: LiveMethod, memory: float | None) -> LiveCrowd:
        """Return the live crowd to continue, or a new one."""
        live = model._live
        if live is None or vars(model).get("posterior_") is not live.shown:
            if "posterior_" in vars(model):
                name = type(model).__name__
                raise ParameterError(
                    explain(
                        f"This {name} was trained by fit, which stores no labels to continue from.",
                        fix=f"start with model = {name}().update(first), then model.update(more)",
                    )
                )
            if memory is not None and not memory > 0:
                raise ParameterError(
                    explain(
                        f"memory={memory!r} cannot be used.",
                        expected="a positive number",
                        fix="leave memory out to remember every label",
                    )
                )
            none = np.zeros(0, dtype=object)
            model._live = live = LiveCrowd(none, none, none, memory or 0.0)
        elif memory is not None and memory != live.memory:
            raise ParameterError(
                explain(
                    f"memory={memory!r}, but this model was started with {live.memory or None}.",
                    fix="give memory in the first update only",
                )
            )
        return live

    def _refit(self, model: LiveMethod, live: LiveCrowd, wait: bool) -> Fitted | None:
        """Fit all labels if that is due; without waiting, return the last background fit."""
        pending, live.pending = live.pending, None
        if not wait and pending is not None:
            if pending.done():
                return pending.result()
            live.pending = pending
            return None
        if not live.is_due(self.growth):
            return None
        if wait or live.memory or not live.begun:
            return _fit_all(model, live.snapshot())
        beside = ThreadPoolExecutor(1)
        live.pending = beside.submit(_fit_all, copy(model), live.snapshot())
        beside.shutdown(wait=False)
        return None

    def keep(self, model: LiveMethod) -> dict[str, Value]:
        """Return what a file needs besides the learned attributes."""
        live = model._live
        if live is None or vars(model).get("posterior_") is not live.shown:
            return {}
        return {"ledger_": live.close()}

    def reopen(self, model: LiveMethod, ledger: Ledger) -> None:
        """Restore what :meth:`keep` returned, so that a loaded model can continue."""
        names = model.tasks_, model.workers_, model.classes_
        model._live = LiveCrowd.reopen(ledger, *names)
        model.posterior_ = model._live.show_posterior()


def _fit_all(model: LiveMethod, snapshot: Snapshot) -> Fitted:
    """Fit a method from its usual start, as ``fit`` does."""
    engine = snapshot.engine()
    name, memory = type(model).__name__, model._memory(engine)
    refuse_too_many(name, memory, engine.annotations, "merge rare classes")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # updates continue from there
        posterior = clamp(as_array(model._fit(engine)), engine.gold)
    counted = model._count(engine, posterior)
    counts = MemoryEngine(engine.annotations, None, 1).count(counted)
    return Fitted(len(snapshot.task), posterior, counted, counts)


def _refuse_too_large(name: str, live: LiveCrowd, votes: Annotations) -> None:
    """Refuse labels whose tables, which a live fit stores whole, exceed the memory."""
    n_tasks = max(len(live.tasks), votes.n_tasks)
    n_workers, k = max(len(live.workers), votes.n_workers), len(live.classes)
    if (needed := 8.0 * k * (2 * n_tasks + k * n_workers)) > LARGE:
        size = f"{n_tasks:,} tasks, {n_workers:,} workers and {k:,} classes"
        fix = "use fit, or merge rare classes"
        refuse_too_large(f"{name}.update", needed, size, fix, AnnotationError)


def _find_gold(gold: GoldLike, votes: Annotations, live: LiveCrowd) -> Ints:
    """Return the live crowd's class numbers of new tasks' truths."""
    named = votes.gold_labels if gold is votes.gold else gold
    return as_gold(named, replace(votes, classes=live.classes.names.view, gold=None))


def _name(model: LiveMethod, live: LiveCrowd) -> None:
    model.tasks_ = live.tasks.names.view
    model.workers_, model.classes_ = live.workers.names.view, live.classes.names.view


def _judge_with(model: LiveMethod) -> Judge:
    """Make a function that infers some tasks: their posterior, and what is counted."""

    def judge(engine: MemoryEngine, sums: Sums, crowd: Floats) -> tuple[Floats, Floats]:
        view = copy(model)
        view.workers_ = engine.workers
        view._learn(sums, crowd)
        posterior = clamp(as_array(view._posterior(engine)), engine.gold)
        return posterior, model._count(engine, posterior)

    return judge
