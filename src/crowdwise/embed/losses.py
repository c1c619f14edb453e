"""Losses on representations.

A loss only describes itself; ``build(size, n_classes)`` returns what computes it, with learnable
parameters if it has any. ``compare`` takes plain tensors, for use in any training loop.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

from crowdwise.base.params import Part, at_least, more_than, one_of
from crowdwise.embed.groups import GroupBatch, Sampler
from crowdwise.errors import ParameterError, explain
from crowdwise.nets.modules import EmbedNet
from crowdwise.nets.objective import Objective

TINY = 1e-7  # added to a confidence of 0 in the published code


class Anchor(Part):
    """The part of an embedder that says what the members of a group are compared with."""

    @abstractmethod
    def vectors(self, first: Tensor, groups: EmbeddedGroups) -> Tensor:
        """Return anchors from the vectors of the groups' first members, (group, dimension)."""


class EmbeddedGroups:
    """Groups of tasks as represented by the network, to be compared by a loss."""

    def __init__(self, batch: GroupBatch, net: EmbedNet, anchor: Anchor, n_classes: int) -> None:
        self.batch, self.net, self.anchor, self.n_classes = batch, net, anchor, n_classes
        self.queries = net(batch.x)  # (row, dimension)
        self.documents = self.queries if net.document is None else net.documents(batch.x)

    @property
    def anchors(self) -> Tensor:
        """The anchor of each group, (group, dimension)."""
        return self.anchor.vectors(self.queries[self.batch.groups[:, 0]], self)

    @property
    def candidates(self) -> Tensor:
        """All members but the anchor, (group, member, dimension)."""
        return self.documents[self.batch.groups[:, 1:]]

    @property
    def members(self) -> Tensor:
        """All members, the anchor first, (group, member, dimension)."""
        if self.net.document is not None:
            return torch.cat([self.anchors[:, None], self.candidates], dim=1)
        vectors = self.queries[self.batch.groups]
        anchors = self.anchor.vectors(vectors[:, 0], self)
        return torch.cat([anchors[:, None], vectors[:, 1:]], dim=1)

    @property
    def label(self) -> Tensor:
        """Class number of each anchor, (group,)."""
        return self.batch.label[self.batch.groups[:, 0]]

    @property
    def confidence(self) -> Tensor:
        """Confidence in the class of each candidate, (group, member)."""
        return self.batch.confidence[self.batch.groups[:, 1:]]


class Example(Anchor):
    """Every anchor is the task that was drawn."""

    def vectors(self, first: Tensor, groups: EmbeddedGroups) -> Tensor:
        return first


class Robust(Anchor):
    """Anchors of a batch replaced by the weighted mean of their class.

    Weights are confidences, so a task with an uncertain class moves the anchor little
    (NeuCrowd, definition 4).

    Parameters
    ----------
    scale : {"weights", "batch", "sum"}, default="weights"
        Divisor of the weighted sum: the sum of the weights; the number of anchors, as in
        the published code; or none, as in the paper.
    space : {"embedding", "input"}, default="embedding"
        Whether the mean is of vectors, as in the code, or of features, as in the paper.
    """

    _parameter_constraints = {
        "scale": [one_of("weights", "batch", "sum")],
        "space": [one_of("embedding", "input")],
    }

    def __init__(self, *, scale: str = "weights", space: str = "embedding") -> None:
        self.scale = scale
        self.space = space

    def vectors(self, first: Tensor, groups: EmbeddedGroups) -> Tensor:
        batch, rows = groups.batch, groups.batch.groups[:, 0]
        how = (batch.confidence[rows], batch.label[rows], groups.n_classes)
        if self.space == "embedding":
            return robust_anchor(first, *how, scale=self.scale)
        inputs = groups.net.scaler(batch.x)[rows]
        return groups.net.encoder(robust_anchor(inputs, *how, scale=self.scale)).flatten(1)


class Criterion(Protocol):
    """An object that computes the losses of groups."""

    def losses(self, groups: EmbeddedGroups) -> Tensor:
        """Return the loss of each group, (group,), or one number for the batch."""


class Loss(Part):
    """The part of an embedder that defines the training loss."""

    @abstractmethod
    def build(self, size: int, n_classes: int) -> Criterion:
        """Build what computes the loss of vectors with ``size`` dimensions."""


class PlainLoss(Loss):
    """A loss without parameters to learn."""

    def build(self, size: int, n_classes: int) -> Criterion:
        return self

    @abstractmethod
    def losses(self, groups: EmbeddedGroups) -> Tensor:
        """Return the loss of each group, (group,), or one number for the batch."""


