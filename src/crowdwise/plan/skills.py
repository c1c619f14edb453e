"""How well each worker would do on each task, and whether the worker would answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pandas as pd

from crowdwise.base.fitting import order_by_name, refuse_other_rows
from crowdwise.errors import ParameterError, explain
from crowdwise.plan.other_labels import with_accuracy
from crowdwise.plan.outlook import Outlook
from crowdwise.typing import Array, FeaturesLike, Floats, Ints

# A function of task numbers and worker rows, one of each per pair, that returns P(label | truth)
# of each pair, (pair, truth, label), and the probability that the worker answers, (pair,).
PairSkills = Callable[[Ints, Ints], tuple[Floats, Floats]]


class Skills(ABC):
    """Predictions of how well workers would do on tasks."""

    @abstractmethod
    def of(self, outlook: Outlook, workers: Ints) -> PairSkills:
        """Return a function for pairs of tasks and these workers, by number; -1 is anyone."""


@dataclass(frozen=True)
class PlainSkills(Skills):
    """Skill that is equal on all tasks of a class, as the labels so far suggest it.

    For each pair of task and worker it is drawn from what is still possible (Thompson sampling):
    whoever may be the best is asked as often as this is probable.
    """

    def of(self, outlook: Outlook, workers: Ints) -> PairSkills:
        draw = outlook.drawing()
        return lambda _, row: (draw(workers[row]), np.ones(len(row)))


class Competence(Protocol):
    """A learner that predicts who is good at what, such as ``LIA``."""

    workers_: Array

    def predict_worker_accuracy(self, X: FeaturesLike, workers: Array) -> Floats:
        """Return P(right) of each worker on each row, (row, worker)."""
        ...


@dataclass(frozen=True, eq=False)
class PredictedSkills(Skills):
    """Predictions of a fitted learner from tasks' features, for workers it knows.

    Parameters
    ----------
    learner : LIA, or another learner with ``predict_worker_accuracy``
        A fitted learner. If it also has ``predict_response``, gains count by P(answer).
    X : array or frame
        Features of the planner's tasks: a row for each, in their order or indexed by their names.

    Notes
    -----
    Errors are spread over the wrong labels as in :class:`PlainSkills`.
    """

    learner: Competence
    X: FeaturesLike

    def of(self, outlook: Outlook, workers: Ints) -> PairSkills:
        learner, order = self.learner, task_rows(self.X, outlook)
        if not hasattr(learner, "workers_") or not hasattr(learner, "predict_worker_accuracy"):
            raise ParameterError(
                explain(
                    f"This {type(learner).__name__} does not predict who is good at what.",
                    expected="a fitted learner with predict_worker_accuracy, such as LIA",
                    fix="fit it first: LIA().fit(X, annotations)",
                )
            )
        draw = outlook.drawing()
        named = [i for i, worker in enumerate(workers) if worker >= 0]
        names = outlook.votes.workers[workers[named]]
        known = np.isin(names, learner.workers_)
        X = self.X.iloc[order] if isinstance(self.X, pd.DataFrame) else self.X
        column = np.full(len(workers), -1)
        column[np.array(named, dtype=int)[known]] = np.arange(known.sum())
        right = np.asarray(learner.predict_worker_accuracy(X, names[known]))
        ask = getattr(learner, "predict_response", None)
        response = np.ones_like(right)
        if ask is not None and getattr(learner, "response_", None) is not None:
            response = np.asarray(ask(X, names[known]))

        def skills(task: Ints, row: Ints) -> tuple[Floats, Floats]:
            confusion, answers, at = draw(workers[row]), np.ones(len(row)), column[row]
            given = at >= 0
            answers[given] = response[task[given], at[given]]
            confusion[given] = with_accuracy(confusion[given], right[task[given], at[given]])
            return confusion, answers

        return skills


def task_rows(X: FeaturesLike, outlook: Outlook) -> Ints:
    """Return the row of each task in X: by name, if X is a frame indexed by names of tasks."""
    tasks = outlook.votes.tasks
    order = order_by_name(X, tasks)
    if order is not None:
        return order
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X) if hasattr(X, "__len__") else 0
    if n_rows != len(tasks):
        refuse_other_rows(n_rows, tasks)
    return np.arange(n_rows)
