"""Which tasks are compared: groups of tasks, drawn as needed.

First the tasks of one fit (:class:`GroupTasks`), which provide training with batches; then the
parts that define the groups, and the samplers that draw them. A part such as
:class:`RandomGroups` describes the groups, and its sampler draws them during a fit:
``draw(pool, n, generator)`` returns ``n`` rows of task numbers. Groups are never listed beyond
the requested batch, and there is no loop over tasks or groups.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np
import torch
from sklearn.base import BaseEstimator
from torch import Tensor, nn

from crowdwise.annotations.names import locate
from crowdwise.base.params import Part, at_least
from crowdwise.errors import AnnotationError, ParameterError, explain, listing
from crowdwise.nets.features import Features, rows_at_once
from crowdwise.nets.loop import ALONE, Alone
from crowdwise.nets.modules import EmbedNet
from crowdwise.nets.objective import Checkpoints
from crowdwise.nets.training import Training
from crowdwise.typing import Array, Ints

HELD_GROUPS = 2048  # groups of held-out tasks for measuring the loss
MOST_GROUPS = 60_000  # per epoch, if the number of pairs is not specified otherwise


@dataclass(frozen=True)
class Pool:
    """The tasks that may be drawn, sorted by class."""

    order: Tensor  # (place,): task numbers
    start: Tensor  # (class,): place of the first task of each class
    size: Tensor  # (class,)

    @classmethod
    def of(cls, tasks: Tensor, label: Tensor, n_classes: int) -> Pool:
        """Make a pool of the given tasks; ``label`` has the class of every task."""
        own = label[tasks]
        order = torch.argsort(own, stable=True)
        size = torch.bincount(own, minlength=n_classes)
        return cls(tasks[order], size.cumsum(0) - size, size)

    def __len__(self) -> int:
        return len(self.order)

    def inside(self, kind: Tensor, place: Tensor) -> Tensor:
        """Return tasks by their positions within their classes."""
        return self.order[self.start[kind] + place]

    def outside(self, kind: Tensor, place: Tensor) -> Tensor:
        """Return tasks by their positions among those of all other classes."""
        return self.order[place + torch.where(place < self.start[kind], 0, self.size[kind])]


@dataclass(frozen=True)
class GroupBatch:
    """Some groups, with every task in them once."""

    x: Tensor  # (row, …): features
    task: Tensor  # (row,): task numbers
    label: Tensor  # (row,): their classes
    confidence: Tensor  # (row,): confidence in the class
    groups: Tensor  # (group, member), or (episode, class, member): rows
    ends: ClassVar[bool] = True  # groups are never split
    shared: ClassVar[bool] = False


@dataclass
class GroupTasks:
    """All tasks on one device, and the drawing of groups from them.

    An epoch is ``n_groups`` groups, drawn as needed. Before it begins, ``renew`` may change the
    classes and confidences, and the sampler chooses which tasks may be drawn.
    """

    features: Features
    label: Tensor  # (task,): -1 if there is none
    confidence: Tensor  # (task,)
    tasks: Tensor  # tasks that may be drawn
    n_classes: int
    n_groups: int
    net: EmbedNet
    sampler: Sampler
    renew: Callable[[GroupTasks], None]
    epoch: int = -1
    ranks: Alone = ALONE
    checkpoint: Checkpoints | None = None

    @property
    def n_examples(self) -> int:
        """Number of tasks to draw from, some of which may be held out."""
        return len(self.tasks)

    @property
    def device(self) -> torch.device:
        return self.confidence.device

    def pool(self) -> Pool:
        """Return all tasks that may be drawn, on the CPU, where groups are drawn."""
        return Pool.of(self.tasks.cpu(), self.label.cpu(), self.n_classes)

    def epochs(
        self, training: Training, by: str
    ) -> Callable[[torch.Generator], Iterator[GroupBatch]]:
        """Return a function that yields one epoch of groups, ``batch_size`` at a time."""
        return partial(self.batches, training.batch_size)

    def batches(self, size: int | None, generator: torch.Generator) -> Iterator[GroupBatch]:
        """Yield one epoch of groups, ``size`` at a time."""
        self.epoch += 1
        self.renew(self)
        pool = self.sampler.begin(self, generator)
        for start in range(0, self.n_groups, size or self.n_groups):
            n = min(size or self.n_groups, self.n_groups - start)
            yield self.batch(self.sampler.pick(self, pool, n, generator))

    def batch(self, groups: Tensor) -> GroupBatch:
        """Return the groups, with each task's features once.

        If groups name more members than there are tasks, all tasks are used, which is faster
        than finding out which few are missing.
        """
        if groups.numel() >= len(self.label):
            task, rows = torch.arange(len(self.label)), groups
        else:
            task, rows = torch.unique(groups, return_inverse=True)
        task, rows = task.to(self.device), rows.to(self.device)
        x = self.features.rows(task)
        return GroupBatch(x, task, self.label[task], self.confidence[task], rows)

    def whole(self) -> GroupBatch:
        """Return a fixed set of groups, to measure a loss on."""
        generator = torch.Generator().manual_seed(0)
        n = min(self.n_groups, HELD_GROUPS)
        return self.batch(self.sampler.draw(self.pool(), n, generator))

    def parts(self, *, labeled: bool = False) -> Iterator[GroupBatch]:
        """Yield the same groups, which always consist of labeled tasks."""
        yield self.whole()

    def undivided(self, *, later: bool = False) -> GroupTasks:
        """Return itself: there are no parts."""
        return self

    @property
    def n_tasks(self) -> int:
        return len(self.label)

    def held_out(
        self, fraction: float, rng: np.random.RandomState, by: str = "tasks"
    ) -> tuple[GroupTasks, GroupTasks]:
        """Split into tasks to learn from and tasks to check with, ``fraction`` of every class.

        Groups consist of whole tasks, so tasks are held out whatever ``by`` says.
        """
        label = self.label[self.tasks].cpu().numpy()
        order = np.lexsort((rng.random_sample(len(label)), label))
        size = np.bincount(label, minlength=self.n_classes)
        rank = np.empty(len(label))
        rank[order] = np.arange(len(label)) - (size.cumsum() - size)[label[order]]
        n_out = np.maximum(np.round(fraction * size), np.minimum(2, size // 2))
        out = torch.as_tensor(rank < n_out[label], device=self.tasks.device)
        parts = (replace(self, tasks=self.tasks[~out]), replace(self, tasks=self.tasks[out]))
        for part in parts:
            refuse_too_few(part.pool(), self.sampler)
        return parts

    @torch.no_grad()
    def embedded(self, tasks: Tensor) -> Tensor:
        """Return the network's current representation of tasks, without dropout."""
        mode, size = self.net.training, rows_at_once(int(np.prod(self.features.shape)))
        self.net.eval()
        rows = (self.features.rows(some.to(self.device)) for some in torch.split(tasks, size))
        parts = [self.net(x) for x in rows]
        self.net.train(mode)
        return torch.cat(parts)