class GroupSoftmax(PlainLoss):
    """Minus the log-probability of picking the right candidate by similarity to the anchor.

    The probability of a candidate grows with its similarity ``r`` and with the confidence in its
    class: as exp(eta x confidence x r) with ``form="exponent"``, as confidence x exp(eta x r)
    with ``form="multiplier"`` (RLL eq. 3, NeuCrowd section 3.3.3).
    """

    _parameter_constraints = {
        "eta": [more_than(0.0)],
        "form": [one_of("exponent", "multiplier")],
        "offset": [at_least(0.0)],
    }
    eta: float
    form: str

    @abstractmethod
    def similarity(self, anchor: Tensor, candidates: Tensor) -> Tensor:
        """Return the similarity of each candidate to its group's anchor, (group, candidate)."""

    def losses(self, groups: EmbeddedGroups) -> Tensor:
        anchors = groups.anchors
        return self.compare(anchors, groups.candidates, groups.confidence)

    def compare(self, anchor: Tensor, candidates: Tensor, confidence: Tensor) -> Tensor:
        """Return the loss of each group, (group,).

        ``anchor`` is (group, dimension), ``candidates`` (group, candidate, dimension) with the
        right one first, ``confidence`` (group, candidate).
        """
        like = self.similarity(anchor, candidates)
        if self.form == "exponent":
            score = self.eta * confidence * like
        else:
            score = self.eta * like + torch.log(confidence + TINY)
        return -torch.log_softmax(score, dim=-1)[:, 0]


class CosineSoftmax(GroupSoftmax):
    """Pick the right candidate of a group by its cosine with the anchor (RLL eq. 3).

    Parameters
    ----------
    eta : float, default=10
        Scale of the similarity.
    form : {"exponent", "multiplier"}, default="exponent"
        Whether confidence scales a candidate's similarity, as in the paper, or its probability,
        as in the published code.
    """

    def __init__(self, eta: float = 10.0, *, form: str = "exponent") -> None:
        self.eta = eta
        self.form = form

    def similarity(self, anchor: Tensor, candidates: Tensor) -> Tensor:
        return cosine_similarity(anchor[:, None], candidates, dim=-1)


class EuclideanSoftmax(GroupSoftmax):
    """Pick the right candidate of a group by its distance to the anchor (NeuCrowd sec. 3.3.3).

    Parameters
    ----------
    eta, form
        As for :class:`CosineSoftmax`; similarity is ``offset`` minus the distance.
    offset : float, default=1
        The similarity at distance 0 (C). Only matters if confidences differ.
    """

    def __init__(self, eta: float = 10.0, *, form: str = "exponent", offset: float = 1.0) -> None:
        self.eta = eta
        self.form = form
        self.offset = offset

    def similarity(self, anchor: Tensor, candidates: Tensor) -> Tensor:
        return self.offset - torch.linalg.vector_norm(anchor[:, None] - candidates, dim=-1)


class GroupObjective(Objective[GroupBatch]):
    """A network for tasks, with a loss on groups and their source."""

    by = "group"
    held_out_everywhere = True  # groups are drawn from all held-out tasks
    net: EmbedNet

    def __init__(
        self, net: EmbedNet, sampler: Sampler, anchor: Anchor, criterion: Criterion, n_classes: int
    ) -> None:
        super().__init__()
        self.net, self.sampler, self.criterion = net, sampler, criterion
        self.anchor, self.n_classes = anchor, n_classes

    def loss(self, batch: GroupBatch) -> Tensor:
        """Return the training loss."""
        return self.sampler.loss(self.losses(batch), batch, self.net)

    def held_out(self, batch: GroupBatch) -> Tensor:
        """Return the loss of groups of held-out tasks, which patience monitors."""
        return self.loss(batch)

    def losses(self, batch: GroupBatch) -> Tensor:
        """Return the loss of each group, (group,), or one number for the batch."""
        groups = EmbeddedGroups(batch, self.net, self.anchor, self.n_classes)
        return self.criterion.losses(groups)


def triplets(groups: EmbeddedGroups) -> tuple[Tensor, Tensor, Tensor]:
    """Return anchor, positive and negative of each group."""
    members = groups.members
    if members.shape[1] != 3:
        raise ParameterError(
            explain(
                f"Groups have {members.shape[1]} members, but this loss compares three.",
                expected="groups=RandomGroups(negatives=1)",
                fix="give these groups, or another loss",
            )
        )
    anchor, positive, negative = members.unbind(dim=1)
    return anchor, positive, negative


def average(losses: Tensor) -> Tensor:
    """Return the mean; 0 for a batch without any pair."""
    return losses.sum() / max(len(losses), 1)


def pairs_of_one_class(label: Tensor, *, ordered: bool = True) -> tuple[Tensor, Tensor]:
    """Return all pairs of different rows of one class."""
    same = label[:, None] == label
    same = same.fill_diagonal_(False) if ordered else same.triu(diagonal=1)
    first, second = torch.nonzero(same, as_tuple=True)
    return first, second


def robust_anchor(
    anchors: Tensor, weight: Tensor, kind: Tensor, n_classes: int, *, scale: str = "weights"
) -> Tensor:
    """Replace each anchor of a batch by the weighted mean of its class, (group, …).

    ``kind`` is the class number of each anchor; for ``scale`` see :class:`Robust`. Anchors whose
    weights are all 0 count equally.
    """
    flat = anchors.flatten(start_dim=1)  # (group, dimension)
    member = torch.eye(n_classes, dtype=flat.dtype, device=flat.device)[kind]  # (group, class)
    shares = member * weight[:, None]
    weightless = shares.sum(dim=0) <= 0
    shares = torch.where(weightless, member, shares)
    if scale == "weights":
        shares = shares / shares.sum(dim=0).clamp_min(torch.finfo(flat.dtype).tiny)
    elif scale == "batch":
        shares = shares / member.sum(dim=0).clamp_min(1.0)
    return (shares.T @ flat)[kind].reshape(anchors.shape)
