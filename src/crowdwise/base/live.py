"""Methods that take labels as they come."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from copy import copy
from dataclasses import replace
from typing import ClassVar, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from crowdwise.annotations import Annotations, Pairs
from crowdwise.annotations.columns import drop_weightless
from crowdwise.base.aggregator import Aggregator
from crowdwise.base.params import checks_params
from crowdwise.errors import ParameterError, explain
from crowdwise.inference.engines.engine import CoinSums, Sums
from crowdwise.inference.engines.memory import MemoryEngine
from crowdwise.inference.live import Ledger, LiveCrowd
from crowdwise.inference.pair_belief import PairBelief
from crowdwise.inference.posteriors import as_array
from crowdwise.inference.simplex import clamp
from crowdwise.io import as_annotations, as_gold
from crowdwise.io.accept import refuse_too_many
from crowdwise.persist.registry import Value
from crowdwise.typing import AnnotationsLike, Floats, GoldLike, Ints

WORK = 4_000  # labels that are looked at again for each new one, at most
ROUNDS = 100  # rounds over all tasks in one update, at most


class LiveModel(Aggregator):
    """A method that can learn from labels as they come, without a new fit.

    A method file fills in ``_learn``: how its learned attributes follow from sums over tasks.
    """

    # Whenever there are so many times more labels, the method begins anew from the votes, as
    # ``fit`` does: where its answer depends on the start, an old one would lead elsewhere.
    _growth: ClassVar[float] = 1.25
    _live: LiveCrowd | None = None

    @checks_params
    def update(
        self, annotations: AnnotationsLike, gold: GoldLike = None, *, memory: float | None = None
    ) -> Self:
        """Learn from more labels: of known tasks and workers, or of new ones.

        The first call begins a live model; a model that was fitted keeps no labels and cannot
        be continued. Results are those of ``fit`` on all labels so far, nearly: tasks with new
        labels are judged again at once, others in turn, as far as a bounded effort per label
        allows, and what is left is done by later calls. EM that may end in several places
        begins anew whenever there are 0.5% more labels. ``save`` keeps the labels too, so that
        a loaded model goes on.

        Parameters
        ----------
        annotations : Annotations, frame, array, dict or path
            The new labels. New classes come after the known ones.
        gold : mapping, Series, frame or array, optional
            Known truths of tasks in ``annotations``.
        memory : float, optional
            For workers who change: a label counts 1/e as much for its worker's skill after so
            many later labels of the worker, and a task is not judged again once its last label
            is twice as old. Labels of one call are ordered by their times, or else by task.
            Given in the first call; by default nothing is forgotten.

        Notes
        -----
        Learned arrays are views of ones that grow: copy what has to outlive the next update.
        """
        votes = self._taken(drop_weightless(as_annotations(annotations)))
        live = self._current(memory)
        live.classes.enroll(votes.classes)
        codes = None if gold is None else self._gold_codes(gold, votes, live)
        touched = live.add(votes, codes)
        self._name(live)
        if not live.n_labels:
            return self
        if live.is_due(self._growth):
            self._begin(live)
        else:
            live.visit(touched, self._judge)
        effort = min(WORK * max(votes.n_annotations, 1), ROUNDS * live.n_labels)
        live.settle(self._judge, effort)
        self._show(live)
        return self

    def partial_fit(self, annotations: AnnotationsLike, gold: GoldLike = None) -> Self:
        """Same as ``update(annotations, gold)``, under scikit-learn's name."""
        return self.update(annotations, gold)

    def _gold_codes(self, gold: GoldLike, votes: Annotations, live: LiveCrowd) -> Ints:
        """The numbers that truths of new labels' tasks have in the live crowd."""
        named = votes.gold_labels if gold is votes.gold else gold
        return as_gold(named, replace(votes, classes=live.classes.names.view, gold=None))

    def _current(self, memory: float | None) -> LiveCrowd:
        """The live crowd to go on with, or a new one."""
        live = self._live
        if live is None or vars(self).get("posterior_") is not live.shown:
            if "posterior_" in vars(self):
                name = type(self).__name__
                raise ParameterError(
                    explain(
                        f"This {name} was fitted, and keeps no labels to go on from.",
                        fix=f"begin with model = {name}().update(first), then model.update(more)",
                    )
                )
            if memory is not None and not memory > 0:
                raise ParameterError(
                    explain(f"memory={memory!r} cannot be used.", expected="a positive number")
                )
            none = np.zeros(0, dtype=object)
            self._live = live = LiveCrowd(none, none, none, memory or 0.0)
        elif memory is not None and memory != live.memory:
            raise ParameterError(
                explain(
                    f"memory={memory!r}, but this model was begun with {live.memory or None}.",
                    fix="give memory in the first update only",
                )
            )
        return live

    def _begin(self, live: LiveCrowd) -> None:
        engine = live.engine()
        refuse_too_many(
            type(self).__name__,
            self._memory(engine.annotations),
            engine.annotations,
            "merge rare classes",
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # updates go on from there
            posterior = clamp(as_array(self._fit(engine)), engine.gold)
        live.begin(posterior, self._counted(engine, posterior))

    def _name(self, live: LiveCrowd) -> None:
        self.tasks_ = live.tasks.names.view
        self.workers_, self.classes_ = live.workers.names.view, live.classes.names.view

    def _show(self, live: LiveCrowd) -> None:
        self._name(live)
        crowd = live.counts.view.sum(axis=0)
        self._learn(Sums(0.0, live.truths, live.counts.view), crowd)
        self.posterior_ = live.show_posterior()

    def _judge(self, engine: MemoryEngine, sums: Sums, crowd: Floats) -> tuple[Floats, Floats]:
        """The posterior of an engine's tasks under the present sums, and what is counted."""
        model = copy(self)
        model.workers_ = engine.workers
        model._learn(sums, crowd)
        posterior = clamp(as_array(model._posterior(engine)), engine.gold)
        return posterior, self._counted(engine, posterior)

    def _taken(self, votes: Annotations) -> Annotations:
        """The new labels as the method sees them."""
        return votes

    def _counted(self, engine: MemoryEngine, posterior: Floats) -> Floats:
        """What is counted of each task when workers are judged: its posterior."""
        return posterior

    @abstractmethod
    def _learn(self, sums: Sums, crowd: Floats) -> None:
        """Set the learned attributes of ``workers_`` from their sums, and from all workers'.

        ``sums.counts`` has the rows of ``workers_``; ``crowd`` is the sum over all workers.
        """

    def _learned(self) -> dict[str, Value]:
        learned = super()._learned()
        live = self._live
        if live is not None and vars(self).get("posterior_") is live.shown:
            learned["ledger_"] = live.close()
        return learned

    def _restore(self, learned: dict[str, Value]) -> None:
        ledger = learned.pop("ledger_", None)
        super()._restore(learned)
        if isinstance(ledger, Ledger):
            names = self.tasks_, self.workers_, self.classes_
            self._live = LiveCrowd.reopen(ledger, *names)
            self.posterior_ = self._live.show_posterior()


def believe(counts: Floats, pseudo: Floats, earlier: Floats | None = None) -> PairBelief:
    """What counts of all pairs, (worker, truth, label), say of workers."""
    pairs = Pairs.all_of(len(counts), counts.shape[-1])
    return PairBelief(pairs, pairs.take(counts), pseudo, earlier)


def as_coins(sums: Sums) -> CoinSums:
    """Right and given labels of each worker, from counts of (worker, truth, label)."""
    right, given = np.einsum("wkk->w", sums.counts), sums.counts.sum(axis=(1, 2))
    return CoinSums(sums.evidence, sums.truths, right, given)
