"""NeuCrowd: safe tasks, robust anchors and a network that picks hard groups."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from crowdwise.annotations import Annotations
from crowdwise.base.params import at_least, between, more_than, one_of
from crowdwise.embed._base import Embedder
from crowdwise.embed._data import GroupBatch, GroupData
from crowdwise.embed._objective import TupleObjective
from crowdwise.embed._tuples import anchor_class
from crowdwise.embed.anchors import SCALES
from crowdwise.embed.confidence import CONFIDENCES, Belief, confidence_of
from crowdwise.embed.encoder import EmbedNet, Encoder
from crowdwise.embed.groups import Pool, TupleSampler
from crowdwise.embed.hardness import HardnessNet, hardest, hardness_loss, without_dropout
from crowdwise.embed.losses import SIMILARITIES, GroupSoftmax
from crowdwise.embed.safety import safe_pool, safe_tasks
from crowdwise.nets.training import Training
from crowdwise.typing import Floats


class NeuCrowd(Embedder):
    """Learn a representation from groups of safe tasks around robust anchors, hard ones first.

    As in :class:`RLL`, an anchor must pick its partner among tasks of other classes. On top of
    it, tasks whose neighbours in the current embedding speak for another class are mostly left
    out (``safety``); the anchors of a batch are replaced by their mean, weighted by assurance
    (``anchor="robust"``); and a second network learns to foretell each group's loss and picks the
    hardest of several (``hard_rate``). Each part can be taken out: -SA is ``safety=False``, -RA
    ``anchor="example"`` and -SN ``hard_rate=1``.

    Parameters
    ----------
    safety : bool, default=True
        Whether to draw safe tasks only, and few others, from the second epoch on.
    margin : float, default=0
        By how much same-class neighbours must have the larger sum of assurance (delta).
    n_neighbors : int, optional
        How many neighbours are asked; the root of the batch size if not given.
    unsafe_share : float, default=0.02
        Share of the other tasks that are let in, drawn anew each epoch.
    anchor : {"robust", "example"}, default="robust"
        Whether the anchors of a batch (and class) are replaced by one.
    anchor_scale : {"weights", "batch", "sum"}, default="weights"
        What its weighted sum is divided by: the sum of weights, their number (the code), or
        nothing (as the paper writes it).
    anchor_space : {"embedding", "input"}, default="embedding"
        Where it is made: of vectors (the code) or of features (as the paper writes it).
    hard_rate : int, default=2
        Groups drawn for each one that is learned from; the hardest are kept. 1 for no choice.
    confidence : {"assurance", "mle", "bayesian", "none"}, default="assurance"
        How sure a task's class is. The published code uses ``"mle"``.
    form : {"exponent", "multiplier"}, default="exponent"
        Whether confidence scales a candidate's similarity (the paper) or its chance (the code).
    n_negatives : int, default=3
        Tasks of other classes in a group (n - 2).
    temperature : float, default=10
        How much similarity counts (eta).
    similarity : {"euclidean", "cosine"}, default="euclidean"
        ``offset`` minus the distance, or the cosine.
    offset : float, default=1
        What a distance of 0 is worth (C).
    anchors, positive, evidence : optional
        As for :class:`RLL`.
    groups_per_epoch : int, default=60_000
        Groups in an epoch. Few of them make ``safety`` judge by an embedding that has learned
        next to nothing, and leave out tasks that it would have come to place well.
    legacy : bool, default=False
        Follow the published code where it differs, for a faithful experiment: weights are shares
        of labels, and those of disputed tasks turn from w to 1 - w every other epoch; members of
        a group may repeat; a task is its own neighbour, among the root of the number of tasks
        plus 1, and a draw is safe; anchors are scaled by the batch; confidence multiplies; biases
        start at random; and the picking network, with dropout, learns the chance of the right
        candidate, each prediction compared with all chances of the batch: it learns their mean.
    encoder, aggregator, scale, refresh_every, training, random_state
        As for :class:`RLL`.

    Attributes
    ----------
    safe_ : ndarray of shape (n_tasks,)
        Which tasks with labels lie among their own kind in the final embedding.

    References
    ----------
    Hao, Ding and Liu (2022). NeuCrowd: Neural sampling network for representation learning with
    crowdsourced labels. Knowledge and Information Systems 64. doi:10.1007/s10115-021-01644-7

    Examples
    --------
    >>> import numpy as np
    >>> X, labels = np.eye(6), [[0, 0], [1, 1], [0, 0], [1, 1], [0, 1], [1, 1]]
    >>> model = NeuCrowd(groups_per_epoch=256, random_state=0).fit(X, labels)
    >>> model.transform(X).shape, model.safe_.shape
    ((6, 32), (6,))
    """

    default_training = Training(learning_rate=1e-3, batch_size=256, epochs=5)
    _parameter_constraints = {
        **Embedder._parameter_constraints,
        "safety": ["boolean"],
        "margin": [at_least(0.0)],
        "n_neighbors": [at_least(1), None],
        "unsafe_share": [between(0.0, 1.0)],
        "anchor": [one_of("robust", "example")],
        "anchor_scale": [one_of(*SCALES)],
        "anchor_space": [one_of("embedding", "input")],
        "hard_rate": [at_least(1)],
        "confidence": [one_of(*CONFIDENCES)],
        "form": [one_of("exponent", "multiplier")],
        "n_negatives": [at_least(1)],
        "temperature": [more_than(0.0)],
        "similarity": [one_of(*SIMILARITIES)],
        "offset": [at_least(0.0)],
        "anchors": [one_of("auto", "positive", "all")],
        "evidence": [one_of("labels", "posterior")],
        "groups_per_epoch": [at_least(1)],
        "legacy": ["boolean"],
    }

    def __init__(
        self,
        *,
        safety: bool = True,
        margin: float = 0.0,
        n_neighbors: int | None = None,
        unsafe_share: float = 0.02,
        anchor: str = "robust",
        anchor_scale: str = "weights",
        anchor_space: str = "embedding",
        hard_rate: int = 2,
        confidence: str = "assurance",
        form: str = "exponent",
        n_negatives: int = 3,
        temperature: float = 10.0,
        similarity: str = "euclidean",
        offset: float = 1.0,
        anchors: str = "auto",
        positive: Any = None,
        evidence: str = "labels",
        groups_per_epoch: int = 60_000,
        legacy: bool = False,
        encoder: Any = None,
        aggregator: Any = None,
        scale: bool = True,
        refresh_every: int | None = None,
        training: Training | None = None,
        random_state: Any = None,
    ) -> None:
        self.safety = safety
        self.margin = margin
        self.n_neighbors = n_neighbors
        self.unsafe_share = unsafe_share
        self.anchor = anchor
        self.anchor_scale = anchor_scale
        self.anchor_space = anchor_space
        self.hard_rate = hard_rate
        self.confidence = confidence
        self.form = form
        self.n_negatives = n_negatives
        self.temperature = temperature
        self.similarity = similarity
        self.offset = offset
        self.anchors = anchors
        self.positive = positive
        self.evidence = evidence
        self.groups_per_epoch = groups_per_epoch
        self.legacy = legacy
        self.encoder = encoder
        self.aggregator = aggregator
        self.scale = scale
        self.refresh_every = refresh_every
        self.training = training
        self.random_state = random_state

    def _objective(self, net: EmbedNet, belief: Belief) -> NeuCrowdObjective:
        form = "multiplier" if self.legacy else self.form
        softmax = GroupSoftmax(
            self.temperature, similarity=self.similarity, form=form, offset=self.offset
        )
        sampler = TupleSampler(self.n_negatives, anchor_class(self), repeats=self.legacy)
        return NeuCrowdObjective(net, sampler, softmax, self)

    def _n_groups(self, belief: Belief) -> int:
        return self.groups_per_epoch

    def _encoder(self) -> Any:
        encoder = super()._encoder()
        if self.legacy and isinstance(encoder, Encoder):
            return copy.copy(encoder).set_params(bias="normal")
        return encoder

    def _evidence(self, votes: Annotations, posterior: Floats) -> Floats:
        return posterior if self.evidence == "posterior" else votes.shares()

    def _confidence(self, belief: Belief) -> Floats:
        return confidence_of(belief, "mle" if self.legacy else self.confidence)

    def _neighbors(self, n_tasks: int) -> int:
        if self.legacy:
            return math.isqrt(n_tasks) + 1
        return self.n_neighbors or math.isqrt(self._settings().batch_size or n_tasks)

    def _settle(self, data: GroupData) -> None:
        objective: Any = data.objective
        safe = objective.safe(data)
        self.safe_ = np.zeros(len(data.label), dtype=bool)
        self.safe_[data.pool().order.numpy()] = safe.cpu().numpy()


class NeuCrowdObjective(TupleObjective):
    """NeuCrowd's loss, with the network that picks groups trained beside it."""

    def __init__(
        self, net: EmbedNet, sampler: TupleSampler, softmax: GroupSoftmax, model: NeuCrowd
    ) -> None:
        scale = "batch" if model.legacy else model.anchor_scale
        super().__init__(
            net,
            sampler,
            softmax,
            len(model.classes_),
            anchor=model.anchor,
            anchor_space=model.anchor_space,
            anchor_scale=scale,
        )
        self.model, self.hardness = model, None
        if model.hard_rate > 1:
            body = copy.deepcopy(net.encoder)
            if not model.legacy:
                without_dropout(body)
            members = 2 + sampler.n_negatives
            self.hardness = HardnessNet(body, members, model.size_, squash=model.legacy)

    def loss(self, batch: GroupBatch) -> Tensor:
        """The groups' loss; its gradient has the picking network's own in it too."""
        losses = self.group_losses(batch)
        if self.hardness is None or not self.training:
            return losses.mean()
        legacy = self.model.legacy
        target = (-losses).exp() if legacy else losses
        foretold = self.hardness(self.net.scaler(batch.x), batch.groups)
        extra = hardness_loss(foretold, target, legacy=legacy)
        # The two networks share no parameter, so that one step of a sum is a step of each. What
        # is reported stays the representation's loss.
        return losses.mean() + extra - extra.detach()

    def begin(self, data: GroupData, generator: torch.Generator) -> Pool:
        if self.model.legacy:
            data.confidence = flipped(data.confidence, data.epoch)
        pool = data.pool()
        if not self.model.safety or not data.epoch:
            return pool
        few = safe_pool(pool, self.safe(data), self.model.unsafe_share, generator, data.label.cpu())
        return few if self.sampler.allows(few) else pool

    def safe(self, data: GroupData) -> Tensor:
        """Which of the pool's tasks are safe in the current embedding."""
        order = data.pool().order.to(data.device)
        return safe_tasks(
            data.embedded(self.net, order),
            data.label[order],
            data.confidence[order],
            self.model._neighbors(len(order)),
            margin=self.model.margin,
            legacy=self.model.legacy,
        )

    @torch.no_grad()
    def pick(self, data: GroupData, pool: Pool, n: int, generator: torch.Generator) -> Tensor:
        if self.hardness is None or not data.epoch:
            return super().pick(data, pool, n, generator)
        candidates = super().pick(data, pool, n * self.model.hard_rate, generator)
        batch = data.batch(candidates)
        self.hardness.eval()
        score = self.hardness(self.net.scaler(batch.x), batch.groups)
        self.hardness.train()
        kept = hardest(-score if self.model.legacy else score, n)
        return candidates[kept.cpu()]


def flipped(weight: Tensor, epoch: int) -> Tensor:
    """The published code's weights in its next epoch: those of disputed tasks turn around."""
    return torch.where((weight > 0) & (weight < 1) & (epoch > 0), 1 - weight, weight)