@dataclass(frozen=True)
class Setting:
    """The setting of a sampler: the classes, and the network that learns from its groups."""

    classes: Array
    net: EmbedNet
    size: int  # dimension of the representation
    batch_size: int | None


class Sampler(nn.Module):
    """Draws groups during one fit. A module, since some samplers learn which groups to draw."""

    n_members: int

    @abstractmethod
    def draw(self, pool: Pool, n: int, generator: torch.Generator) -> Tensor:
        """Draw ``n`` groups of task numbers, (group, member)."""

    @abstractmethod
    def allows(self, pool: Pool) -> bool:
        """Return whether there are enough tasks to draw a group."""

    @abstractmethod
    def n_groups(self, size: Ints) -> int:
        """Return the default number of groups per epoch, given each class's number of tasks."""

    def begin(self, tasks: GroupTasks, generator: torch.Generator) -> Pool:
        """Choose the tasks that may be drawn in this epoch."""
        return tasks.pool()

    def pick(self, tasks: GroupTasks, pool: Pool, n: int, generator: torch.Generator) -> Tensor:
        """Choose the ``n`` groups to learn from next, (group, member)."""
        return self.draw(pool, n, generator)

    def loss(self, losses: Tensor, batch: GroupBatch, net: EmbedNet) -> Tensor:
        """Average the groups' losses; a sampler that learns adds its own gradient."""
        return losses.mean()


class Groups(Part):
    """The part of an embedder that says which tasks are compared."""

    @abstractmethod
    def sampler(self, setting: Setting) -> Sampler:
        """Build the sampler that draws the groups during one fit."""


class EveryClass(BaseEstimator):
    """Draw anchors from all classes."""

    def number(self, classes: Array) -> int | None:
        """Return the number of the one class of anchors; None for all classes."""
        return None


class OneClass(BaseEstimator):
    """Draw anchors from a single class.

    Parameters
    ----------
    name : label, optional
        The class; the last of ``classes_`` if not given.
    """

    def __init__(self, name: object = None) -> None:
        self.name = name

    def number(self, classes: Array) -> int | None:
        """Return the number of the one class of anchors; None for all classes."""
        return len(classes) - 1 if self.name is None else class_number(self.name, classes)


