"""Losses on representations, as plain torch modules for anybody's loop and encoder.

Each one takes vectors and gives one number per comparison, to be averaged as you like.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import cosine_similarity, normalize

SIMILARITIES = ("cosine", "euclidean")
TINY = 1e-7  # what the published code adds to a confidence of 0


class GroupSoftmax(nn.Module):
    """Minus the log-chance of picking the right candidate (RLL eq. 3, NeuCrowd section 3.3.3).

    Candidate ``c`` of a group is picked with a chance that grows with its similarity ``r`` to the
    anchor and with the confidence in its class: as exp(temperature x confidence x r) with
    ``form="exponent"``, as confidence x exp(temperature x r) with ``form="multiplier"``.

    Parameters
    ----------
    temperature : float, default=10
        How much similarity counts (eta).
    similarity : {"cosine", "euclidean"}, default="cosine"
        The cosine, or ``offset`` minus the distance.
    form : {"exponent", "multiplier"}, default="exponent"
        Where confidence enters.
    offset : float, default=1
        What a distance of 0 is worth (C). Matters only where confidences differ.
    """

    def __init__(
        self,
        temperature: float = 10.0,
        *,
        similarity: str = "cosine",
        form: str = "exponent",
        offset: float = 1.0,
    ) -> None:
        super().__init__()
        self.temperature, self.similarity = temperature, similarity
        self.form, self.offset = form, offset

    def forward(self, anchor: Tensor, candidates: Tensor, confidence: Tensor) -> Tensor:
        """The loss of each group, (group,).

        ``anchor`` is (group, dimension), ``candidates`` (group, candidate, dimension) with the
        right one first, ``confidence`` (group, candidate).
        """
        return -self.log_chances(anchor, candidates, confidence)[:, 0]

    def log_chances(self, anchor: Tensor, candidates: Tensor, confidence: Tensor) -> Tensor:
        """Log-chance of each candidate, (group, candidate)."""
        if self.similarity == "cosine":
            like = cosine_similarity(anchor[:, None], candidates, dim=-1)
        else:
            like = self.offset - torch.linalg.vector_norm(anchor[:, None] - candidates, dim=-1)
        if self.form == "exponent":
            score = self.temperature * confidence * like
        else:
            score = self.temperature * like + torch.log(confidence + TINY)
        return torch.log_softmax(score, dim=-1)


class ContrastiveLoss(nn.Module):
    """Pull pairs of one class together, push others ``margin`` apart, (pair,)."""

    def __init__(self, margin: float = 1.0) -> None:
        super().__init__()
        self.margin = margin

    def forward(self, first: Tensor, second: Tensor, same: Tensor) -> Tensor:
        distance = torch.linalg.vector_norm(first - second, dim=-1)
        return torch.where(same, distance**2, (self.margin - distance).clamp_min(0) ** 2)


class TripletLoss(nn.Module):
    """Keep the negative farther from the anchor than the positive, by ``margin``, (group,).

    Distances are squared, of vectors of length 1 unless ``scale=False``.
    """

    def __init__(self, margin: float = 0.2, *, scale: bool = True) -> None:
        super().__init__()
        self.margin, self.scale = margin, scale

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        if self.scale:
            anchor, positive, negative = (
                normalize(v, dim=-1) for v in (anchor, positive, negative)
            )
        near = ((anchor - positive) ** 2).sum(dim=-1)
        far = ((anchor - negative) ** 2).sum(dim=-1)
        return (near - far + self.margin).clamp_min(0)


class SemiHardTripletLoss(nn.Module):
    """A triplet for every pair of one class in a batch, with the semi-hard negative, (pair,).

    The negative is the nearest one that is farther than the positive, or the farthest one if
    none is.
    """

    def __init__(self, margin: float = 0.2, *, scale: bool = True) -> None:
        super().__init__()
        self.margin, self.scale = margin, scale

    def forward(self, embedding: Tensor, label: Tensor) -> Tensor:
        points = normalize(embedding, dim=-1) if self.scale else embedding
        distance = squared_distances(points)  # (task, task)
        anchor, positive = pairs_of_one_class(label)
        other = label[anchor, None] != label  # (pair, task)
        to_all, to_positive = distance[anchor], distance[anchor, positive]
        farther = other & (to_all > to_positive[:, None])
        nearest = torch.where(farther, to_all, torch.inf).amin(dim=1)
        farthest = torch.where(other, to_all, -torch.inf).amax(dim=1)
        negative = torch.where(farther.any(dim=1), nearest, farthest)
        loss = (to_positive - negative + self.margin).clamp_min(0)
        return loss[other.any(dim=1)]


class LiftedStructureLoss(nn.Module):
    """Every pair of one class against all negatives of both in the batch, (pair,)."""

    def __init__(self, margin: float = 1.0) -> None:
        super().__init__()
        self.margin = margin

    def forward(self, embedding: Tensor, label: Tensor) -> Tensor:
        distance = distances(embedding)
        other = label[:, None] != label
        push = torch.where(other, self.margin - distance, -torch.inf).logsumexp(dim=1)  # (task,)
        first, second = pairs_of_one_class(label, ordered=False)
        both = torch.logaddexp(push[first], push[second])
        found = 0.5 * (both + distance[first, second]).clamp_min(0) ** 2
        return found[other.any(dim=1)[first]]


class TripletCenterLoss(nn.Module):
    """Keep every vector nearer to the center of its class than to any other, by ``margin``.

    With ``margin=None``, the plain center loss: half the squared distance to the own center. The
    centers are learned. Distances are half the squared Euclidean ones, (task,).
    """

    def __init__(self, n_classes: int, size: int, *, margin: float | None = 1.0) -> None:
        super().__init__()
        self.margin = margin
        self.center = nn.Parameter(torch.randn(n_classes, size) / size**0.5)

    def forward(self, embedding: Tensor, label: Tensor) -> Tensor:
        distance = 0.5 * ((embedding[:, None] - self.center) ** 2).sum(dim=-1)  # (task, class)
        own = distance.gather(1, label[:, None])[:, 0]
        if self.margin is None:
            return own
        other = distance.scatter(1, label[:, None], torch.inf).amin(dim=1)
        return (own + self.margin - other).clamp_min(0)


class RelationLoss(nn.Module):
    """Score how well a query goes with the sum of a class's supports; 1 for its own, else 0.

    A small network scores the two vectors side by side; the loss is the squared error,
    (episode, query, class).
    """

    def __init__(self, size: int, hidden: int = 16) -> None:
        super().__init__()
        self.relation = nn.Sequential(
            nn.Linear(2 * size, hidden), nn.ReLU(), nn.Linear(hidden, 1), nn.Sigmoid()
        )

    def forward(self, support: Tensor, query: Tensor, label: Tensor) -> Tensor:
        """Supports (episode, class, support, dimension), queries (episode, query, dimension).

        ``label`` is each query's class, as a place among the episode's classes.
        """
        summed = support.sum(dim=2)  # (episode, class, dimension)
        n_queries, n_classes = query.shape[1], summed.shape[1]
        left = summed[:, None].expand(-1, n_queries, -1, -1)
        right = query[:, :, None].expand(-1, -1, n_classes, -1)
        score = self.relation(torch.cat([left, right], dim=-1))[..., 0]
        return (
            score
            - (label[..., None] == torch.arange(n_classes, device=label.device)).to(score.dtype)
        ) ** 2


def squared_distances(points: Tensor) -> Tensor:
    """Squared Euclidean distances of all pairs, never below 0."""
    return ((points[:, None] - points) ** 2).sum(dim=-1)


def distances(points: Tensor) -> Tensor:
    """Euclidean distances of all pairs, with a gradient of 0 where they are 0."""
    return torch.linalg.vector_norm(points[:, None] - points, dim=-1)


def pairs_of_one_class(label: Tensor, *, ordered: bool = True) -> tuple[Tensor, Tensor]:
    """All pairs of different rows of one class."""
    same = label[:, None] == label
    same = same.fill_diagonal_(False) if ordered else same.triu(diagonal=1)
    first, second = torch.nonzero(same, as_tuple=True)
    return first, second
