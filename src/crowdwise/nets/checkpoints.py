"""Checkpoints of training in a folder, so that a killed fit resumes where it was.

A descent to the optimum is determined by the sums of its steps, so these are written as they are
computed; an epoch of batches leaves the state of the network and of the optimizer. Starting the
same fit again, in as many processes as there are then, reads both.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from torch import Tensor
from torch import distributed as dist

from crowdwise.annotations import Annotations
from crowdwise.errors import ParameterError, explain
from crowdwise.inference.engines.record import Record
from crowdwise.nets.batches import CrowdData
from crowdwise.nets.features import Features
from crowdwise.nets.loop import Alone, Loop
from crowdwise.nets.mapped import MappedRows
from crowdwise.nets.ranks import digest, find_ranks
from crowdwise.typing import Array, Ints


@dataclass(frozen=True)
class Place:
    """The folder for checkpoints, and the seconds between two writings of a network."""

    folder: Path
    every: float


PLACE: ContextVar[Place | None] = ContextVar("checkpoints", default=None)


@contextmanager
def checkpoints(folder: str | Path, every: float = 30.0) -> Iterator[None]:
    """Keep checkpoints of training in a folder, and resume from them after a kill.

    This holds for every learner that is fitted inside. The same data, parameters and seed must
    be given again; a fit that completes leaves nothing behind.

    Parameters
    ----------
    folder : str or path
        The folder to write to; if several processes train together, all must see it.
    every : float, default=30
        Seconds between two writings of a network that is trained in batches.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from crowdwise.learn import SpeeLFC, checkpoints
    >>> X, votes = np.eye(4), [[0, 0], [1, 1], [0, 0], [1, 1]]  # tasks x workers
    >>> with tempfile.TemporaryDirectory() as folder, checkpoints(folder):
    ...     labels = SpeeLFC(random_state=0).fit(X, votes).predict(X)
    """
    token = PLACE.set(Place(Path(folder), every))
    try:
        yield
    finally:
        PLACE.reset(token)


@dataclass
class Checkpoint:
    """The results of one fit so far; the first process writes them."""

    folder: Path
    every: float
    ranks: Alone
    sums: Record | None = None
    n_known: int = 0  # sums from an earlier start
    n_sums: int = 0
    n_loops: int = 0
    written: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        if self.ranks.rank == 0:
            self.sums = Record(self.folder / "sums.bin")
            self.n_known = len(self.sums)
        self.n_known = int(self.ranks.add([torch.tensor([float(self.n_known)])])[0])

    def recall(self, size: int) -> Tensor | None:
        """Return the next sum, of this many numbers, if it was computed before."""
        if self.n_sums >= self.n_known:
            return None
        row = torch.zeros(size, dtype=torch.float64)
        if self.sums is not None:
            row = torch.from_numpy(self.sums.read(self.n_sums))
        self.n_sums += 1
        return self.ranks.add([row])[0]

    def keep(self, parts: Sequence[Tensor]) -> None:
        """Write down the next sum."""
        self.n_sums += 1
        if self.sums is not None:
            row = torch.cat([part.reshape(-1) for part in parts])
            self.sums.append(row.detach().double().cpu().numpy())

    def open(self) -> LoopFile:
        """Return the file of the next loop over batches."""
        self.n_loops += 1
        return LoopFile(self, self.folder / f"loop-{self.n_loops}.pt")

    def close(self) -> None:
        """Delete everything, since the fit is complete."""
        if self.ranks.rank == 0:
            shutil.rmtree(self.folder, ignore_errors=True)


@dataclass
class LoopFile:
    """The state of a loop over batches, written whole or not at all."""

    home: Checkpoint
    path: Path

    def resume(self, loop: Loop[Any, Any]) -> tuple[int, int]:
        """Restore the last state; return its phase, and how many of its epochs are done."""
        state = self._load()
        if state is None:
            return 0, 0
        with torch.no_grad():
            for name, value in {**loop.ensemble.parameters, **loop.ensemble.buffers}.items():
                value.copy_(state["numbers"][name])
        loop.optimizer.load_state_dict(state["optimizer"])
        if loop.scheduler is not None:
            loop.scheduler.load_state_dict(state["scheduler"])
        loop.generator.set_state(state["generator"])
        torch.set_rng_state(state["random"])
        loop.best_state, loop.best_value = state["best_state"], state["best_value"]
        loop.since_best = state["since_best"]
        loop.history.loss, loop.history.held_out = state["loss"], state["held_out"]
        return state["phase"], state["done"]

    def save(self, loop: Loop[Any, Any], phase: int, done: int) -> None:
        """Write the state in place of the last one, if it is time to; the first process does."""
        if self.home.ranks.rank or time.monotonic() - self.home.written < self.home.every:
            return
        numbers = {**loop.ensemble.parameters, **loop.ensemble.buffers}
        state = {
            "phase": phase,
            "done": done,
            "numbers": {name: value.detach() for name, value in numbers.items()},
            "optimizer": loop.optimizer.state_dict(),
            "scheduler": None if loop.scheduler is None else loop.scheduler.state_dict(),
            "generator": loop.generator.get_state(),
            "random": torch.get_rng_state(),
            "best_state": loop.best_state,
            "best_value": loop.best_value,
            "since_best": loop.since_best,
            "loss": loop.history.loss,
            "held_out": loop.history.held_out,
        }
        draft = self.path.with_suffix(".draft")
        torch.save(state, draft)
        os.replace(draft, self.path)  # noqa: PTH105
        self.home.written = time.monotonic()

    def _load(self) -> dict[str, Any] | None:
        """Load the last state written, the same in all processes."""
        found = [
            self.path.read_bytes() if self.home.ranks.rank == 0 and self.path.exists() else b""
        ]
        if self.home.ranks.size > 1:
            dist.broadcast_object_list(found)
        if not found[0]:
            return None
        state: dict[str, Any] = torch.load(io.BytesIO(found[0]), weights_only=True)
        return state


def share(
    data: CrowdData, model: BaseEstimator, votes: Annotations, gold: Ints | None
) -> CrowdData:
    """Return the data, with the processes that learn from them and their checkpoint."""
    ranks, own = find_ranks(), data.worker_features
    names = as_bytes((votes.classes.tolist(), data.features.shape))
    columns = [votes.task, votes.worker, votes.label, votes.weight, votes.soft, gold, names]
    columns.append(None if own is None else own.numpy(force=True))
    labels = digest(*(column for column in columns if column is not None))
    mark = labels, digest_features(data.features)
    sizes = *votes.shape, votes.n_classes, votes.n_annotations
    ranks.agree("features, labels or gold", *sizes, *mark)
    ranks.agree("parameters", digest(as_bytes(describe(model))))
    return replace(data, ranks=ranks, checkpoint=open_checkpoint(model, ranks, *sizes, *mark))


def describe(model: BaseEstimator) -> str:
    """Return the parameters that decide what is learned, in words."""
    known = {
        name: type(value).__name__ if hasattr(value, "get_params") else value
        for name, value in model.get_params().items()
        if not name.endswith(("__device", "__verbose"))
    }
    return re.sub(" at 0x[0-9a-fA-F]+", "", f"{type(model).__name__} {known}")


def digest_features(features: Features) -> float:
    """Hash the rows, or 1,000 of those on disk; those of a dataset may differ each time."""
    source, order = features.source, [] if features.order is None else [features.order]
    if isinstance(source, Tensor):
        return digest(source.numpy(force=True), *order)
    if issparse(source):
        return digest(source.data, source.indices, source.indptr, *order)
    if isinstance(source, MappedRows):
        some = np.unique(np.linspace(0, len(source) - 1, min(len(source), 1000)).astype(np.int64))
        return digest(source.rows(some).numpy(), *order)
    return digest(*order)


def as_bytes(thing: object) -> Array:
    return np.frombuffer(str(thing).encode(), np.uint8)


def open_checkpoint(model: BaseEstimator, ranks: Alone, *numbers: float) -> Checkpoint | None:
    """Open the checkpoint of a fit with these numbers, if one is wanted."""
    place = PLACE.get()
    if place is None:
        return None
    if model.get_params().get("random_state", 0) is None:
        raise ParameterError(
            explain(
                f"{type(model).__name__}(random_state=None) would start over with different random "
                "numbers each time it is run.",
                fix="give a seed, such as random_state=0",
            )
        )
    name = f"{type(model).__name__}-{int(digest(as_bytes((describe(model), numbers)))):08x}"
    return Checkpoint(place.folder / name, place.every, ranks)
