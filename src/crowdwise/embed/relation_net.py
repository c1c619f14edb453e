"""Relation network: a learned comparison of a query with the supports of each class."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from crowdwise.base.params import at_least
from crowdwise.embed.confidence import Certain
from crowdwise.embed.embedder import CrowdEmbedder
from crowdwise.embed.groups import Groups, Pool, Sampler, Setting, distinct, several_classes
from crowdwise.embed.losses import EmbeddedGroups, Loss
from crowdwise.errors import ParameterError, explain
from crowdwise.nets.modules import Encoder
from crowdwise.nets.training import Training
from crowdwise.typing import Ints


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


class EpisodeSampler(Sampler):
    """Draws tasks of every class that occurs: (episode, class, member)."""

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


class RelationLoss(Loss):
    """Score how well a query matches the sum of a class's supports: 1 for its own, else 0.

    A small network scores the two vectors side by side; the loss is the squared error. Needs
    :class:`Episodes`.

    Parameters
    ----------
    supports : int, default=5
        Tasks of each class in an episode that queries are compared with; the others are queries.
    hidden : int, default=16
        Size of the comparing network's hidden layer.
    """

    _parameter_constraints = {"supports": [at_least(1)], "hidden": [at_least(1)]}

    def __init__(self, supports: int = 5, *, hidden: int = 16) -> None:
        self.supports = supports
        self.hidden = hidden

    def build(self, size: int, n_classes: int) -> Relation:
        return Relation(size, self.supports, self.hidden)


class Relation(nn.Module):
    """The comparing network of :class:`RelationLoss`."""

    def __init__(self, size: int, supports: int, hidden: int) -> None:
        super().__init__()
        self.supports = supports
        self.relation = nn.Sequential(
            nn.Linear(2 * size, hidden), nn.ReLU(), nn.Linear(hidden, 1), nn.Sigmoid()
        )

    def losses(self, groups: EmbeddedGroups) -> Tensor:
        rows = groups.batch.groups
        if rows.ndim != 3 or rows.shape[2] <= self.supports:
            raise ParameterError(
                explain(
                    f"RelationLoss with {self.supports} supports has no queries to compare.",
                    expected="groups=Episodes(per_class), with more tasks of a class than supports",
                    fix="lower supports, or raise per_class",
                )
            )
        members = groups.queries[rows]  # (episode, class, member, dimension)
        n_queries, n_classes = rows.shape[2] - self.supports, rows.shape[1]
        support, query = members.split([self.supports, n_queries], dim=2)
        label = torch.arange(n_classes, device=query.device).repeat_interleave(n_queries)
        return self.compare(support, query.flatten(1, 2), label.expand(len(query), -1)).mean()

    def compare(self, support: Tensor, query: Tensor, label: Tensor) -> Tensor:
        """Return the squared error of each query and class, (episode, query, class).

        Supports are (episode, class, support, dimension), queries (episode, query, dimension);
        ``label`` is each query's class, as a position among the episode's classes.
        """
        summed = support.sum(dim=2)  # (episode, class, dimension)
        n_queries, n_classes = query.shape[1], summed.shape[1]
        left = summed[:, None].expand(-1, n_queries, -1, -1)
        right = query[:, :, None].expand(-1, -1, n_classes, -1)
        score = self.relation(torch.cat([left, right], dim=-1))[..., 0]
        own = label[..., None] == torch.arange(n_classes, device=label.device)
        return (score - own.to(score.dtype)) ** 2


class RelationNet(CrowdEmbedder):
    """Learn a representation in which a small network finds the class that a task matches.

    An episode has supports and queries of every class; a query is compared with the sum of each
    class's supports. Treats the aggregator's classes as true.

    Parameters
    ----------
    groups : Groups, optional
        Which tasks are compared; ``Episodes(per_class=10)`` if not given.
    loss : Loss, optional
        What training lowers; ``RelationLoss(supports=5)`` if not given.
    groups_per_epoch : int, optional
        Episodes in an epoch; 600 if not given. ``training.batch_size`` counts episodes too.
    anchor, confidence, encoder, aggregator, scale, refresh_every, training, random_state
        See :class:`CrowdEmbedder`; the encoder has rectified units, every class is certain, and
        ``aggregator=DawidSkene()`` is what papers call "+EM".

    Notes
    -----
    The maths::

        loss = (g(sum over supports j of class k of z_j, z_i) - [class of i is k])^2

    Works when classes are better compared by something other than a distance, and each class
    has enough tasks to fill the episodes.

    Fails when tasks are very few, since a second network has to be trained; wrong supports
    spoil whole episodes.

    References
    ----------
    Sung, Yang, Zhang, Xiang, Torr and Hospedales (2018). Learning to compare: Relation network
    for few-shot learning. CVPR. doi:10.1109/CVPR.2018.00131

    Examples
    --------
    >>> import numpy as np
    >>> X, labels = np.eye(6), [[0, 0], [1, 1], [0, 0], [1, 1], [0, 1], [1, 1]]
    >>> RelationNet(groups_per_epoch=8, random_state=0).fit_transform(X, labels).shape
    (6, 32)
    """

    default_groups = Episodes()
    default_confidence = Certain()
    default_loss = RelationLoss()
    default_groups_per_epoch = 600
    # Sums of sigmoids are nearly equal at first, so the comparing network would never learn.
    default_encoder = Encoder(activation="relu")
    default_training = Training(learning_rate=1e-3, batch_size=16, epochs=50)
