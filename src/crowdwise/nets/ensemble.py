"""Several networks trained side by side as one, and steps over all tasks in parts."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.func import functional_call, stack_module_state, vmap

from crowdwise.nets.loop import SHARED, Single, gather
from crowdwise.nets.modules import SideBySide
from crowdwise.nets.objective import BatchT, Data, ObjectiveT


class Ensemble(Single[ObjectiveT]):
    """Several objectives of one shape, run as one."""

    def __init__(self, members: Sequence[ObjectiveT]) -> None:
        self.members = list(members)
        self.template = copy.deepcopy(members[0])
        for part in self.template.modules():
            if isinstance(part, SideBySide):
                part.side_by_side = True
        self.parameters, self.buffers = stack_module_state(self.members)
        own = dict(self.template.named_buffers())
        # Scaled features and the like are then computed once, not by every member.
        alike = {name for name in own if name.startswith(SHARED)}
        self.buffers.update({name: own[name] for name in alike})
        self.axes = {name: None if name in alike else 0 for name in own}

    def __len__(self) -> int:
        return len(self.members)

    def __call__(self, step: Callable[[ObjectiveT, BatchT], Tensor], batch: BatchT) -> Tensor:
        def one(parameters: dict[str, Tensor], buffers: dict[str, Tensor]) -> Tensor:
            return functional_call(self.template, (parameters, buffers), (step, batch))

        run = vmap(one, in_dims=(0, self.axes), randomness="different")
        return run(self.parameters, self.buffers)

    @torch.no_grad()
    def set_target(self, target: Tensor) -> None:
        self.buffers["target"].copy_(target)

    @torch.no_grad()
    def keep(self, best: dict[str, Tensor], better: Tensor) -> None:
        for name, value in self.learned().items():
            rows = better.to(value.device).reshape(-1, *[1] * (value.ndim - 1))
            torch.where(rows, value, best[name], out=best[name])

    @torch.no_grad()
    def member(self, number: int) -> ObjectiveT:
        chosen = self.members[number]
        state = {**self.parameters, **self.buffers}
        for name, value in (*chosen.named_parameters(), *chosen.named_buffers()):
            if self.axes.get(name, 0) == 0:
                value.copy_(state[name][number])
        return chosen


class AllTasks:
    """Steps over all tasks of some data; a single part is fetched only once."""

    def __init__(self, data: Data[Any]) -> None:
        self.data = data
        self.kept: list[Any] = []

    def __iter__(self) -> Iterator[Any]:
        if self.kept:
            yield from self.kept
            return
        first, n = None, 0
        for batch in self.data.parts():
            first, n = batch, n + 1
            yield batch
        if n == 1:
            self.kept = [first]

    def slopes(
        self, ensemble: Single[Any], step: Callable[[Any, Any], Tensor], free: Sequence[Tensor]
    ) -> tuple[Tensor, list[Tensor]]:
        """Return the loss of every member, and its gradient."""
        sizes = [len(ensemble), *(p.numel() for p in free)]
        kept = self.data.checkpoint
        known = None if kept is None else kept.recall(sum(sizes))
        if known is not None:
            cut = torch.split(known, sizes)
            rows = zip(cut[1:], free, strict=True)
            return cut[0].to(free[0]), [row.to(p).reshape(p.shape) for row, p in rows]
        loss: Tensor | None = None
        total: list[Tensor] = []
        for batch in self:
            own = ensemble(step, batch)
            found = torch.autograd.grad(own.sum(), free, allow_unused=True)
            slope = [
                torch.zeros_like(p) if s is None else s for p, s in zip(free, found, strict=True)
            ]
            total = [a + b for a, b in zip(total, slope, strict=True)] if total else slope
            loss = own.detach() if loss is None else loss + own.detach()
        assert loss is not None
        loss, *total = self.data.ranks.add([loss, *total])
        if kept is not None:
            kept.keep([loss, *total])
        return loss, total

    def gather(self, ensemble: Single[Any], step: Callable[[Any, Any], Tensor]) -> Tensor:
        """Collect the results of a step for each task, (member, task, …)."""
        return gather(self.data, self, ensemble, step)
