"""Several processes that train one model together, as started by ``torchrun``.

All of them run the same ``fit`` on the same annotations, and draw the same random numbers. Each
works on its share of the tasks of a batch, whose features no other fetches; the results of steps
are added. So all processes learn the same as one alone would, up to rounding.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import threading
import zlib
from collections.abc import Sequence
from datetime import timedelta
from importlib import import_module

import numpy as np
import torch
from torch import Tensor
from torch import distributed as dist

from crowdwise.errors import CrowdwiseError, ParameterError, explain
from crowdwise.nets.loop import ALONE, Alone, add_in_pairs, has_company
from crowdwise.typing import Array

PATIENCE = timedelta(minutes=10)  # after which a process counts as lost
NEEDED = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


class RankError(CrowdwiseError, RuntimeError):
    """The processes that train together do not match."""


class Ranks(Alone):
    """One of the processes that train together."""

    def add(self, parts: Sequence[Tensor]) -> list[Tensor]:
        """Return sums over all processes, the same bits on each of them, in one message."""
        flat = as_message(parts)
        dist.all_reduce(flat)
        return from_message(flat, parts)

    def add_in_pairs(self, parts: Sequence[Tensor]) -> list[Tensor]:
        flat = as_message(parts)
        all_of_them = [torch.empty_like(flat) for _ in range(self.size)]
        dist.all_gather(all_of_them, flat)
        return from_message(add_in_pairs([[one] for one in all_of_them])[0], parts)

    def same_rng(self, rng: np.random.RandomState) -> np.random.RandomState:
        """Return random numbers that are the same in all processes: those of the first."""
        own = torch.tensor([rng.randint(2**31 - 1) if self.rank == 0 else 0])
        own = own.to(device_of_messages())
        dist.all_reduce(own)
        return np.random.RandomState(int(own))

    def add_slopes(self, loss: Tensor, parameters: Sequence[Tensor]) -> Tensor:
        """Return the loss over all processes, and add up the parameters' gradients."""
        there = loss.new_tensor([p.grad is not None for p in parameters])
        slopes = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
        loss, there, *slopes = self.add([loss, there, *slopes])
        for parameter, slope, number in zip(parameters, slopes, there.tolist(), strict=True):
            parameter.grad = slope if number else None
        return loss

    def agree(self, what: str, *numbers: float) -> None:
        """Refuse to continue if other processes have other numbers."""
        own = torch.tensor(numbers, dtype=torch.float64, device=device_of_messages())
        all_of_them = [torch.empty_like(own) for _ in range(self.size)]
        dist.all_gather(all_of_them, own)
        for rank, other in enumerate(all_of_them):
            if not torch.equal(own, other):
                raise RankError(
                    explain(
                        f"Process {self.rank} of {self.size} does not match process "
                        f"{rank}: they differ in {what}.",
                        found=f"{own.tolist()} here and {other.tolist()} there",
                        expected="the same script, data and parameters in all of them",
                        fix="give them the same; or, for a separate fit in each process, call "
                        "destroy_process_group first",
                    )
                )


def find_ranks() -> Alone:
    """Find the processes that train together: an existing group, or torchrun's."""
    if not has_company():
        return ALONE
    if threading.current_thread() is not threading.main_thread():
        return ALONE  # others may be running, in any order
    if not dist.is_initialized():
        if (
            multiprocessing.current_process().name != "MainProcess"
        ):  # not the process that was launched
            return ALONE
        missing = [name for name in NEEDED if name not in os.environ]
        if missing:
            raise ParameterError(
                explain(
                    f"WORLD_SIZE is set, but not {' and '.join(missing)}.",
                    expected="all of " + ", ".join(NEEDED),
                    fix="start with torchrun --nproc-per-node 2 script.py, or unset WORLD_SIZE",
                )
            )
        # Imported later, the defaults of its functions would keep the group, and with it threads
        # that call the interpreter after its end, which aborts the process.
        import_module("torch.distributed.nn")
        dist.init_process_group(timeout=PATIENCE)
        atexit.register(leave)
    size = dist.get_world_size()
    return Ranks(dist.get_rank(), size) if size > 1 else ALONE


def leave() -> None:
    """Leave the group that was joined here, and end its threads."""
    if dist.is_initialized():
        dist.destroy_process_group()


def as_message(parts: Sequence[Tensor]) -> Tensor:
    """Put numbers in a row, where messages have to be."""
    flat = torch.cat([part.detach().reshape(-1).to(parts[0]) for part in parts])
    return flat.to(device_of_messages()) if flat.device.type == "cpu" else flat


def from_message(flat: Tensor, parts: Sequence[Tensor]) -> list[Tensor]:
    """Give a row of numbers the shapes of these parts."""
    cut = torch.split(flat, [part.numel() for part in parts])
    return [new.reshape(old.shape).to(old) for new, old in zip(cut, parts, strict=True)]


def device_of_messages() -> torch.device:
    """Return the device where small messages have to be."""
    gpu = dist.get_backend() == "nccl"
    return torch.device("cuda", torch.cuda.current_device()) if gpu else torch.device("cpu")


def digest(*columns: Array) -> float:
    """Hash columns to a number that a float holds exactly, to compare them between processes."""
    code = 0
    for column in columns:
        code = zlib.crc32(np.ascontiguousarray(column).reshape(-1).view(np.uint8).data, code)
    return float(code)
