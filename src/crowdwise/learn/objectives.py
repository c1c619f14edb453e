"""Further objective parts: one truth per task, layers that are not tables, and EM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from crowdwise.base.params import at_least, one_of
from crowdwise.learn.parts import (
    CrowdNet,
    CrowdObjective,
    ObjectivePart,
    joint,
    per_annotation,
    total,
)
from crowdwise.nets.batches import Batch, CrowdData, label_shares
from crowdwise.nets.loop import Phase


@dataclass(eq=False, repr=False)
class PerTask(ObjectivePart):
    """Marginal likelihood with one truth shared by all labels of a task."""

    def build(self, net: CrowdNet, data: CrowdData) -> PerTaskLoss:
        return PerTaskLoss(net, data)


class PerTaskLoss(CrowdObjective):
    """Minus the likelihood of all labels of a task together, per annotation."""

    by = "task"

    def loss(self, batch: Batch) -> Tensor:
        return -per_task(*self.scores(batch), batch)


@dataclass(eq=False, repr=False)
class PerLabel(ObjectivePart):
    """Likelihood of each label by the noise model's own rule, for layers that are not tables.

    Such a rule knows no truth to be held fixed, so known truths train the classifier by
    themselves: once for each label of their task, as they do in :class:`PerAnnotation`.
    """

    def build(self, net: CrowdNet, data: CrowdData) -> PerLabelLoss:
        return PerLabelLoss(net, data)


class PerLabelLoss(CrowdObjective):
    """Minus the likelihood of each label by the noise model's own rule, and of known truths."""

    def __init__(self, net: CrowdNet, data: CrowdData) -> None:
        super().__init__(net, data)
        self.has_gold = bool(torch.isinf(data.gold).any())

    def loss(self, batch: Batch) -> Tensor:
        loss = self.held_out(batch)
        return loss + self.gold_loss(self.net.log_truth(batch.x), batch) if self.has_gold else loss

    def gold_loss(self, log_truth: Tensor, batch: Batch) -> Tensor:
        """Minus log P(truth | features) where the truth is known, per annotation."""
        gold = self.gold[batch.task]
        known = torch.isinf(gold).any(dim=-1, keepdim=True)
        right = torch.where(known, gold.exp() * log_truth, 0.0).sum(dim=-1)  # (task,)
        return -(right[batch.at] * batch.weight).sum() / total(batch)

    def held_out(self, batch: Batch) -> Tensor:
        log_labels = self.net.log_labels(batch.x, batch.at, batch.worker)
        given = (
            log_labels * batch.label
            if batch.label.ndim > 1
            else log_labels.gather(1, batch.label[:, None])
        )
        return -(given.reshape(len(batch.at), -1).sum(dim=-1) * batch.weight).sum() / total(batch)


@dataclass(eq=False, repr=False)
class EM(ObjectivePart):
    """Expectation maximization from the shares of labels, then the marginal likelihood.

    A round trains on the expected likelihood under each task's posterior: at first its share of
    labels, then what the model makes of its features and labels. Networks go on from round to
    round.

    Parameters
    ----------
    rounds, epochs : int, default=5 and 40
        EM rounds, and epochs of the M-step in each.
    marginal : {"annotation", "task"} or None, default="annotation"
        Fine-tuning after EM, on every annotation alone (LIA eq. 9) or on all labels of a task
        with one shared truth (the likelihood of the model); None for none.
    marginal_epochs : int, default=100
        Epochs of fine-tuning.
    """

    rounds: int = 5
    epochs: int = 40
    marginal: str | None = "annotation"
    marginal_epochs: int = 100

    _parameter_constraints = {
        "rounds": [at_least(0)],
        "epochs": [at_least(1)],
        "marginal": [one_of("annotation", "task"), None],
        "marginal_epochs": [at_least(0)],
    }

    def build(self, net: CrowdNet, data: CrowdData) -> EMLoss:
        return EMLoss(net, data, self)

    def expect(self, log_truth: Tensor, score: Tensor, batch: Batch) -> Tensor:
        """E-step: P(truth | features, labels), (task, truth)."""
        return torch.log_softmax(joint(log_truth, score, batch), dim=-1).exp()


