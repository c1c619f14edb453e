"""Several networks trained side by side as one, and steps over all tasks in parts."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, islice
from typing import Any, Self

import torch
from torch import Tensor
from torch.func import functional_call, stack_module_state, vmap

from crowdwise.nets.batches import Batch, CrowdData
from crowdwise.nets.loop import SHARED, Single, add_in_pairs, gather
from crowdwise.nets.modules import SideBySide
from crowdwise.nets.objective import BatchT, ObjectiveT


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

    def twin(self) -> Self:
        """Return the same parameters in a template that another thread may run."""
        other, own = copy.copy(self), self.template
        tensors = {id(one): one for one in (*own.parameters(), *own.buffers())}
        other.template = copy.deepcopy(own, dict(tensors))  # a memo of what is not copied
        return other

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
    """Steps over all tasks of some data, in parts that depend on the data alone.

    The parts are worked on in threads, each by a single one, and added up in pairs. So results
    are the same bits on any number of threads, and in two, four or eight processes.
    """

    def __init__(self, data: CrowdData) -> None:
        self.data = data
        self.kept: list[Batch] = []

    def __iter__(self) -> Iterator[Batch]:
        """Yield the parts; those that fit into memory together are fetched only once."""
        if not self.data.fits:
            yield from self.data.fixed_parts()
            return
        self.kept = self.kept or list(self.data.fixed_parts())
        yield from self.kept

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

        def of_part(runner: Single[Any], batch: Batch) -> list[Tensor]:
            own = runner(step, batch)
            found = torch.autograd.grad(own.sum(), free, allow_unused=True)
            both = zip(free, found, strict=True)
            return [own.detach(), *(torch.zeros_like(p) if s is None else s for p, s in both)]

        loss, *total = self.data.ranks.add_in_pairs(
            add_in_pairs(list(work_side_by_side(of_part, ensemble, self)))
        )
        if kept is not None:
            kept.keep([loss, *total])
        return loss, total

    def gather(self, ensemble: Single[Any], step: Callable[[Any, Any], Tensor]) -> Tensor:
        """Collect the results of a step for each task, (member, task, …)."""
        return gather(self.data, self, ensemble, step)


def work_side_by_side(
    work: Callable[[Single[Any], Batch], list[Tensor]],
    ensemble: Single[Any],
    parts: Iterable[Batch],
) -> Iterator[list[Tensor]]:
    """Yield the result of each part in turn; as many are in work as there are threads."""
    n_threads, parts = torch.get_num_threads(), iter(parts)
    some = list(islice(parts, n_threads))
    torch.set_num_threads(1)  # several would add up a part in another order
    try:
        if len(some) == 1:
            yield from (work(ensemble, batch) for batch in chain(some, parts))
            return
        runners = [ensemble.twin() for _ in some]
        with ThreadPoolExecutor(
            len(some), initializer=torch.set_num_threads, initargs=(1,)
        ) as pool:
            while some:
                yield from pool.map(work, runners, some)
                some = list(islice(parts, n_threads))
    finally:
        torch.set_num_threads(n_threads)
