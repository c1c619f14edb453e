"""Regularization: a penalty on the truth model and a prior on the noise model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor, nn

from crowdwise.learn.parts import CrowdNet, CrowdObjective
from crowdwise.nets.batches import Batch, CrowdData

Step = Callable[[CrowdObjective, Batch], Tensor]


class Restraint(nn.Module):
    """A penalty, a prior, and the tasks that may be learned from.

    ``penalty`` is relative to the mean loss of a label; ``prior`` to the sum over all labels, as
    one over the variance of the noise model's parameters around their initial values.
    """

    penalty: Tensor
    prior: Tensor
    keep: Tensor

    def __init__(
        self, net: CrowdNet, data: CrowdData, penalty: float, prior: float, keep: Tensor
    ) -> None:
        super().__init__()
        self.register_buffer("penalty", torch.tensor(float(penalty), device=data.device))
        self.register_buffer("prior", prior / n_labels(data))
        self.register_buffer("keep", keep.to(data.weight))  # (task,): 1 to learn from, else 0
        for name, parameter in net.noise.named_parameters():
            self.register_buffer(origin_of(name), parameter.detach().clone())

    def forward(self, net: CrowdNet) -> Tensor:
        """Return the cost of truth weights and of changes to the noise model, per label."""
        size, moved = torch.zeros_like(self.penalty), torch.zeros_like(self.prior)
        for parameter in net.truth.parameters():
            if parameter.ndim > 1:  # intercepts are not penalized
                size = size + parameter.square().sum()
        for name, parameter in net.noise.named_parameters():
            moved = moved + (parameter - self.get_buffer(origin_of(name))).square().sum()
        return 0.5 * (self.penalty * size + self.prior * moved)


def n_labels(data: CrowdData) -> Tensor:
    """Return the number of labels, by weight."""
    return data.weight.sum().clamp_min(1.0)


def origin_of(name: str) -> str:
    """Name the buffer with the initial value of a noise-model parameter."""
    return "origin_" + name.replace(".", "_")


def restrain(
    objective: CrowdObjective, data: CrowdData, penalty: float, prior: float, keep: Tensor
) -> CrowdObjective:
    """Regularize an objective."""
    objective.restraint = Restraint(objective.net, data, penalty, prior, keep)
    return objective


def restrained(step: Step) -> Step:
    """Return the step's loss on the tasks to learn from, plus penalty and prior."""

    def penalized(objective: CrowdObjective, batch: Batch) -> Tensor:
        loss = on_kept_tasks(step)(objective, batch)
        return loss + restraint_of(objective)(objective.net) if batch.leads else loss

    return penalized


def on_kept_tasks(step: Step) -> Step:
    """Return the same step, with weight 0 for labels of tasks that are not learned from."""

    def masked(objective: CrowdObjective, batch: Batch) -> Tensor:
        keep, every = restraint_of(objective).keep, batch.every
        weight = batch.weight * keep[batch.task][batch.at]
        if every is not None:
            every = replace(every, weight=every.weight * keep[every.task])
        return step(objective, replace(batch, weight=weight, every=every))

    return masked


def restraint_of(objective: CrowdObjective) -> Restraint:
    """Return the regularization of an objective."""
    found = objective.restraint
    assert isinstance(found, Restraint)
    return found
