"""Further objective parts: one truth per task, layers that are not tables, other E-steps."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from crowdwise.learn.parts import (
    EM,
    CrowdNet,
    CrowdObjective,
    ObjectivePart,
    per_task,
    total,
)
from crowdwise.nets.batches import Batch, CrowdData


@dataclass(eq=False, repr=False)
class PerTask(ObjectivePart):
    """Marginal likelihood with one truth shared by all labels of a task."""

    def build(self, net: CrowdNet, data: CrowdData) -> PerTaskLoss:
        return PerTaskLoss(net, data)


class PerTaskLoss(CrowdObjective):
    """Minus the likelihood of all labels of a task together, per annotation."""

    by = "task"
    adds_up = True

    def loss(self, batch: Batch) -> Tensor:
        return -per_task(*self.scores(batch), batch)


@dataclass(eq=False, repr=False)
class PerLabel(ObjectivePart):
    """Likelihood of each label by the noise model's own rule, for layers that are not tables.

    Such a rule has no truth that could be fixed, so known truths train the classifier directly,
    once for each label of their task, as in :class:`PerAnnotation`.
    """

    def build(self, net: CrowdNet, data: CrowdData) -> PerLabelLoss:
        return PerLabelLoss(net, data)


class PerLabelLoss(CrowdObjective):
    """Minus the likelihood of each label by the noise model's own rule, and of known truths."""

    adds_up = True

    def __init__(self, net: CrowdNet, data: CrowdData) -> None:
        super().__init__(net, data)
        self.has_gold = bool(torch.isinf(data.gold).any())

    def loss(self, batch: Batch) -> Tensor:
        loss = self.held_out(batch)
        return loss + self.gold_loss(self.net.log_truth(batch.x), batch) if self.has_gold else loss

    def gold_loss(self, log_truth: Tensor, batch: Batch) -> Tensor:
        """Return minus log P(truth | features) for known truths, per annotation."""
        gold = self.gold[batch.task]
        known = torch.isinf(gold).any(dim=-1, keepdim=True)
        right = torch.where(known, gold.exp() * log_truth, 0.0).sum(dim=-1)  # (task,)
        return -(right[batch.at] * batch.weight).sum() / total(batch)

    def held_out(self, batch: Batch) -> Tensor:
        return -self.given(batch).sum() / total(batch)

    def label_evidence(self, batch: Batch) -> Tensor:
        given = self.given(batch)
        return given.new_zeros(len(batch.task)).index_add(0, batch.at, given)

    def given(self, batch: Batch) -> Tensor:
        """Return log P(given label) by the noise model's own rule, times its weight, (row,)."""
        log_labels = self.net.log_labels(batch.x, batch.at, batch.worker)
        given = (
            log_labels * batch.label
            if batch.label.ndim > 1
            else log_labels.gather(1, batch.label[:, None])
        )
        return given.reshape(len(batch.at), -1).sum(dim=-1) * batch.weight


class HardEM(EM):
    """:class:`EM` whose E-steps give all mass to the best class."""

    def expect(self, log_truth: Tensor, score: Tensor, batch: Batch) -> Tensor:
        return best_class(super().expect(log_truth, score, batch))


class ColumnEM(EM):
    """:class:`EM` with the denominator that is printed in LIA's eqs. 4, 7 and 9.

    E-step, M-step and fine-tuning divide P(label | truth) by its sum over truths, which does not
    follow from the model; the authors' final code omits it.
    """

    def weigh(self, score: Tensor) -> Tensor:
        return score - torch.logsumexp(score, dim=-1, keepdim=True)


class LabelsOnlyEM(EM):
    """:class:`EM` without the classifier in the E-step, as in LIA's published code."""

    def expect(self, log_truth: Tensor, score: Tensor, batch: Batch) -> Tensor:
        known = torch.where(
            torch.isinf(log_truth), log_truth, 0.0
        )  # -inf where gold rules a truth out
        return super().expect(known, score, batch)


def best_class(posterior: Tensor) -> Tensor:
    """Put all mass on the best class of each task, divided equally between tied ones."""
    best = posterior == posterior.amax(dim=-1, keepdim=True)
    return best / best.sum(dim=-1, keepdim=True)
