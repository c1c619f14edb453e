"""The shared part of truth-inference methods: validation, prediction, bookkeeping."""

import logging
from abc import ABC, abstractmethod
from copy import copy
from dataclasses import replace
from types import ModuleType
from typing import ClassVar, Self, cast

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from crowdwise import memory
from crowdwise.annotations import (
    Annotations,
    StoredAnnotations,
    find_labeled,
    keep_counting,
)
from crowdwise.annotations.names import locate
from crowdwise.annotations.order import describe_order
from crowdwise.annotations.truth_names import warn_unseen_truths
from crowdwise.base.live import LiveUpdates
from crowdwise.base.params import Constraints, checks_params
from crowdwise.base.traits import Traits
from crowdwise.errors import AnnotationError, MissingExtraError, ParameterError, explain
from crowdwise.inference.compact import CompactPosterior
from crowdwise.inference.engines.compact import CompactEngine
from crowdwise.inference.engines.engine import Engine, Posterior, Sums
from crowdwise.inference.engines.files import FileEngine, StreamedPosterior
from crowdwise.inference.engines.memory import MemoryEngine
from crowdwise.inference.ledger import Ledger
from crowdwise.inference.live import LiveCrowd
from crowdwise.inference.posteriors import as_array, as_frame, choose, name_labels, share_right
from crowdwise.inference.simplex import clamp
from crowdwise.io import as_annotations, as_gold
from crowdwise.io.accept import align_to_model, refuse_too_many
from crowdwise.io.gold import as_stored_gold, find_truths
from crowdwise.persist import Savable
from crowdwise.persist.registry import Value
from crowdwise.typing import AnnotationsLike, Array, Floats, GoldLike, Ints

log = logging.getLogger("crowdwise")
COMPACT = (
    "choose MajorityVote, Wawa, ZeroBasedSkill or OneCoin, which need memory per annotation only; "
    "or merge rare classes"
)
UNKNOWN_WORKERS = ("average", "ignore", "error")


def find_devices() -> ModuleType:
    """Import the engines that need PyTorch."""
    try:
        from crowdwise.inference.engines import device
    except ImportError as error:
        raise MissingExtraError.of("Another device", "PyTorch", "torch") from error
    return device


def _takes_updates(model: "Aggregator") -> bool:
    return model._updates is not None


