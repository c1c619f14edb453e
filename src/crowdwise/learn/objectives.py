"""Objectives: what training raises, given a truth model and a noise model."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from crowdwise.learn.noise import Noise
from crowdwise.nets.batches import Batch, CrowdData
from crowdwise.nets.modules import Objective, SideBySide


class CrowdNet(SideBySide, nn.Module):
    """A truth model and a noise model behind one scaler."""

    def __init__(self, scaler: nn.Module, truth: nn.Module, noise: Noise) -> None:
        super().__init__()
        self.scaler, self.truth, self.noise = scaler, truth, noise

    def log_truth(self, x: Tensor) -> Tensor:
        """Log P(truth | features), (task, truth)."""
        return self.log_classes(self.truth(self.scaler(x)))

    def log_noise(self, x: Tensor, at: Tensor, worker: Tensor) -> Tensor:
        """Log P(label | truth) of each row, (row, truth, label)."""
        return self.noise(self.scaler(x), at, worker)

    def log_labels(self, x: Tensor, at: Tensor, worker: Tensor) -> Tensor:
        """Log P(label | features) of each row, (row, label)."""
        scaled = self.scaler(x)
        log_truth = self.log_classes(self.truth(scaled))
        return self.noise.labels(log_truth, scaled, at, worker)

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Log P(truth | features) per task, and log P(the label given | truth) per row."""
        x = self.scaler(batch.x)
        score = self.noise.score(x, batch.at, batch.worker, batch.label)
        return self.log_classes(self.truth(x)), score


class CrowdObjective(Objective[Batch]):
    """A truth model and a noise model, together with the loss they are trained on."""

    net: CrowdNet
    gold: Tensor

    def __init__(self, net: CrowdNet, data: CrowdData) -> None:
        super().__init__()
        self.net = net
        self.register_buffer("gold", data.gold)

    def loss(self, batch: Batch) -> Tensor:
        """Minus the objective, per annotation."""
        raise TypeError(f"{type(self).__name__} has no loss")

    def scores(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """What the network predicts, with truths that gold rules out at minus infinity."""
        log_truth, score = self.net(batch)
        return log_truth + self.gold[batch.task], score

    def held_out(self, batch: Batch) -> Tensor:
        """Negative log-likelihood of labels, per annotation: what restarts are chosen by."""
        return -per_annotation(*self.scores(batch), batch)

    def posterior(self, batch: Batch) -> Tensor:
        """Log P(truth | features, labels), (task, truth)."""
        return self.net.log_classes(joint(*self.scores(batch), batch))


class PerAnnotation(CrowdObjective):
    """Marginal likelihood with every annotation on its own (SpeeLFC eq. 8, LIA eq. 9)."""

    def loss(self, batch: Batch) -> Tensor:
        return -per_annotation(*self.scores(batch), batch)


class Direct(CrowdObjective):
    """Likelihood of each label by the noise model's own rule, for layers that are not tables.

    Such a rule knows no truth to be held fixed, so known truths train the classifier by
    themselves: once for each label of their task, as they do in :class:`PerAnnotation`.
    """

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
            log_labels * batch.label if batch.label.ndim > 1 else chosen(log_labels, batch.label)
        )
        return -(given.reshape(len(batch.at), -1).sum(dim=-1) * batch.weight).sum() / total(batch)


class PerTask(CrowdObjective):
    """Marginal likelihood with one truth shared by all labels of a task."""

    by = "task"

    def loss(self, batch: Batch) -> Tensor:
        return -per_task(*self.scores(batch), batch)


class Expected(CrowdObjective):
    """EM: the expected complete-data likelihood under the posterior of the last E-step.

    Tasks with neither a label nor gold have no part in it.
    """

    by = "task"
    target: Tensor
    labeled: Tensor

    def __init__(self, net: CrowdNet, data: CrowdData, start: Tensor) -> None:
        super().__init__(net, data)
        self.register_buffer("target", start)  # (task, truth)
        labeled = data.labeled_tasks | torch.isinf(data.gold).any(dim=1)
        self.register_buffer("labeled", labeled.to(start)[:, None])  # (task, 1)

    def loss(self, batch: Batch) -> Tensor:
        log_truth, score = self.net(batch)
        target = self.target[batch.task] * self.labeled[batch.task]
        return -expected(log_truth, score, target, batch)


def best_class(posterior: Tensor) -> Tensor:
    """All mass to the best class of each task, shared alike between tied ones."""
    best = posterior == posterior.amax(dim=-1, keepdim=True)
    return best / best.sum(dim=-1, keepdim=True)


def chosen(log_labels: Tensor, label: Tensor) -> Tensor:
    """Each row's entry for its label, (row, 1)."""
    return log_labels.gather(1, label[:, None])


def joint(log_truth: Tensor, score: Tensor, batch: Batch) -> Tensor:
    """Log P(truth, labels | features), (task, truth)."""
    return log_truth.index_add(0, batch.at, score * batch.weight[:, None])


def per_annotation(log_truth: Tensor, score: Tensor, batch: Batch) -> Tensor:
    """Mean over annotations of log sum_k P(k | x) P(label | k)."""
    # Summing over the outermost axis is faster where it is short.
    both = log_truth.T.index_select(1, batch.at) + score.T  # (truth, row)
    evidence = torch.logsumexp(both, dim=0)  # (row,)
    return (evidence * batch.weight).sum() / total(batch)


def per_task(log_truth: Tensor, score: Tensor, batch: Batch) -> Tensor:
    """Sum over tasks of log sum_k P(k | x) prod_j P(label_j | k), per annotation."""
    return torch.logsumexp(joint(log_truth, score, batch), dim=-1).sum() / total(batch)


def expected(log_truth: Tensor, score: Tensor, target: Tensor, batch: Batch) -> Tensor:
    """Expected log P(truth, labels | x) under ``target``, per annotation."""
    labels = (target[batch.at] * score).sum(dim=-1)  # (row,)
    return ((target * log_truth).sum() + (labels * batch.weight).sum()) / total(batch)


def total(batch: Batch) -> Tensor:
    """Weight of the batch's annotations."""
    return batch.weight.sum().clamp_min(1e-12)
