"""The behavior of a crowd's workers, as arrays with one row per worker."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from crowdwise.errors import ParameterError, explain
from crowdwise.simulate.workers import Worker, is_distribution
from crowdwise.typing import Array, Floats, Ints


@dataclass(frozen=True)
class Behavior:
    """P(label | truth, worker, progress, difficulty), and who copies and who abstains.

    Attributes
    ----------
    kinds : ndarray of shape (n_workers,)
        The kind of each worker, such as ``spammer``.
    first, last : ndarray of shape (n_workers, n_classes, n_classes)
        P(label | truth) at a worker's first and last annotation; worker, truth, label.
    heeds_difficulty : ndarray of shape (n_workers,)
        Whether hard tasks move a worker closer to chance.
    leader, copying : ndarray of shape (n_workers,)
        The worker that each one copies (-1: nobody), and how often.
    abstention : ndarray of shape (n_workers, n_classes)
        Probability that a worker skips a task of each class.
    activity : ndarray of shape (n_workers,)
        How often a worker is drawn for a task.
    on_tasks : dict from worker to ndarray of shape (n_tasks, n_classes)
        P(label) of workers who look at the task itself, such as models.
    """

    kinds: Array
    first: Floats
    last: Floats
    heeds_difficulty: Array
    leader: Ints
    copying: Floats
    abstention: Floats
    activity: Floats
    on_tasks: dict[int, Floats] = field(default_factory=dict)

    @classmethod
    def of_confusion(cls, confusion: ArrayLike, kinds: ArrayLike = "confused") -> Self:
        """Make workers who are described fully by their confusion matrices."""
        table = np.asarray(confusion, dtype=np.float64)
        square = table.ndim == 3 and table.shape[1] == table.shape[2]
        if not square or not is_distribution(table):
            raise ParameterError(
                explain(
                    f"The confusion of shape {table.shape} is not P(label | truth).",
                    expected="the shape (worker, truth, label), and rows that sum to 1",
                    fix="divide each row by its sum",
                )
            )
        n_workers, n_classes, _ = table.shape
        kind: Array = np.broadcast_to(np.asarray(kinds, dtype=object), n_workers)
        return cls(
            kind,
            table,
            table,
            kind != "spammer",
            np.full(n_workers, -1),
            np.zeros(n_workers),
            np.zeros((n_workers, n_classes)),
            np.ones(n_workers),
        )

    @classmethod
    def of_workers(
        cls, workers: Sequence[Worker], prior: Floats, rng: np.random.RandomState
    ) -> Self:
        """Draw what these workers leave open, and stack them."""
        check_workers(workers)
        ends = np.array([worker.draw(prior, rng) for worker in workers])
        copies = np.array([worker.copies() for worker in workers])
        return cls(
            np.array([worker.kind for worker in workers], dtype=object),
            ends[:, 0],
            ends[:, 1],
            np.array([worker.heeds_difficulty for worker in workers]),
            copies[:, 0].astype(int),
            copies[:, 1],
            np.array([check_abstention(worker.abstention, len(prior)) for worker in workers]),
            np.array([worker.activity for worker in workers], dtype=np.float64),
            {
                j: rows
                for j, worker in enumerate(workers)
                if (rows := worker.on_tasks()) is not None
            },
        )

    @property
    def confusion(self) -> Floats:
        """P(label | truth) at difficulty one, averaged over a worker's annotations.

        For a copying worker, of the resulting labels, copied ones included.
        """
        own = (self.first + self.last) / 2
        share = self.copying[:, None, None]
        return np.where(share > 0, share * own[self.leader] + (1 - share) * own, own)

    def chances(
        self, worker: Ints, task: Ints, truth: Ints, progress: ArrayLike, difficulty: Floats
    ) -> Floats:
        """Return P(label) of each annotation, before any copying; (annotation, label).

        ``truth`` and ``difficulty`` are those of all tasks; ``progress`` goes from 0 at a
        worker's first annotation to 1 at the last. Difficulty ``d`` divides all log-odds by
        ``d``; with two classes this is GLAD's law.
        """
        first, last = self.first[worker, truth[task]], self.last[worker, truth[task]]
        rows: Floats = first + np.asarray(progress)[..., None] * (last - first)
        strength = np.where(self.heeds_difficulty[worker], 1 / difficulty[task], 1.0)
        rows = rows if (strength == 1).all() else temper(rows, strength)
        for model, own in self.on_tasks.items():
            rows[worker == model] = own[task[worker == model]]
        return rows

    def stays(self, worker: Ints, truth: Ints, difficulty: Floats) -> Floats:
        """Return the probability that each assigned annotation is given at all."""
        stay: Floats = (1 - self.abstention[worker, truth]) ** difficulty
        return stay


def temper(rows: Floats, strength: Floats) -> Floats:
    """Return probabilities whose log-odds are ``strength`` times those of ``rows``."""
    with np.errstate(divide="ignore"):
        log_odds = np.log(rows) - np.log(rows.max(axis=1, keepdims=True))
    power = np.exp(strength[:, None] * log_odds)
    scaled: Floats = power / power.sum(axis=1, keepdims=True)
    return scaled


def check_abstention(share: ArrayLike, n_classes: int) -> Floats:
    """Return one probability per class, from one for all or one for each."""
    shares = np.asarray(share, dtype=np.float64)
    if shares.shape not in {(), (n_classes,)} or not ((shares >= 0) & (shares <= 1)).all():
        raise ParameterError(
            explain(
                f"abstention={share!r} cannot be used.",
                expected=f"a number from 0 to 1, or {n_classes} of them, one per class",
                fix="give abstention=0.1",
            )
        )
    return np.broadcast_to(shares, n_classes)


def check_workers(workers: Sequence[Worker]) -> None:
    """Refuse a crowd that is empty, contains anything but workers, or has invalid leaders."""
    others = [worker for worker in workers if not isinstance(worker, Worker)]
    if others or not workers:
        raise ParameterError(
            explain(
                "Not all of the workers are a Worker." if others else "There are no workers.",
                first=repr(others[0]) if others else "",
                expected="a list of workers, such as 5 * [OneCoinWorker(0.8)]",
                fix="make each with a class of crowdwise.simulate",
            )
        )
    leaders = [worker.copies()[0] for worker in workers]
    for place, leader in enumerate(leaders):
        if leader != -1 and not (0 <= leader < len(workers) and leaders[leader] == -1):
            raise ParameterError(
                explain(
                    f"Worker {place} copies worker {leader}.",
                    expected=f"a leader from 0 to {len(workers) - 1} who copies nobody",
                    fix="let it copy a worker who copies nobody",
                )
            )