class Aggregator(Savable, BaseEstimator, ABC):
    """Turn a crowd's labels into one distribution over the classes per task.

    A method implements ``_fit`` and ``_posterior``, which see the annotations through an
    :class:`~crowdwise.inference.Engine`; everything else is here. Learned arrays with a row per
    worker or per task are returned by ``_worker_rows`` and ``_task_rows``, so that ``predict``
    can align them with other annotations.

    Attributes
    ----------
    tasks_, workers_, classes_ : ndarray
        Names, in the order of every learned array.
    posterior_ : ndarray of shape (n_tasks, n_classes)
        P(truth | labels) of the fitted tasks. If that would take more than 1 GB, a
        :class:`~crowdwise.inference.CompactPosterior`, which returns the same rows on request.
    labels_ : Series
        Most probable label of each task, named ``agg_label``.
    probas_ : DataFrame
        ``posterior_`` with names.
    """

    traits: ClassVar[Traits] = Traits()
    _updates: ClassVar[LiveUpdates | None] = None  # for methods that implement ``_learn``
    _live: LiveCrowd | None = None
    _parameter_constraints: ClassVar[Constraints] = {}
    tasks_: Array
    workers_: Array
    classes_: Array
    posterior_: Floats
    idle_: Ints  # numbers of workers without a label that counts, if any

    @checks_params
    def fit(self, annotations: AnnotationsLike, gold: GoldLike = None) -> Self:
        """Learn the workers from their labels.

        Parameters
        ----------
        annotations : Annotations, frame, array, dict or path
            Anything that :func:`crowdwise.io.as_annotations` accepts. Nothing is learned from
            tasks without labels; they get the method's distribution for a task without labels.
        gold : mapping, Series, frame or array, optional
            Known truths of some tasks. They are kept, and learned from if the method can.
        """
        if isinstance(annotations, StoredAnnotations):
            return self._fit_stored(annotations, gold)
        votes = as_annotations(annotations)
        data = keep_counting(votes)
        self._refuse(data)
        self._note_order(data.classes)
        codes = None if gold is None else as_gold(gold, data)
        self.tasks_, self.workers_, self.classes_ = data.tasks, data.workers, data.classes
        self._note_idle(data.worker)
        known = find_labeled(data) if codes is None else find_labeled(data) | (codes >= 0)
        if self.traits.abstention_counts:  # nobody labeled them; unclear for labels of weight 0
            known |= votes.redundancy == 0
        engine = self._engine(data, codes)
        if known.all() or isinstance(engine, CompactEngine):
            fitted = self._fit(engine)
        else:
            fitted = self._fit_known(data, codes, known)
        self.posterior_ = cast("Floats", _keep_gold(fitted, codes))
        self._refuse_no_numbers()
        return self

    def _refuse_no_numbers(self) -> None:
        """Refuse a fit whose settings were too large or too small for its arithmetic."""
        if isinstance(self.posterior_, np.ndarray) and np.isnan(self.posterior_.sum()):
            name = type(self).__name__
            del self.posterior_
            raise ParameterError(
                explain(
                    f"{name} came to probabilities that are not numbers.",
                    expected="settings for which its numbers stay finite",
                    fix=f"see {name}'s documentation, and give settings nearer to its defaults",
                )
            )

    def _fit_stored(self, stored: StoredAnnotations, gold: GoldLike) -> Self:
        """Fit annotations on disk, block by block."""
        if not self.traits.blockwise:
            raise AnnotationError(
                explain(
                    f"{type(self).__name__} needs all annotations in memory, and these annotations "
                    "are on disk.",
                    fix="choose a method that works in blocks, such as DawidSkene; or read the "
                    "file into memory",
                )
            )
        known = None if gold is None else as_stored_gold(gold, stored)
        device = self._device
        engine = (
            FileEngine(stored, self._n_jobs, known=known)
            if device is None
            else find_devices().DeviceFileEngine.bring(device, stored, known, self._n_jobs)
        )
        self.posterior_ = cast("Floats", self.fit_engine(engine, stored.classes))
        return self

    def fit_engine(self, engine: Engine, classes: Array) -> Posterior:
        """Learn from the annotations of an engine, wherever it runs; returns the posterior.

        If several ranks have some of the tasks each, every rank calls this on its own engine
        and learns the same; the posterior has the rows of its own tasks.
        """
        if engine.group.size > 1 and getattr(self, "random_state", 0) is None:
            raise ParameterError(
                explain(
                    f"{type(self).__name__}(random_state=None) would draw different random "
                    "numbers on every rank.",
                    fix="give a seed, such as random_state=0",
                )
            )
        self._refuse(cast("Annotations", engine))  # which asks for the number of classes
        self._note_order(classes)
        self.workers_, self.classes_ = engine.workers, classes
        self._note_idle(engine.pairs.worker)
        return self._fit(engine)

    def _note_idle(self, worker: Ints) -> None:
        """Remember which workers have no label that counts, so nothing is known about them."""
        if "idle_" in vars(self):
            del self.idle_
        seen = np.zeros(len(self.workers_), dtype=bool)
        seen[worker] = True  # of 10^8 labels a set would take longer than all sweeps
        if not seen.all():
            self.idle_ = np.flatnonzero(~seen)

    def _engine(self, data: Annotations, gold: Ints | None = None) -> Engine:
        """Choose the engine for the annotations; refuse what would not fit into memory."""
        engine, device = MemoryEngine(data, gold, self._n_jobs), self._device
        needed = self._memory(engine)
        if device is None and self.traits.compact and data.soft is None and needed > memory.LARGE:
            return CompactEngine(data, gold, self._n_jobs)
        refuse_too_many(type(self).__name__, needed, data, COMPACT)
        return self._sweeper(data, gold)

    def _sweeper(self, data: Annotations, gold: Ints | None) -> MemoryEngine:
        """Make an engine with an array of tasks x classes, on the given ``device``."""
        if self._device is None or not self.traits.blockwise:  # such methods collect what they need
            return MemoryEngine(data, gold, self._n_jobs)
        return find_devices().DeviceEngine.bring(self._device, data, gold, self._n_jobs)

    @property
    def _device(self) -> str | None:
        """The device to sweep on, if that is a parameter."""
        return cast("str | None", getattr(self, "device", None))

    @property
    def _n_jobs(self) -> int | None:
        """The number of threads, if that is a parameter."""
        return cast("int | None", getattr(self, "n_jobs", None))

    def _memory(self, engine: Engine) -> int:
        """Estimate how many bytes fitting takes besides the annotations."""
        return 24 * engine.n_tasks * engine.n_classes  # the posterior, and two temporary ones

    def _fit_known(self, data: Annotations, gold: Ints | None, known: Array) -> Posterior:
        """Fit to the tasks that have a label or gold; the others do not count."""
        self.tasks_ = data.tasks[known]
        posterior = np.empty((data.n_tasks, data.n_classes))
        codes = None if gold is None else gold[known]
        posterior[known] = as_array(self._fit(self._sweeper(data[known], codes)))
        everyone = self._adapt(data, unknown_workers=False)
        posterior[~known] = everyone._posterior(MemoryEngine(data))[~known]
        self._restore(dict(everyone._task_rows()))
        self.tasks_ = data.tasks
        return posterior

    @available_if(_takes_updates)
    @checks_params
    def update(
        self,
        annotations: AnnotationsLike,
        gold: GoldLike = None,
        *,
        memory: float | None = None,
        wait: bool = True,
    ) -> Self:
        """Learn from more labels, of known tasks and workers or of new ones.

        The first call starts a live model; a model that was fitted stores no labels and cannot
        be continued. Tasks with new labels are inferred again at once, others in turn, within a
        bounded effort per label. Whenever the labels pass another thousand, and before that when
        there are 0.5% more (25% for methods with a unique optimum), all tasks are inferred again:
        results are then those of ``fit`` on all labels so far. ``save`` stores the labels too, so
        a loaded model can continue.

        Parameters
        ----------
        annotations : Annotations, frame, array, dict or path
            The new labels. New classes come after the known ones.
        gold : mapping, Series, frame or array, optional
            Known truths of tasks in ``annotations``.
        memory : float, optional
            For workers who change: a label counts 1/e as much for its worker's skill after this
            many later labels by the worker, and a task is not inferred again once its last label
            is twice as old. Labels of one call are ordered by time, or else by task.
            Set in the first call; by default nothing is forgotten.
        wait : bool, default=True
            Whether to wait while all tasks are inferred again, which takes about a second for a
            million labels. If not, a background thread does so, and a later call takes over its
            result: for services.

        Notes
        -----
        Learned arrays are views of arrays that grow: copy what must outlive the next update.
        """
        if self._updates is not None:
            self._updates.update(self, annotations, gold, memory, wait)
        return self

    @available_if(_takes_updates)
    def partial_fit(self, annotations: AnnotationsLike, gold: GoldLike = None) -> Self:
        """Same as ``update(annotations, gold)``, under scikit-learn's name."""
        return self.update(annotations, gold)

    def predict_proba(
        self, annotations: AnnotationsLike, *, unknown_workers: str = "average"
    ) -> pd.DataFrame:
        """Return the label distribution of every task, a frame task x class.

        A label unknown to ``fit`` is an error. A worker unknown to ``fit`` counts as the
        ``"average"`` one, is left out (``"ignore"``), or is an ``"error"``.
        """
        return as_frame(*self._infer(annotations, unknown_workers), self.classes_)

    def _infer(self, annotations: AnnotationsLike, unknown_workers: str) -> tuple[Posterior, Array]:
        """Return P(truth | labels) of other annotations, and the names of their tasks."""
        check_is_fitted(self)
        if unknown_workers not in UNKNOWN_WORKERS:
            raise ParameterError(
                explain(
                    f"unknown_workers={unknown_workers!r} is unknown.",
                    expected=", ".join(UNKNOWN_WORKERS),
                    fix="give unknown_workers='average'",
                )
            )
        data = as_annotations(annotations)
        names, idle = (self.workers_, self.classes_), vars(self).get("idle_", ())
        known, unknown = align_to_model(data, *names, unknown_workers, idle)
        if unknown:
            known = _with_unknown_worker(known)
        model = self._adapt(known, unknown_workers=bool(unknown))
        return _keep_gold(model._posterior(self._engine(known))), known.tasks

    def predict(
        self, annotations: AnnotationsLike, *, unknown_workers: str = "average"
    ) -> pd.Series:
        """Return the most probable label of every task, a series named ``agg_label``."""
        posterior, tasks = self._infer(annotations, unknown_workers)
        return name_labels(self._choose(posterior), tasks, self.classes_)

    def fit_predict(self, annotations: AnnotationsLike, gold: GoldLike = None) -> pd.Series:
        """Same as ``fit(annotations, gold).labels_``."""
        return self.fit(annotations, gold).labels_

    def fit_predict_proba(
        self, annotations: AnnotationsLike, gold: GoldLike = None
    ) -> pd.DataFrame:
        """Same as ``fit(annotations, gold).probas_``."""
        return self.fit(annotations, gold).probas_

    def score(self, annotations: AnnotationsLike, truth: GoldLike = None) -> float:
        """Return the share of tasks with a known truth whose label is right; ties count in part.

        In ``cross_val_score`` and ``GridSearchCV``, tasks are split: workers are learned from
        some tasks, and evaluated by their labels of others. There, truths are gold in training.

        Parameters
        ----------
        annotations : Annotations, frame, array, dict or path
            The labels to predict from.
        truth : mapping, Series, frame or array, optional
            True label by task, or one for each task in order; tasks without one are not scored.
            By default those that came with the annotations.
        """
        data = as_annotations(annotations)
        known = data.gold_labels if truth is None else truth
        place, true = find_truths({} if known is None else known, data)
        if not len(true):
            raise AnnotationError(
                explain(
                    "There are no truths to score by.",
                    expected="the true label of at least one task",
                    fix="score(annotations, truth); in cross_val_score, give truths as y",
                )
            )
        posterior, _ = self._infer(data[place], "average")
        unseen = warn_unseen_truths(true, self.classes_, "all predictions for them are wrong")
        right = share_right(posterior, np.maximum(locate(self.classes_, true), 0))
        return float(np.where(unseen, 0.0, right).mean())

    @property
    def labels_(self) -> pd.Series:
        self._refuse_streamed()
        kept: tuple[Posterior, pd.Series] | None = vars(self).get("_labels")
        if kept is None or kept[0] is not self.posterior_:
            labels = name_labels(self.label_codes_, self.tasks_, self.classes_)
            kept = self.__dict__["_labels"] = self.posterior_, labels
        return kept[1].copy()

    @property
    def label_codes_(self) -> Ints:
        """Class number of each task's label, as in ``classes_``; -1 for none."""
        self._refuse_streamed()
        return self._choose(self.posterior_)

    @property
    def probas_(self) -> pd.DataFrame:
        self._refuse_streamed()
        return as_frame(self.posterior_, self.tasks_, self.classes_)

    @abstractmethod
    def _fit(self, engine: Engine) -> Posterior:
        """Set the learned attributes; return P(truth | labels) of each task."""

    @abstractmethod
    def _posterior(self, engine: Engine) -> Posterior:
        """Return P(truth | labels) under the learned attributes, shape (n_tasks, n_classes)."""

    def _learn(self, sums: Sums, crowd: Floats) -> None:
        """Set the learned attributes of ``workers_`` from their sums, and from all workers'."""
        raise NotImplementedError

    def _take(self, votes: Annotations) -> Annotations:
        """Prepare new labels of an update for the method."""
        return votes

    def _count(self, engine: MemoryEngine, posterior: Floats) -> Floats:
        """Return what an update counts for each task when it assesses workers: its posterior."""
        return posterior

    def _learned(self) -> dict[str, Value]:
        live = {} if self._updates is None else self._updates.keep(self)
        return super()._learned() | live

    def _restore(self, learned: dict[str, Value]) -> None:
        ledger = learned.pop("ledger_", None)
        super()._restore(learned)
        if self._updates is not None and isinstance(ledger, Ledger):
            self._updates.reopen(self, ledger)

    def _average_task(self, rows: Floats) -> Floats:
        """Return the row for a task that was not fitted."""
        return rows.mean(axis=0)

    def _choose(self, posterior: Posterior) -> Ints:
        """Return each task's class number; the first of tied ones, ``-1`` for none."""
        return choose(posterior)

    def _refuse(self, data: Annotations) -> None:
        """Refuse annotations that the method cannot work with."""
        if self.traits.binary_only and data.n_classes > 2:
            raise AnnotationError(
                explain(
                    f"{type(self).__name__} works with two classes; these labels have "
                    f"{data.n_classes}.",
                    fix="choose a method for any number of classes, such as DawidSkene",
                )
            )

    def _note_order(self, classes: Array) -> None:
        """Log the order of the classes, if it matters and is not obvious."""
        if self.traits.ordinal and (order := describe_order(classes)):
            log.warning("%s: %s", type(self).__name__, order)

    def _adapt(self, data: Annotations, *, unknown_workers: bool) -> Self:
        """Make a shallow copy whose learned arrays have the rows of ``data``.

        With ``unknown_workers``, an average worker at the end represents all of them.
        """
        model, moved, idle = copy(self), {}, vars(self).get("idle_", ())
        if unknown_workers:
            for name, rows in self._worker_rows().items():
                heard = np.delete(rows, idle, axis=0) if len(idle) else rows
                moved[name] = np.concatenate([rows, heard.mean(axis=0, keepdims=True)])
        by_task = self._task_rows()
        place = locate(self.tasks_, data.tasks) if by_task else None  # -1 selects the last row
        for name, rows in by_task.items():
            moved[name] = np.concatenate([rows, self._average_task(rows)[None]])[place]
        model._restore(moved)
        return model

    def _refuse_streamed(self) -> None:
        """Refuse operations that would need all tasks in memory."""
        check_is_fitted(self)
        if isinstance(self.posterior_, StreamedPosterior):
            raise AnnotationError(
                explain(
                    f"This {type(self).__name__} was fitted to annotations on disk.",
                    fix="write labels with crowdwise.io.stream_labels(model, 'labels.parquet'), "
                    "or take them from posterior_.blocks()",
                )
            )


def by_worker(values: Floats, workers: Array, name: str = "skill") -> pd.Series:
    """Make a series with one value per worker."""
    return pd.Series(values, index=pd.Index(workers, name="worker"), name=name)


def _with_unknown_worker(annotations: Annotations) -> Annotations:
    """Append a last worker that represents all unknown ones."""
    workers = np.append(annotations.workers.astype(object), "unknown worker")
    return replace(annotations, workers=workers)


def _keep_gold(posterior: Posterior, gold: Ints | None = None) -> Posterior:
    """Return the posterior with gold set, as an array unless that is too large."""
    if not isinstance(posterior, CompactPosterior):
        return clamp(posterior, gold)
    known = posterior.clamp(gold)
    small = 8 * len(known) * len(known.prior) <= memory.LARGE
    return known.toarray() if small else known