class RandomGroups(Groups):
    """An anchor, another task of its class, and tasks of other classes, at random.

    Parameters
    ----------
    negatives : int, default=3
        Tasks of other classes in a group (k).
    anchors : OneClass or EveryClass, optional
        Classes of the anchors; by default ``OneClass()`` if there are two classes,
        ``EveryClass()`` if there are more.
    repeats : bool, default=False
        Whether a task may occur twice in a group, as in NeuCrowd's published code.

    Examples
    --------
    >>> RandomGroups(negatives=5, anchors=OneClass("yes"))
    RandomGroups(anchors=OneClass(name='yes'), negatives=5)
    """

    _parameter_constraints = {
        "negatives": [at_least(1)],
        "anchors": [OneClass, EveryClass, None],
        "repeats": ["boolean"],
    }

    def __init__(
        self,
        negatives: int = 3,
        *,
        anchors: OneClass | EveryClass | None = None,
        repeats: bool = False,
    ) -> None:
        self.negatives = negatives
        self.anchors = anchors
        self.repeats = repeats

    def sampler(self, setting: Setting) -> TupleSampler:
        return TupleSampler(self.negatives, self.anchor(setting.classes), repeats=self.repeats)

    def anchor(self, classes: Array) -> int | None:
        """Return the number of the one class of anchors; None for every class."""
        usual = OneClass() if len(classes) == 2 else EveryClass()
        return (self.anchors or usual).number(classes)


class TupleSampler(Sampler):
    """Draws an anchor, a task of its class, and tasks of others: (group, 2 + negatives).

    Anchors are drawn evenly from all tasks of the class ``anchor``, or of every class if it is
    None. The partner is another task than the anchor, and the negatives differ from one another,
    as far as there are enough; with ``repeats=True`` each is drawn independently.
    """

    def __init__(self, negatives: int, anchor: int | None = None, *, repeats: bool = False) -> None:
        super().__init__()
        self.negatives, self.anchor, self.repeats = negatives, anchor, repeats
        self.n_members = 2 + negatives

    def draw(self, pool: Pool, n: int, generator: torch.Generator) -> Tensor:
        kind = torch.multinomial(self._chances(pool), n, replacement=True, generator=generator)
        size = pool.size[kind]
        pair = distinct(size, 2, generator, repeats=self.repeats)  # (group, 2)
        others = distinct(len(pool) - size, self.negatives, generator, repeats=self.repeats)
        near = pool.inside(kind[:, None], pair)
        return torch.cat([near, pool.outside(kind[:, None], others)], dim=1)

    def allows(self, pool: Pool) -> bool:
        return bool((self._chances(pool) > 0).any())

    def n_groups(self, size: Ints) -> int:
        """Return the number of ordered pairs of anchors, up to 60,000."""
        own = size if self.anchor is None else size[[self.anchor]]
        return max(1, min(int((own.astype(np.int64) * (own - 1)).sum()), MOST_GROUPS))

    def _chances(self, pool: Pool) -> Tensor:
        """Weight of each class for anchors: its size, if it has two tasks and others exist."""
        able = (pool.size > 1) & (pool.size < len(pool))
        if self.anchor is not None:
            able &= torch.arange(len(pool.size)) == self.anchor
        return torch.where(able, pool.size, 0).double()


def distinct(size: Tensor, k: int, generator: torch.Generator, *, repeats: bool = False) -> Tensor:
    """Draw ``k`` different numbers below each ``size``, in random order, (row, k).

    They are drawn one by one: a number among those left is shifted past the ones taken. Rows
    with fewer than ``k`` numbers repeat some.
    """
    chance = torch.rand(len(size), k, generator=generator, dtype=torch.float64)
    free = (chance * size[:, None]).long()
    if repeats:
        return free
    chosen = torch.empty(len(size), 0, dtype=torch.long)
    for turn in range(k):
        pick = (chance[:, turn] * (size - turn)).long()
        for taken in chosen.sort(dim=1).values.unbind(dim=1):
            pick = pick + (pick >= taken)
        chosen = torch.cat([chosen, pick[:, None]], dim=1)
    return torch.where((size >= k)[:, None], chosen, free)


def several_classes(pool: Pool) -> bool:
    """Return whether there is anything to compare."""
    return int((pool.size > 0).sum()) > 1


def refuse_too_few(pool: Pool, sampler: Sampler) -> None:
    """Refuse fewer than two classes, or too few tasks of them."""
    if not several_classes(pool):
        raise AnnotationError(
            explain(
                "All labeled tasks are assigned to one class, so there is nothing to compare.",
                expected="tasks of two classes or more",
                fix="choose another aggregator, or collect labels of the other classes",
            )
        )
    if not sampler.allows(pool):
        raise AnnotationError(
            explain(
                "There is no pair of tasks of one class to compare with those of another.",
                expected="two tasks or more of a class of anchors, and one of another",
                fix="collect more labels, or use anchors of every class:  "
                "groups=RandomGroups(anchors=EveryClass())",
            )
        )


def class_number(name: object, classes: Array) -> int:
    """Find a class by its name."""
    found = int(locate(classes, np.array([name], dtype=object))[0])
    if found < 0:
        raise ParameterError(
            explain(
                f"There is no class {name!r}.",
                expected=f"one of {listing(classes)}",
                fix="check the spelling of the class",
            )
        )
    return found