class HardEM(EM):
    """:class:`EM` whose E-steps give all mass to the best class."""

    def expect(self, log_truth: Tensor, score: Tensor, batch: Batch) -> Tensor:
        return best_class(super().expect(log_truth, score, batch))


class ColumnEM(EM):
    """:class:`EM` with the E-step as LIA's eq. 4 is printed.

    It divides by the sum over truths at the given label, which does not follow from the model;
    the authors' final code leaves it out.
    """

    def expect(self, log_truth: Tensor, score: Tensor, batch: Batch) -> Tensor:
        column = torch.logsumexp(score, dim=-1, keepdim=True)
        return super().expect(log_truth, score - column, batch)


class LabelsOnlyEM(EM):
    """:class:`EM` without the classifier in the E-step, as in LIA's published code."""

    def expect(self, log_truth: Tensor, score: Tensor, batch: Batch) -> Tensor:
        known = torch.where(torch.isinf(log_truth), log_truth, 0.0)  # what gold rules out
        return super().expect(known, score, batch)


class EMLoss(CrowdObjective):
    """Minus the expected likelihood under the posterior of the last E-step.

    Tasks with neither a label nor gold have no part in it.
    """

    by = "task"
    target: Tensor
    labeled: Tensor

    def __init__(self, net: CrowdNet, data: CrowdData, em: EM) -> None:
        super().__init__(net, data)
        start = label_shares(data)
        self.em = em
        self.register_buffer("target", start)  # (task, truth)
        labeled = data.labeled_tasks | torch.isinf(data.gold).any(dim=1)
        self.register_buffer("labeled", labeled.to(start)[:, None])  # (task, 1)

    def phases(self, epochs: int) -> Sequence[Phase[EMLoss, Batch]]:
        em = self.em  # whose epochs count, not those of the settings
        later: Phase[EMLoss, Batch] = Phase(em.epochs, expect=EMLoss.e_step)
        rounds: list[Phase[EMLoss, Batch]] = [Phase(em.epochs), *[later] * (em.rounds - 1)]
        tuned = [Phase(em.marginal_epochs, loss=EMLoss.marginal)] if em.marginal else []
        return [*rounds[: em.rounds], *tuned]

    def loss(self, batch: Batch) -> Tensor:
        log_truth, score = self.net(batch)
        target = self.target[batch.task] * self.labeled[batch.task]
        return -expected(log_truth, score, target, batch)

    def e_step(self, batch: Batch) -> Tensor:
        """P(truth | features, labels), (task, truth)."""
        return self.em.expect(*self.scores(batch), batch)

    def marginal(self, batch: Batch) -> Tensor:
        """The loss of fine-tuning."""
        rule = per_task if self.em.marginal == "task" else per_annotation
        return -rule(*self.scores(batch), batch)


def best_class(posterior: Tensor) -> Tensor:
    """All mass to the best class of each task, shared alike between tied ones."""
    best = posterior == posterior.amax(dim=-1, keepdim=True)
    return best / best.sum(dim=-1, keepdim=True)


def per_task(log_truth: Tensor, score: Tensor, batch: Batch) -> Tensor:
    """Sum over tasks of log sum_k P(k | x) prod_j P(label_j | k), per annotation."""
    return torch.logsumexp(joint(log_truth, score, batch), dim=-1).sum() / total(batch)


def expected(log_truth: Tensor, score: Tensor, target: Tensor, batch: Batch) -> Tensor:
    """Expected log P(truth, labels | x) under ``target``, per annotation."""
    labels = (target[batch.at] * score).sum(dim=-1)  # (row,)
    return ((target * log_truth).sum() + (labels * batch.weight).sum()) / total(batch)
