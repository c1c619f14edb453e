"""Files larger than memory to annotations on disk, in one pass over the files.

Rows are dealt out to parts by a hash of their task as they are read; each part then fits into
memory and is grouped by task.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from crowdwise.annotations.grouping import order_by
from crowdwise.annotations.pairs import CROWDED, Pairs, encode
from crowdwise.annotations.store import StoredAnnotations, StoreWriter, new_folder
from crowdwise.errors import AnnotationError, CrowdwiseError, FileError, MissingExtraError, explain
from crowdwise.typing import Array, Ints

ROWS_AT_ONCE = 1 << 20
ROWS_PER_PART = 1 << 22
BYTES_PER_ROW = 8  # of a text file, at the least
ROLES = ("task", "worker", "label")
SOURCES = "sources.json"  # in the folder: the files that it was made from


def open_annotations(
    path: str | Path, folder: str | Path | None, columns: dict[str, str]
) -> StoredAnnotations:
    """See :meth:`crowdwise.Annotations.open`."""
    source = Path(path)
    if (source / "about.json").is_file():
        return StoredAnnotations.load(source)
    home = source.with_name(f"{source.name}.crowd") if folder is None else Path(folder)
    sources = _describe(source)
    if (home / "about.json").is_file() and _made_from(home) == sources:
        return StoredAnnotations.load(home)
    try:
        with new_folder(home) as unfinished:
            _build(_dataset(source), columns, unfinished)
            (unfinished / SOURCES).write_text(json.dumps(sources))
    except CrowdwiseError:
        raise
    except (ValueError, OSError) as error:  # such as text in a column that began with numbers
        first = (str(error) or type(error).__name__).splitlines()[0]
        fix = "correct the file, or write it as Parquet"
        raise FileError(explain(f"{source} cannot be read.", first=first, fix=fix)) from error
    return StoredAnnotations.load(home)


def _describe(source: Path) -> list[list[Any]]:
    """Name, size and time of every file that is read, by which a change is seen."""
    files = sorted(source.rglob("*")) if source.is_dir() else [source] * source.exists()
    return [[str(file), file.stat().st_size, file.stat().st_mtime_ns] for file in files]


def _made_from(home: Path) -> Any:
    try:
        return json.loads((home / SOURCES).read_text())
    except (OSError, ValueError):
        return None


def _dataset(source: Path) -> Any:
    try:
        from pyarrow import dataset
    except ImportError:
        raise MissingExtraError.of("Annotations on disk", "pyarrow", "parquet") from None
    if not source.exists():
        raise FileError(explain(f"{source} is not there.", fix="check the path"))
    first = next((file for file in [source, *sorted(source.rglob("*"))] if file.is_file()), source)
    kind = {".csv": "csv", ".parquet": "parquet", ".arrow": "ipc", ".feather": "ipc"}
    if first.suffix not in kind:
        raise FileError(
            explain(
                f"{source} cannot be read in a stream.",
                expected="files named .parquet, .csv, .arrow or .feather",
                fix="convert it, for example with crowdwise convert",
            )
        )
    try:
        return dataset.dataset(source, format=kind[first.suffix])
    except (OSError, ValueError) as error:
        raise FileError(explain(f"{source} cannot be read.", first=str(error))) from error


class Names:
    """Running numbers of names, in the order in which they come."""

    def __init__(self) -> None:
        self.number: dict[Any, int] = {}

    def encode(self, column: Any) -> Ints:
        """The numbers of a column of names."""
        coded = column.dictionary_encode()
        known = [self.number.setdefault(n, len(self.number)) for n in coded.dictionary.to_pylist()]
        place: Ints = np.array(known, dtype=np.int32)
        return place[coded.indices.to_numpy(zero_copy_only=False)]

    def in_order(self) -> tuple[Array, Ints]:
        """The names, sorted, and the new number of each."""
        names = list(self.number)
        if len({type(name) for name in names}) > 1:
            names = list(map(str, names))
        order = sorted(range(len(names)), key=names.__getitem__)
        place = np.empty(len(names), dtype=np.int32)
        place[order] = np.arange(len(names))
        return np.array([names[i] for i in order]), place


def _build(dataset: Any, columns: dict[str, str], folder: Path) -> None:
    found = dataset.schema.names
    for role in ROLES:
        if columns[role] not in found:
            fix = f"name it: Annotations.open(path, {role}='…')"
            where = "The file"
            raise AnnotationError.missing_column(columns[role], where=where, found=found, fix=fix)
    workers, classes = Names(), Names()
    n_parts = max(-(-_estimate_rows(dataset) // ROWS_PER_PART), 1)
    parts = [folder / f"part-{number}" for number in range(n_parts)]
    _deal_out(dataset, [columns[role] for role in ROLES], workers, classes, parts)
    (worker_names, of_worker), (class_names, of_class) = workers.in_order(), classes.in_order()
    sizes = len(worker_names), len(class_names)
    if not sizes[0]:
        raise AnnotationError(explain("There are no annotations in the file."))
    pairs = _find_pairs(parts, of_worker, of_class, sizes)
    writer = StoreWriter(folder)
    for part in parts:
        if not part.exists():
            continue
        names, task, worker, label = _read_part(part)
        counts = np.bincount(task, minlength=len(names))
        order = order_by(task, np.concatenate([[0], np.cumsum(counts)]))
        who, what = of_worker[worker[order]], of_class[label[order]]
        code = encode(who, what, sizes[1], None if pairs.whole else pairs)
        writer.append(names, counts, code)
        part.unlink()
    writer.finish(worker_names, class_names, pairs)


def _estimate_rows(dataset: Any) -> int:
    """How many rows there are at most; those of text files are not counted, for it takes long."""
    if dataset.format.default_extname != "csv":
        return int(dataset.count_rows())
    return sum(Path(file).stat().st_size for file in dataset.files) // BYTES_PER_ROW


def _deal_out(
    dataset: Any, columns: list[str], workers: Names, classes: Names, parts: list[Path]
) -> None:
    """Write each row to the part that the hash of its task says."""
    import pyarrow

    writers: dict[int, Any] = {}
    for batch in dataset.to_batches(columns=columns, batch_size=ROWS_AT_ONCE):
        rows = pyarrow.table(batch).drop_null().combine_chunks()
        if not len(rows):
            continue
        task, worker, label = (rows.column(name).combine_chunks() for name in columns)
        coded = task.dictionary_encode()
        names = coded.dictionary.to_numpy(zero_copy_only=False)
        hashed = pd.util.hash_array(names) % np.uint64(len(parts))
        part = hashed.astype(np.int64)[coded.indices.to_numpy(zero_copy_only=False)]
        order = np.argsort(part, kind="stable")
        edges = np.searchsorted(part[order], np.arange(len(parts) + 1))
        data = {"task": task, "worker": workers.encode(worker), "label": classes.encode(label)}
        table = pyarrow.table(data).take(order).combine_chunks()
        for number in np.flatnonzero(np.diff(edges)).tolist():
            if number not in writers:
                writers[number] = pyarrow.ipc.new_stream(parts[number], table.schema)
            start, stop = int(edges[number]), int(edges[number + 1])
            writers[number].write_table(table.slice(start, stop - start))
    for writer in writers.values():
        writer.close()


def _read_part(part: Path) -> tuple[Array, Ints, Ints, Ints]:
    """The names of a part's tasks, and its columns as numbers."""
    import pyarrow

    with pyarrow.ipc.open_stream(part) as stream:
        table = stream.read_all().combine_chunks()
    coded = table.column("task").combine_chunks().dictionary_encode()
    if hasattr(coded, "combine_chunks"):
        coded = coded.combine_chunks()
    names = coded.dictionary.to_numpy(zero_copy_only=False)
    task = coded.indices.to_numpy(zero_copy_only=False).astype(np.int32)
    return names, task, table.column("worker").to_numpy(), table.column("label").to_numpy()


def _find_pairs(parts: list[Path], worker: Ints, label: Ints, sizes: tuple[int, int]) -> Pairs:
    """The pairs that occur in any part, all of them where that is nearly as few."""
    seen = np.zeros(0, dtype=np.int64)
    for codes in _codes_of(parts, worker, label, sizes[1]):
        seen = np.union1d(seen, codes)
        if len(seen) > CROWDED * sizes[0] * sizes[1]:
            return Pairs.all_of(*sizes)
    who, what = np.divmod(seen, sizes[1])
    return Pairs(who.astype(np.int32), what.astype(np.int32), *sizes)


def _codes_of(parts: list[Path], worker: Ints, label: Ints, n_classes: int) -> Iterator[Ints]:
    for part in parts:
        if part.exists():
            _, _, who, what = _read_part(part)
            yield np.unique(worker[who].astype(np.int64) * n_classes + label[what])
