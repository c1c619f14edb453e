"""What every truth-inference method shares: validation, prediction, bookkeeping."""

from abc import ABC, abstractmethod
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from crowdwise.annotations import Annotations, find_labeled, refuse_empty
from crowdwise.annotations.names import locate
from crowdwise.base.params import checks_params
from crowdwise.errors import AnnotationError, ParameterError, explain
from crowdwise.inference.simplex import clamp, tied
from crowdwise.inference.sweep import posterior_of
from crowdwise.io import as_annotations, as_gold
from crowdwise.io.accept import align_to_model
from crowdwise.persist import Savable
from crowdwise.typing import Array, Floats, Ints

UNKNOWN_WORKERS = ("average", "ignore", "error")


@dataclass(frozen=True)
class Traits:
    """What a method promises, for the laws and the documentation to read."""

    binary_only: bool = False  # works with two classes at most
    monotone: bool = False  # objective_ never falls
    stochastic: bool = False  # has a random_state that matters
    keeps_unanimity: bool = True  # a crowd of one mind keeps its labels
    weighted: bool = True  # a weight of two equals a repeated row
    resists_noise: bool = True  # a worker who labels at random moves little
    learns_from_gold: bool = False  # gold labels inform more than their own tasks
    ordinal: bool = False  # the order of the classes matters, though not its direction
    silence_counts: bool = False  # saying nothing of a task is an answer, also if all do


