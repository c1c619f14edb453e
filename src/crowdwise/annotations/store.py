"""Annotations on disk, for data larger than memory: a folder that is read in blocks.

=================  ==========================================================================
``about.json``     format version, the numbers of tasks, annotations and rows without a label,
                    and the type of ``sizes.bin``
``names.npz``      ``workers`` and ``classes``, sorted; ``pair_worker`` and ``pair_label`` of the
                   (worker, label) pairs that occur, in rising order
``sizes.bin``      annotations of each task, as 1, 2 or 4 bytes
``codes.bin``      for each annotation, task by task, the position of its pair: 4 bytes, little
                    endian
``weights.bin``    the weight of each annotation as a 4-byte float, unless all count equally
``sources.json``   the columns, and name, size and time of the source files
``starts.npy``     number of the first annotation of every 65,536th task, and of the end
``tasks.parquet``  the names of the tasks, in order
=================  ==========================================================================
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Self
from zipfile import BadZipFile

import numpy as np

from crowdwise.annotations.columns import Cells
from crowdwise.annotations.pairs import Pairs
from crowdwise.errors import CrowdwiseError, FileError, FormatError, MissingExtraError, explain
from crowdwise.typing import Array, Floats, Ints

VERSION = 1
WHAT = "crowdwise annotations"
STRIDE = 1 << 16  # tasks between two entries of starts.npy
SIZES = ("uint8", "uint16", "uint32")


@dataclass(frozen=True, eq=False, repr=False)
class StoredAnnotations:
    """Annotations in a folder; only the names of workers and classes are in memory.

    Blockwise methods fit them like :class:`~crowdwise.Annotations`. The
    posterior is then computed block by block when it is written
    (:func:`crowdwise.io.stream_labels`).
    """

    folder: Path
    n_tasks: int
    n_annotations: int
    workers: Array
    classes: Array
    pairs: Pairs
    size_type: str
    n_left_out: int = 0  # rows of the files without a label or with weight 0
    weighted: bool = False  # whether each annotation has a weight

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Open the annotations in an existing folder."""
        home = Path(folder)
        try:
            about = json.loads((home / "about.json").read_text())
            stored = BytesIO((home / "names.npz").read_bytes())
            with np.load(stored, allow_pickle=False) as names:
                workers, classes = names["workers"], names["classes"]
                sizes = len(workers), len(classes)
                pairs = Pairs(names["pair_worker"], names["pair_label"], *sizes)
            known = about["version"] == VERSION and about["size_type"] in SIZES
            counts = int(about["n_tasks"]), int(about["n_annotations"])
            kind, left_out = str(about["size_type"]), int(about.get("left_out", 0))
            weighted = about.get("weighted", False) is True
            found = cls(home, *counts, workers, classes, pairs, kind, left_out, weighted)
            whole = known and found._is_whole()
        except (OSError, KeyError, ValueError, TypeError, EOFError, BadZipFile) as error:
            raise _no_store(home, f"{type(error).__name__}: {error}") from error
        if not whole:
            raise _no_store(home, "it has another version, or is incomplete")
        return found

    @property
    def n_workers(self) -> int:
        return len(self.workers)

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    def __repr__(self) -> str:
        return (
            f"<StoredAnnotations: {self.n_annotations:,} annotations of {self.n_tasks:,} tasks by "
            f"{self.n_workers:,} workers, {self.n_classes:,} classes, in {self.folder}>"
        )

    def cells(self, start: int, stop: int) -> Cells:
        """Read the cells of some tasks from disk."""
        first, sizes = self._first(start), self._sizes(start, stop)
        indptr = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        count = int(indptr[-1])
        with (self.folder / "codes.bin").open("rb") as file:
            code = np.fromfile(file, dtype="<i4", count=count, offset=4 * first)
        if len(code) < count or (count and not 0 <= code.min() <= code.max() < len(self.pairs)):
            raise _no_store(self.folder, f"pair numbers in tasks {start:,} to {stop:,}")
        return Cells(indptr, code, self._weights(first, count) if self.weighted else None)

    def _weights(self, first: int, count: int) -> Floats:
        with (self.folder / "weights.bin").open("rb") as file:
            weight = np.fromfile(file, dtype="<f4", count=count, offset=4 * first)
        if len(weight) < count or (count and not 0 <= weight.min() <= weight.max() < np.inf):
            raise _no_store(self.folder, f"weights of annotations from {first:,} on")
        return weight.astype(np.float64)

    def find(self, cell: Array) -> Ints:
        """Return the first task that begins at or after a cell."""
        found = []
        for target in np.atleast_1d(cell):
            chunk = max(int(np.searchsorted(self._starts, target)) - 1, 0)
            low = chunk * STRIDE
            sizes = self._sizes(low, min(low + STRIDE, self.n_tasks))
            begins = self._starts[chunk] + np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
            found.append(low + int(np.searchsorted(begins, target)))
        return np.array(found, dtype=np.int64)

    def task_names(self) -> Iterator[Array]:
        """Yield the names of the tasks in chunks."""
        try:
            with _parquet().ParquetFile(self.folder / "tasks.parquet") as file:
                if file.metadata.num_rows != self.n_tasks:
                    raise _no_store(self.folder, "tasks.parquet names other tasks")
                for batch in file.iter_batches(batch_size=STRIDE):
                    yield batch.column(0).to_numpy(zero_copy_only=False)
        except (OSError, ValueError) as error:
            if isinstance(error, CrowdwiseError):
                raise
            raise _no_store(self.folder, f"tasks.parquet: {error}") from error

    def _sizes(self, start: int, stop: int) -> Ints:
        kind = np.dtype(self.size_type)
        with (self.folder / "sizes.bin").open("rb") as file:
            return np.fromfile(file, dtype=kind, count=stop - start, offset=start * kind.itemsize)

    def _first(self, task: int) -> int:
        """Return the number of a task's first annotation."""
        chunk = task // STRIDE
        before = self._sizes(chunk * STRIDE, task).sum(dtype=np.int64)
        return int(self._starts[chunk] + before)

    @cached_property
    def _starts(self) -> Ints:
        return np.asarray(np.load(self.folder / "starts.npy", allow_pickle=False))

    def _is_whole(self) -> bool:
        """Return whether files have the right sizes, and numbers are in range."""
        kind, home, pairs = np.dtype(self.size_type), self.folder, self.pairs
        wanted = {"sizes.bin": kind.itemsize * self.n_tasks, "codes.bin": 4 * self.n_annotations}
        if self.weighted:
            wanted["weights.bin"] = 4 * self.n_annotations
        names, starts = (self.workers, self.classes), self._starts
        n_starts = -(-self.n_tasks // STRIDE) + 1
        return (
            all((home / name).stat().st_size == size for name, size in wanted.items())
            and all(own.ndim == 1 and len(np.unique(own)) == len(own) for own in names)
            and pairs.is_sound
            and starts.dtype.kind in "iu"
            and starts.shape == (n_starts,)
            and (starts[0], starts[-1]) == (0, self.n_annotations)
            and bool((np.diff(starts) >= 0).all())
        )


class StoreWriter:
    """Writes tasks, one block after another."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.n_tasks, self.n_annotations, self.largest = folder, 0, 0, 0
        self.names: Any = None
        self.weights: Any = None
        self.codes = (folder / "codes.bin").open("wb")
        self.sizes = (folder / "sizes.u32").open("wb")

    def append(
        self, tasks: Array | None, sizes: Ints, codes: Ints, weights: Array | None = None
    ) -> None:
        """Add some tasks, with the codes of their annotations, task by task.

        Without names no labels can be written, and pyarrow is not needed. Either all
        annotations have weights, or none.
        """
        if weights is not None:
            self.weights = self.weights or (self.folder / "weights.bin").open("wb")
            weights.astype("<f4").tofile(self.weights)
        if tasks is not None:
            self._append_names(tasks)
        sizes.astype("<u4").tofile(self.sizes)
        codes.astype("<i4", copy=False).tofile(self.codes)
        self.n_tasks, self.n_annotations = (
            self.n_tasks + len(sizes),
            self.n_annotations + len(codes),
        )
        self.largest = max(self.largest, int(sizes.max(initial=0)))

    def _append_names(self, tasks: Array) -> None:
        parquet = _parquet()
        import pyarrow

        table = pyarrow.table({"task": tasks})
        if self.names is None:
            self.names = parquet.ParquetWriter(self.folder / "tasks.parquet", table.schema)
        self.names.write_table(table)

    def finish(self, workers: Array, classes: Array, pairs: Pairs, left_out: int = 0) -> None:
        for file in (self.codes, self.sizes, self.names, self.weights):
            if file is not None:
                file.close()
        rows: dict[str, Any] = {"pair_worker": pairs.worker, "pair_label": pairs.label}
        np.savez(self.folder / "names.npz", workers=workers, classes=classes, **rows)
        size_type = next(kind for kind in SIZES if self.largest <= np.iinfo(kind).max)
        starts, total = [0], 0
        with (self.folder / "sizes.bin").open("wb") as file:
            for start in range(0, self.n_tasks, STRIDE):
                some = np.fromfile(self.folder / "sizes.u32", "<u4", STRIDE, offset=4 * start)
                some.astype(size_type).tofile(file)
                total += int(some.sum(dtype=np.int64))
                starts.append(total)
        (self.folder / "sizes.u32").unlink()
        np.save(self.folder / "starts.npy", np.array(starts, dtype=np.int64))
        sizes = {"n_tasks": self.n_tasks, "n_annotations": self.n_annotations}
        sizes["left_out"] = left_out
        about = {"what": WHAT, "version": VERSION, "size_type": size_type}
        about |= {"weighted": self.weights is not None}
        (self.folder / "about.json").write_text(json.dumps({**about, **sizes}, indent=1))


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """Make a folder that appears only once it is complete, in place of an older one of ours."""
    if folder.exists() and not _is_ours(folder):
        raise FileError(
            explain(
                f"{folder} exists, and does not contain annotations on disk.",
                expected="a new folder, or one that Annotations.open has made",
                fix="delete it, or name another: Annotations.open(path, folder=…)",
            )
        )
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        unfinished = Path(mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    except OSError as error:
        raise FileError(
            explain(
                f"{folder} cannot be written.",
                first=str(error),
                fix="choose another folder: Annotations.open(path, folder=…)",
            )
        ) from error
    try:
        yield unfinished
        if folder.exists():
            shutil.rmtree(folder)
        unfinished.rename(folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _is_ours(folder: Path) -> bool:
    """Return whether a folder is empty, or was made by us."""
    try:
        if not any(folder.iterdir()):
            return True
        about = json.loads((folder / "about.json").read_text())
    except (OSError, ValueError):
        return False
    return isinstance(about, dict) and about.get("what") == WHAT


def _parquet() -> Any:
    try:
        from pyarrow import parquet
    except ImportError:
        raise MissingExtraError.of("Annotations on disk", "pyarrow", "parquet") from None
    return parquet


def _no_store(folder: Path, why: str) -> FormatError:
    return FormatError(
        explain(
            f"{folder} does not contain annotations on disk.",
            first=why,
            expected="a folder that Annotations.open has made",
            fix="check the path; if Annotations.open made it, delete it and open the file again",
        )
    )
