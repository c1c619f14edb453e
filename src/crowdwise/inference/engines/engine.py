"""The interface between a truth-inference method and the machine it runs on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, Self, TypeAlias

import numpy as np

from crowdwise.annotations import Annotations, Pairs
from crowdwise.inference.compact import CompactPosterior
from crowdwise.inference.engines.group import Group
from crowdwise.inference.engines.kernels import NO_TASKS
from crowdwise.typing import Array, Floats, Ints

CELL = 46  # bytes per cell of workers x classes x classes: tables of a step, and their sums
Spread = Callable[[Floats, int], Floats]  # from the shares of a block and its first task's number
Posterior: TypeAlias = Floats | CompactPosterior


@dataclass(frozen=True)
class Sums:
    """The sums of a sweep over tasks; sums of blocks of tasks can be added."""

    evidence: float  # sum over tasks of log P(labels)
    truths: Floats  # (truth,): expected number of tasks of each truth
    counts: Floats  # (worker, truth, label): expected label counts

    def __add__(self, other: Sums) -> Sums:
        return Sums(
            self.evidence + other.evidence, self.truths + other.truths, self.counts + other.counts
        )


@dataclass(frozen=True)
class Sweep(Sums):
    """The sums of a sweep together with the posterior."""

    posterior: Floats  # (task, truth), empty unless asked for


@dataclass(frozen=True)
class PairSums:
    """Like :class:`Sums`, with counts only for the (worker, label) pairs of ``Engine.pairs``."""

    evidence: float
    truths: Floats  # (truth,)
    counts: Floats  # (pair, truth)

    def __add__(self, other: PairSums) -> PairSums:
        return PairSums(
            self.evidence + other.evidence, self.truths + other.truths, self.counts + other.counts
        )


@dataclass(frozen=True)
class CoinSums:
    """The sums of a sweep if workers are right or wrong, and errors are spread evenly."""

    evidence: float  # sum over tasks of log P(labels)
    truths: Floats  # (truth,): expected number of tasks of each truth
    right: Floats  # (worker,) or (worker, label): expected number of right labels
    given: Floats  # the same of all labels

    @classmethod
    def of(cls, sums: Sums) -> CoinSums:
        """Sum right and given labels of each worker, from counts of (worker, truth, label)."""
        right, given = np.einsum("wkk->w", sums.counts), sums.counts.sum(axis=(1, 2))
        return cls(sums.evidence, sums.truths, right, given)

    def __add__(self, other: CoinSums) -> CoinSums:
        return CoinSums(
            self.evidence + other.evidence,
            self.truths + other.truths,
            self.right + other.right,
            self.given + other.given,
        )


class Engine(Protocol):
    """The annotations, wherever they are, as blocks of tasks to sweep over.

    A method with a table ``log P(label | truth)`` per worker sends its tables and receives
    sums over all tasks; it never holds an array with a row per task. Gold labels belong to the
    engine: all that it returns respects them.

    Truths are the classes; or each class has equally many consecutive truths (its subtypes).
    """

    @property
    def workers(self) -> Array:
        """Names of the workers, in the order of every table."""
        ...

    @property
    def n_tasks(self) -> int: ...

    @property
    def n_workers(self) -> int: ...

    @property
    def n_classes(self) -> int: ...

    @property
    def pairs(self) -> Pairs:
        """The (worker, label) pairs that have a row in tables and sums by pair."""
        ...

    @property
    def n_threads(self) -> int | None:
        """Number of threads to use; by default one per core."""
        ...

    @property
    def group(self) -> Group:
        """The ranks that share the tasks; a single one holds all of them."""
        ...

    def labels_per_worker(self) -> Ints:
        """Number of annotations by each worker."""
        ...

    def tally_votes(self, spread: Spread | None = None) -> Sums:
        """Count truths and labels with each task's share of labels as its posterior.

        ``spread`` turns the shares of a block of tasks, (task, class), into another posterior,
        (task, truth). It also gets the number of the block's first task, and is called for blocks
        in any order, so random numbers must be drawn by task number.
        """
        ...

    def sweep(self, log_prior: Floats, log_confusion: Floats, *, hard: bool = False) -> Sums:
        """Run one E-step, and count what the next M-step needs.

        Parameters
        ----------
        log_prior : ndarray of shape (n_truths,)
            Log prior of each truth.
        log_confusion : ndarray of shape (n_workers, n_truths, n_classes)
            Log P(label | truth) of each worker; need not be normalized.
        hard : bool, default=False
            Give all of a task's mass to its best truth, shared between ties. Rounding does
            not break a tie: sums of the same terms in another order count as equal.
        """
        ...

    def tally_pairs(self, spread: Spread | None = None) -> PairSums:
        """Do :meth:`tally_votes` with counts by pair."""
        ...

    def sweep_pairs(self, log_prior: Floats, table: Floats, *, hard: bool = False) -> PairSums:
        """Do :meth:`sweep` with a table (pair, truth) and counts by pair.

        Work and memory grow with the pairs that occur, however many classes there are.
        """
        ...

    def tally_coins(self) -> CoinSums:
        """Do :meth:`tally_votes` for workers who are right or wrong."""
        ...

    def sweep_coins(
        self, log_prior: Floats, right: Floats, wrong: Floats, *, hard: bool = False
    ) -> CoinSums:
        """Do :meth:`sweep` with log P(label | truth) ``right[worker]`` or ``wrong[worker]``.

        Both may depend on the given label and have the shape (worker, label), as the sums then
        do.

        With very many classes there is no table; a hard sweep assumes a uniform prior there.
        """
        ...

    def coin_posterior(self, log_prior: Floats, right: Floats, wrong: Floats) -> Posterior:
        """Return P(class | labels) of each task under the values of :meth:`sweep_coins`."""
        ...

    def posterior(self, log_prior: Floats, log_confusion: Floats) -> Floats:
        """Return P(class | labels) of each task under the tables of a sweep, (task, class)."""
        ...

    def pair_posterior(self, log_prior: Floats, table: Floats) -> Floats:
        """Do the same under the tables of :meth:`sweep_pairs`."""
        ...

    def shares(self, weights: Floats | None = None, *, soft: bool = True) -> Posterior:
        """Return each class's share of the weight of each task's labels, (task, class).

        Workers count by ``weights``, or equally. Unless ``soft``, labels that are
        distributions count for their best class.
        """
        ...

    def signed_shares(self, weights: Floats) -> Posterior:
        """Do :meth:`shares` with negative weights, which count for all classes but the label.

        If all workers of a task have no weight, they count equally.
        """
        ...

    @property
    def own_tasks(self) -> tuple[int, int]:
        """Return the numbers of the first task on this rank and the first after its last."""
        ...

    def sum_blocks(
        self, work: Callable[..., float | None], shapes: Sequence[tuple[int, ...]]
    ) -> tuple[float, list[Floats]]:
        """Sum over all blocks what a method's own kernel computes in each.

        ``work(block, *sums)`` adds to arrays of these shapes, which are 0 at first, and returns
        its part of the first number. It gets a
        :class:`~crowdwise.inference.engines.kernels.Block`, and runs in threads.
        """
        ...

    def fill_blocks(self, work: Callable[..., None]) -> Posterior:
        """Return a posterior, (task, class), with rows filled in by ``work(block, rows)``."""
        ...

    def gather_blocks(self, work: Callable[..., tuple[Array, ...]]) -> list[Array]:
        """Join the results of ``work(block)`` for all blocks, the same on every rank.

        It returns arrays of numbers of 8 bytes, with rows for few of the tasks, and those of
        a block without tasks too.
        """
        ...

    def reweighted(
        self, weights: Floats, hidden: Ints = NO_TASKS, n_threads: int | None = None
    ) -> Self:
        """Return the same annotations with workers weighted by these positive numbers.

        A worker of weight two counts like one whose rows are all there twice; but what is
        tallied starts from the shares of plain labels. Weights enter the tables that are sent and
        the counts that come back, so that a sweep costs what it costs without them. The truths
        of ``hidden`` tasks are no longer known.
        """
        ...

    def collect(self) -> tuple[Annotations, Ints | None]:
        """Return all annotations in memory, and the gold class of each task (-1 for none).

        For methods that are not sweeps (``Traits(blockwise=False)``).
        """
        ...