class Aggregator(Savable, BaseEstimator, ABC):
    """Turn a crowd's labels into one distribution over the classes per task.

    A method file fills in ``_fit`` and ``_posterior``; the rest lives here. Learned arrays
    with a row per worker or per task are named in ``_per_worker`` and ``_per_task``, so that
    ``predict`` can fit them to other annotations.

    Attributes
    ----------
    tasks_, workers_, classes_ : ndarray
        Names, in the order of every learned array.
    posterior_ : ndarray of shape (n_tasks, n_classes)
        P(truth | labels) of the tasks that were fitted.
    labels_ : Series
        Most probable label of each task, named ``agg_label``.
    probas_ : DataFrame
        ``posterior_`` with its names.
    """

    traits: ClassVar[Traits] = Traits()
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}
    _per_worker: ClassVar[tuple[str, ...]] = ()
    _per_task: ClassVar[tuple[str, ...]] = ()

    @checks_params
    def fit(self, annotations: Any, gold: Any = None) -> Self:
        """Learn the workers from their labels.

        Parameters
        ----------
        annotations : Annotations, frame, array, dict or path
            Whatever :func:`crowdwise.io.as_annotations` takes. Tasks without labels teach
            nothing; they get what the method says of a task that nobody has labeled.
        gold : mapping, Series, frame or array, optional
            Known truths of some tasks. They are kept, and methods that can learn from them do.
        """
        data = as_annotations(annotations)
        self._refuse(data)
        codes = None if gold is None else as_gold(gold, data)
        self.tasks_, self.workers_, self.classes_ = data.tasks, data.workers, data.classes
        told = find_labeled(data) if codes is None else find_labeled(data) | (codes >= 0)
        everything = self.traits.silence_counts or told.all()
        fitted = self._fit(data, codes) if everything else self._fit_told(data, codes, told)
        self.posterior_ = clamp(fitted, codes)
        return self

    def _fit_told(self, data: Annotations, gold: Ints | None, told: Array) -> Floats:
        """Fit to the tasks that have a label or gold; the others do not count."""
        self.tasks_ = data.tasks[told]
        posterior = np.empty((data.n_tasks, data.n_classes))
        posterior[told] = self._fit(data[told], None if gold is None else gold[told])
        everyone = self._adapted(data, strangers=False)
        posterior[~told] = everyone._posterior(data)[~told]
        for name in self._per_task:
            setattr(self, name, getattr(everyone, name))
        self.tasks_ = data.tasks
        return posterior

    def predict_proba(self, annotations: Any, *, unknown_workers: str = "average") -> pd.DataFrame:
        """Label distribution of every task, a frame task x class.

        A label unknown to ``fit`` is an error. A worker unknown to ``fit`` counts as the
        ``"average"`` one, is left out (``"ignore"``), or is an ``"error"``.
        """
        check_is_fitted(self)
        if unknown_workers not in UNKNOWN_WORKERS:
            raise ParameterError(
                f"unknown_workers={unknown_workers!r} is unknown.\n"
                f"  expected: {', '.join(UNKNOWN_WORKERS)}"
            )
        data = as_annotations(annotations)
        known, strangers = align_to_model(data, self.workers_, self.classes_, unknown_workers)
        if strangers:
            known = _with_stranger(known)
        return self._frame(self._adapted(known, strangers)._posterior(known), known.tasks)

    def predict(self, annotations: Any, *, unknown_workers: str = "average") -> pd.Series:
        """Most probable label of every task, a series named ``agg_label``."""
        frame = self.predict_proba(annotations, unknown_workers=unknown_workers)
        return self._series(frame.to_numpy(), frame.index)

    def fit_predict(self, annotations: Any, gold: Any = None) -> pd.Series:
        """Same as ``fit(annotations, gold).labels_``."""
        return self.fit(annotations, gold).labels_

    def fit_predict_proba(self, annotations: Any, gold: Any = None) -> pd.DataFrame:
        """Same as ``fit(annotations, gold).probas_``."""
        return self.fit(annotations, gold).probas_

    @property
    def labels_(self) -> pd.Series:
        check_is_fitted(self)
        return self._series(self.posterior_, self.tasks_)

    @property
    def probas_(self) -> pd.DataFrame:
        check_is_fitted(self)
        return self._frame(self.posterior_, self.tasks_)

    @abstractmethod
    def _fit(self, annotations: Annotations, gold: Ints | None) -> Floats:
        """Set the learned attributes; return P(truth | labels) of each task."""

    @abstractmethod
    def _posterior(self, annotations: Annotations) -> Floats:
        """P(truth | labels) under the learned attributes, shape (n_tasks, n_classes)."""

    def _choose(self, posterior: Floats) -> Ints:
        """Class number of each task's label; the first of tied ones, ``-1`` for none."""
        return tied(posterior).argmax(axis=1)

    def _refuse(self, data: Annotations) -> None:
        refuse_empty(data)
        if self.traits.binary_only and data.n_classes > 2:
            raise AnnotationError(
                explain(
                    f"{type(self).__name__} works with two classes; these labels have "
                    f"{data.n_classes}.",
                    fix="choose a method for any number of classes, such as DawidSkene",
                )
            )

    def _adapted(self, data: Annotations, strangers: bool) -> Self:
        """A shallow copy whose learned arrays have the rows of ``data``."""
        model = copy(self)
        for name in self._per_worker if strangers else ():
            rows = getattr(self, name)
            setattr(model, name, np.concatenate([rows, rows.mean(axis=0, keepdims=True)]))
        place = locate(self.tasks_, data.tasks) if self._per_task else None
        for name in self._per_task:
            rows = getattr(self, name)
            setattr(model, name, np.concatenate([rows, rows.mean(axis=0, keepdims=True)])[place])
        return model

    def _frame(self, posterior: Floats, tasks: Any) -> pd.DataFrame:
        index = pd.Index(tasks, name="task")
        return pd.DataFrame(posterior, index=index, columns=pd.Index(self.classes_, name="label"))

    def _series(self, posterior: Floats, tasks: Any) -> pd.Series:
        codes = self._choose(posterior)
        labels = pd.Series(self.classes_[codes], index=pd.Index(tasks, name="task"))
        if (codes < 0).any():
            labels = labels.astype(object)
            labels[codes < 0] = None
        return labels.rename("agg_label")


class ConfusionModel(Aggregator):
    """A method whose workers have ``confusion_[worker, truth, label]`` and truths ``prior_``."""

    _per_worker: ClassVar[tuple[str, ...]] = ("confusion_",)
    prior_: Floats
    confusion_: Floats

    @property
    def skills_(self) -> pd.Series:
        """Probability that each worker is right on a task drawn from ``prior_``."""
        check_is_fitted(self)
        right = np.einsum("wkk,k->w", self.confusion_, self.prior_)
        return by_worker(right, self.workers_)

    def _posterior(self, annotations: Annotations) -> Floats:
        return posterior_of(annotations, self.prior_, self.confusion_)


def by_worker(values: Floats, workers: Array, name: str = "skill") -> pd.Series:
    """A series with one value per worker."""
    return pd.Series(values, index=pd.Index(workers, name="worker"), name=name)


def _with_stranger(annotations: Annotations) -> Annotations:
    """The annotations with a last worker that stands for all unknown ones."""
    workers = np.append(annotations.workers.astype(object), "unknown worker")
    return replace(annotations, workers=workers)
