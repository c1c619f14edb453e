"""Which tasks are compared: groups of tasks, drawn as they are needed.

A part such as :class:`RandomGroups` describes the groups, and its sampler draws them during a
fit: ``draw(pool, n, generator)`` gives ``n`` rows of task numbers. No group is ever listed beyond
the batch asked for, and there is no loop over tasks or groups.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, TypeVar

import numpy as np
import torch
from sklearn.base import BaseEstimator
from torch import Tensor, nn

from crowdwise.annotations.names import locate
from crowdwise.base.params import Constraints, at_least
from crowdwise.embed.encoder import EmbedNet
from crowdwise.embed.tasks import GroupBatch, GroupTasks, Pool, several_classes
from crowdwise.errors import ParameterError, explain, listing
from crowdwise.typing import Array, Ints

G = TypeVar("G", bound="Groups")
MOST_GROUPS = 60_000  # of an epoch, where the number of pairs would decide


@dataclass(frozen=True)
class Setting:
    """What a sampler is built for: the classes, and the network that learns from its groups."""

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
        """Whether there are enough tasks to draw a group."""

    @abstractmethod
    def n_groups(self, size: Ints) -> int:
        """Groups in an epoch unless asked otherwise, from the number of tasks of each class."""

    def begin(self, tasks: GroupTasks, generator: torch.Generator) -> Pool:
        """Choose the tasks that may be drawn in this epoch."""
        return tasks.pool()

    def pick(self, tasks: GroupTasks, pool: Pool, n: int, generator: torch.Generator) -> Tensor:
        """Choose the ``n`` groups to learn from next, (group, member)."""
        return self.draw(pool, n, generator)

    def loss(self, losses: Tensor, batch: GroupBatch, net: EmbedNet) -> Tensor:
        """Average the groups' losses; a sampler that learns adds its own gradient."""
        return losses.mean()


class Groups(BaseEstimator):
    """The part of an embedder that says which tasks are compared."""

    _parameter_constraints: ClassVar[Constraints] = {}

    @abstractmethod
    def sampler(self, setting: Setting) -> Sampler:
        """Build what draws the groups during one fit."""


class EveryClass(BaseEstimator):
    """Anchors are drawn from all classes."""

    def number(self, classes: Array) -> int | None:
        """The number of the one class that anchors; None for all of them."""
        return None


class OneClass(BaseEstimator):
    """Anchors are drawn from a single class.

    Parameters
    ----------
    name : label, optional
        The class; the last of ``classes_`` if not given.
    """

    def __init__(self, name: object = None) -> None:
        self.name = name

    def number(self, classes: Array) -> int | None:
        """The number of the one class that anchors; None for all of them."""
        return len(classes) - 1 if self.name is None else class_number(self.name, classes)


class RandomGroups(Groups):
    """An anchor, another task of its class, and tasks of other classes, at random.

    Parameters
    ----------
    negatives : int, default=3
        Tasks of other classes in a group (k).
    anchors : OneClass or EveryClass, optional
        Which classes anchors are drawn from; by default ``OneClass()`` where there are two
        classes, ``EveryClass()`` where there are more.
    repeats : bool, default=False
        Whether members of a group may be the same task, as in NeuCrowd's published code.

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
        """The number of the one class that anchors; None where every class does."""
        usual = OneClass() if len(classes) == 2 else EveryClass()
        return (self.anchors or usual).number(classes)


class BalancedTasks(Groups):
    """Single tasks, as many of each class, for losses that compare all tasks of a batch."""

    def sampler(self, setting: Setting) -> TaskSampler:
        return TaskSampler()


class Episodes(Groups):
    """Some tasks of every class, for losses that compare queries with supports.

    Parameters
    ----------
    per_class : int, default=10
        Tasks of each class in an episode, supports and queries together.
    """

    _parameter_constraints = {"per_class": [at_least(2)]}

    def __init__(self, per_class: int = 10) -> None:
        self.per_class = per_class

    def sampler(self, setting: Setting) -> EpisodeSampler:
        return EpisodeSampler(self.per_class)


class TupleSampler(Sampler):
    """An anchor, another task of its class, and tasks of other classes: (group, 2 + negatives).

    Anchors are drawn evenly from all tasks of the classes that may anchor: ``anchor``, or every
    class where it is None. The partner is another task than the anchor, and the negatives differ
    from each other, as far as there are enough; ``repeats=True`` draws each without looking.
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
        """As many as there are ordered pairs of anchors, up to 60,000."""
        own = size if self.anchor is None else size[[self.anchor]]
        return max(1, min(int((own.astype(np.int64) * (own - 1)).sum()), MOST_GROUPS))

    def _chances(self, pool: Pool) -> Tensor:
        """Weight of each class as an anchor's: its size, if it has two tasks and others too."""
        able = (pool.size > 1) & (pool.size < len(pool))
        if self.anchor is not None:
            able &= torch.arange(len(pool.size)) == self.anchor
        return torch.where(able, pool.size, 0).double()


class TaskSampler(Sampler):
    """Single tasks, as many of each class that occurs: (task, 1), none of them twice."""

    n_members = 1

    def draw(self, pool: Pool, n: int, generator: torch.Generator) -> Tensor:
        there = torch.nonzero(pool.size)[:, 0]
        kind = there[torch.arange(n) % len(there)]
        place = distinct(pool.size[kind], 1, generator)
        return torch.unique(pool.inside(kind[:, None], place), dim=0)

    def allows(self, pool: Pool) -> bool:
        return several_classes(pool)

    def n_groups(self, size: Ints) -> int:
        return 2560


class EpisodeSampler(Sampler):
    """Tasks of every class that occurs: (episode, class, member)."""

    def __init__(self, per_class: int) -> None:
        super().__init__()
        self.n_members = per_class

    def draw(self, pool: Pool, n: int, generator: torch.Generator) -> Tensor:
        there = torch.nonzero(pool.size)[:, 0]
        kind = there.repeat(n)  # (episode x class,)
        place = distinct(pool.size[kind], self.n_members, generator)
        return pool.inside(kind[:, None], place).reshape(n, len(there), -1)

    def allows(self, pool: Pool) -> bool:
        return several_classes(pool)

    def n_groups(self, size: Ints) -> int:
        return 600


def distinct(size: Tensor, k: int, generator: torch.Generator, *, repeats: bool = False) -> Tensor:
    """Draw ``k`` different numbers below each ``size``, in random order, (row, k).

    Drawn one after the other: a number among those left is moved up past the ones taken. Rows
    with fewer than ``k`` numbers get them with repeats.
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


def find_groups(groups: Groups, kind: type[G]) -> G | None:
    """The first of a kind among groups that are wrapped around each other."""
    parts = [groups, *groups.get_params().values()]
    return next((part for part in parts if isinstance(part, kind)), None)


def class_number(name: object, classes: Array) -> int:
    """Find a class by its name."""
    found = int(locate(classes, np.array([name], dtype=object))[0])
    if found < 0:
        raise ParameterError(
            explain(f"There is no class {name!r}.", expected=f"one of {listing(classes)}")
        )
    return found
