"""Kinds of workers, and the probabilities of their labels."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from crowdwise.errors import ParameterError, explain
from crowdwise.inference.simplex import one_coin_confusion
from crowdwise.typing import Floats

Share = float | tuple[float, float]  # a probability, or the range to draw it from


@dataclass(frozen=True, kw_only=True)
class Worker(ABC):
    """A worker. Each kind implements :meth:`draw`.

    If a kind takes a probability, a pair is a range: every worker draws its own from it when
    the crowd is simulated, so ``5 * [OneCoinWorker((0.7, 0.9))]`` are five different
    workers.

    Parameters
    ----------
    activity : float, default=1
        How often this worker is drawn for a task, relative to the others.
    abstention : float or sequence of float, default=0
        Probability that it skips a task that it was given, or one per true class. A task of
        difficulty ``d`` is kept with probability ``(1 - abstention) ** d``.
    """

    activity: float = 1.0
    abstention: float | Sequence[float] = 0.0
    kind: ClassVar[str]
    heeds_difficulty: ClassVar[bool] = True

    @abstractmethod
    def draw(self, prior: Floats, rng: np.random.RandomState) -> tuple[Floats, Floats]:
        """Draw P(label | truth) at its first and last annotation, each (truth, label)."""

    def copies(self) -> tuple[int, float]:
        """Return the worker it copies, -1 for none, and how often."""
        return -1, 0.0

    def on_tasks(self) -> Floats | None:
        """Return P(label) on every task, (task, label), if it looks at the task itself."""
        return None


@dataclass(frozen=True)
class OneCoinWorker(Worker):
    """Is right with the same probability on every class, and errs uniformly.

    Examples
    --------
    >>> first, last = OneCoinWorker(0.8).draw(np.ones(3) / 3, np.random.RandomState(0))
    >>> first[1].round(2).tolist()
    [0.1, 0.8, 0.1]
    """

    accuracy: Share = (0.7, 0.95)
    kind: ClassVar[str] = "one-coin"

    def __post_init__(self) -> None:
        check_share("accuracy", self.accuracy)

    def draw(self, prior: Floats, rng: np.random.RandomState) -> tuple[Floats, Floats]:
        return _constant(one_coin_confusion([draw_share(self.accuracy, rng)], len(prior))[0])


@dataclass(frozen=True)
class ConfusedWorker(Worker):
    """Has the confusion matrix ``confusion``: P(label | truth), the axes truth and label."""

    confusion: ArrayLike
    kind: ClassVar[str] = "confused"

    def draw(self, prior: Floats, rng: np.random.RandomState) -> tuple[Floats, Floats]:
        matrix = np.asarray(self.confusion, dtype=np.float64)
        if matrix.shape != (len(prior), len(prior)) or not is_distribution(matrix):
            raise ParameterError(
                explain(
                    f"The confusion of a worker has shape {matrix.shape}.",
                    first=f"its rows sum to {matrix.sum(axis=-1).round(3).tolist()}",
                    expected=f"{len(prior)} rows of {len(prior)} probabilities that sum to 1",
                    fix="give a row of probabilities for each truth",
                )
            )
        return _constant(matrix)


@dataclass(frozen=True)
class DirichletWorker(Worker):
    """Errs in its own way: every row of its confusion matrix is drawn around a diagonal.

    Row ``k`` is Dirichlet with mean ``accuracy`` on class ``k`` and the rest spread uniformly;
    with a high ``concentration`` rows stay near that mean, with a low one errors are habitual.
    """

    accuracy: Share = (0.6, 0.9)
    concentration: float = 10.0
    kind: ClassVar[str] = "confused"

    def __post_init__(self) -> None:
        check_share("accuracy", self.accuracy)
        if not self.concentration > 0:
            raise ParameterError(
                f"concentration={self.concentration}.\n  expected: more than 0"
                "\n  fix:      give concentration=10"
            )

    def draw(self, prior: Floats, rng: np.random.RandomState) -> tuple[Floats, Floats]:
        mean = one_coin_confusion([draw_share(self.accuracy, rng)], len(prior))[0]
        # A gamma per cell, scaled by row, is a Dirichlet; the tiny share keeps zeros legal.
        weight = rng.gamma(self.concentration * mean + 1e-9) + 1e-300
        return _constant(weight / weight.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class Spammer(Worker):
    """Labels without looking: its labels do not depend on the truth.

    ``style`` is ``random`` (every class equally likely), ``one label`` (always ``label``) or
    ``prior`` (classes as frequent as the true ones, the hardest to detect).
    """

    style: str = "random"
    label: int = 0
    kind: ClassVar[str] = "spammer"
    heeds_difficulty: ClassVar[bool] = False
    STYLES: ClassVar[tuple[str, ...]] = ("random", "one label", "prior")

    def __post_init__(self) -> None:
        if self.style not in self.STYLES:
            raise ParameterError(
                explain(
                    f"There is no spammer style {self.style!r}.",
                    expected=", ".join(self.STYLES),
                    fix="choose one of these",
                )
            )

    def draw(self, prior: Floats, rng: np.random.RandomState) -> tuple[Floats, Floats]:
        n_classes = len(prior)
        if not 0 <= self.label < n_classes:
            raise ParameterError(
                f"A spammer's label is {self.label}.\n  expected: 0 to {n_classes - 1}"
                "\n  fix:      count classes from 0"
            )
        rows = {"random": np.full(n_classes, 1 / n_classes), "prior": prior}
        return _constant(
            np.tile(rows.get(self.style, np.eye(n_classes)[self.label]), (n_classes, 1))
        )


@dataclass(frozen=True)
class Adversary(Worker):
    """Is right less often than chance; by default half as often."""

    accuracy: Share | None = None
    kind: ClassVar[str] = "adversary"

    def __post_init__(self) -> None:
        if self.accuracy is not None:
            check_share("accuracy", self.accuracy)

    def draw(self, prior: Floats, rng: np.random.RandomState) -> tuple[Floats, Floats]:
        chance = 1 / len(prior)
        accuracy = 0.5 * chance if self.accuracy is None else draw_share(self.accuracy, rng)
        if accuracy >= chance:
            raise ParameterError(
                explain(
                    f"An adversary cannot have an accuracy of {accuracy:.3g}.",
                    expected=f"less than chance, {chance:.3g} of {len(prior)} classes",
                    fix="give a lower accuracy, or use OneCoinWorker",
                )
            )
        return _constant(one_coin_confusion([accuracy], len(prior))[0])


@dataclass(frozen=True)
class Drifter(Worker):
    """Changes over time: accuracy moves linearly from ``first`` to ``last``.

    Falling accuracy is fatigue, rising accuracy is learning. Time is the worker's own
    sequence of annotations.
    """

    first: Share = 0.95
    last: Share = 0.6
    kind: ClassVar[str] = "drifter"

    def __post_init__(self) -> None:
        check_share("first", self.first)
        check_share("last", self.last)

    def draw(self, prior: Floats, rng: np.random.RandomState) -> tuple[Floats, Floats]:
        ends = [draw_share(self.first, rng), draw_share(self.last, rng)]
        first, last = one_coin_confusion(ends, len(prior))
        return first, last


@dataclass(frozen=True)
class Colluder(OneCoinWorker):
    """Copies a leader with probability ``copying``, and otherwise labels on its own.

    ``leader`` is the leader's position among the workers. If the leader has not labeled a
    task, all who copy it there give the same label, the one it would have given.
    """

    accuracy: Share = 0.6
    leader: int = 0
    copying: float = 0.9
    kind: ClassVar[str] = "colluder"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_share("copying", self.copying)

    def copies(self) -> tuple[int, float]:
        return self.leader, self.copying


@dataclass(frozen=True)
class ModelWorker(Worker):
    """A classifier among the workers: draws labels from its probabilities for each task.

    ``proba`` is the result of ``predict_proba``, a row for every task; ``truth`` has the class
    numbers of the same tasks, which determine its confusion matrix. Probabilities of 0 and 1
    give the model's own labels, which are the same in every crowd.
    """

    proba: ArrayLike
    truth: ArrayLike
    kind: ClassVar[str] = "model"
    heeds_difficulty: ClassVar[bool] = False

    def draw(self, prior: Floats, rng: np.random.RandomState) -> tuple[Floats, Floats]:
        rows, truth = self.on_tasks(), np.asarray(self.truth)
        if rows.shape != (len(truth), len(prior)) or not is_distribution(rows):
            raise ParameterError(
                explain(
                    f"The proba of a model has shape {rows.shape}.",
                    expected=f"{len(prior)} probabilities for each of {len(truth):,} tasks",
                    fix="predict a row for each task",
                )
            )
        total = np.zeros((len(prior), len(prior)))
        np.add.at(total, truth, rows)
        share = total.sum(axis=1, keepdims=True)
        return _constant(np.where(share > 0, total / np.maximum(share, 1e-300), 1 / len(prior)))

    def on_tasks(self) -> Floats:
        return np.asarray(self.proba, dtype=np.float64)


def draw_share(share: Share, rng: np.random.RandomState) -> float:
    """Return the number itself, or one drawn uniformly from a range."""
    return float(rng.uniform(*share)) if isinstance(share, tuple) else float(share)


def check_share(name: str, share: Share) -> None:
    """Refuse anything but a probability or a range of them."""
    ends = share if isinstance(share, tuple) else (share, share)
    numbers = len(ends) == 2 and all(isinstance(end, Real) for end in ends)
    if not numbers or not 0 <= ends[0] <= ends[1] <= 1:
        raise ParameterError(
            explain(
                f"{name}={share!r} is not a probability.",
                expected="a number from 0 to 1, or a pair (low, high) of them",
                fix="divide percentages by 100",
            )
        )


def is_distribution(values: Floats) -> bool:
    """Return whether the last axis holds probabilities that sum to one."""
    return bool((values >= 0).all() and np.allclose(values.sum(axis=-1), 1))


def _constant(confusion: Floats) -> tuple[Floats, Floats]:
    return confusion, confusion
