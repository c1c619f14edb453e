"""From files larger than memory to annotations on disk, in one pass over the files.

As rows are read, they are distributed to parts by a hash of their task; each part then fits into
memory and is grouped by task.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from crowdwise.annotations.frames import coerce_floats
from crowdwise.annotations.grouping import find_words, fit_single, order_by
from crowdwise.annotations.pairs import CROWDED, Pairs, encode
from crowdwise.annotations.store import StoredAnnotations, StoreWriter, new_folder
from crowdwise.annotations.streamed_names import Names, TaskNames, blank_nan, refuse_open_quote
from crowdwise.errors import (
    AnnotationError,
    CrowdwiseError,
    FileError,
    MissingExtraError,
    explain,
    plural,
)
from crowdwise.typing import Array, Ints

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.dataset import Dataset


ROWS_AT_ONCE = 1 << 20
ROWS_PER_PART = 1 << 22
BYTES_PER_ROW = 8  # minimum in a text file
ROLES = ("task", "worker", "label", "weight")
SOURCES = "sources.json"  # in the folder: its source files


def open_annotations(
    path: str | Path, folder: str | Path | None, columns: dict[str, str]
) -> StoredAnnotations:
    """See :meth:`crowdwise.Annotations.open`."""
    source = Path(path)
    if (source / "about.json").is_file():
        return StoredAnnotations.load(source)
    home = source.with_name(f"{source.name}.crowd") if folder is None else Path(folder)
    sources = [columns, *_describe(source)]
    if (home / "about.json").is_file() and _made_from(home) == sources:
        return StoredAnnotations.load(home)
    try:
        with new_folder(home) as unfinished:
            dataset = open_dataset(source)
            _build(dataset, _with_weights(dataset.schema.names, columns), unfinished)
            (unfinished / SOURCES).write_text(json.dumps(sources))
    except CrowdwiseError:
        raise
    except (ValueError, OSError) as error:  # such as text in a column that starts with numbers
        first = (str(error) or type(error).__name__).splitlines()[0]
        fix = "correct the file, or write it as Parquet"
        raise FileError(explain(f"{source} cannot be read.", first=first, fix=fix)) from error
    return StoredAnnotations.load(home)


def _describe(source: Path) -> list[list[object]]:
    """Return name, size and time of all source files, to detect changes."""
    files = sorted(source.rglob("*")) if source.is_dir() else [source] * source.exists()
    return [[str(file), file.stat().st_size, file.stat().st_mtime_ns] for file in files]


def _made_from(home: Path) -> object:
    try:
        return json.loads((home / SOURCES).read_text())
    except (OSError, ValueError):
        return None


def open_dataset(source: Path) -> Dataset:
    """Open a file or a folder of files, to be read in a stream."""
    try:
        import pyarrow
        from pyarrow import csv, dataset
    except ImportError:
        raise MissingExtraError.of("Annotations on disk", "pyarrow", "parquet") from None
    if not source.exists():
        raise FileError(explain(f"{source} is not there.", fix="check the path"))
    kind = {".csv": "csv", ".parquet": "parquet", ".arrow": "ipc", ".feather": "ipc"}
    inside = [source] if source.is_file() else sorted(source.rglob("*"))
    files = [file for file in inside if file.is_file() and file.suffix in kind]
    if len({kind[file.suffix] for file in files}) != 1:
        raise FileError(
            explain(
                f"{source} cannot be read in a stream.",
                found=", ".join(sorted({file.suffix for file in files})),
                expected="files named .parquet, .csv, .arrow or .feather, all of one kind",
                fix="convert it, for example with crowdwise convert",
            )
        )
    form: str | dataset.FileFormat = kind[files[0].suffix]
    if form == "csv":  # names stay text until all are known: 01 is not 1
        for file in files:
            refuse_open_quote(file)
        empty = csv.ConvertOptions(null_values=[""], strings_can_be_null=True)
        form = dataset.CsvFileFormat(convert_options=empty)
    try:
        found = dataset.dataset(list(map(str, files)), format=form)  # also those named _x
        if isinstance(form, str):
            return found
        empty.column_types = dict.fromkeys(found.schema.names, pyarrow.string())
        form = dataset.CsvFileFormat(convert_options=empty)
        return dataset.dataset(list(map(str, files)), format=form)
    except (OSError, ValueError) as error:
        fix = "check that it is a complete table"
        raise FileError(explain(f"{source} cannot be read.", first=str(error), fix=fix)) from error


def _with_weights(names: list[str], columns: dict[str, str]) -> dict[str, str]:
    """Add a column named like a weight to the roles, if it exists and no other was given."""
    if "weight" in columns:
        return columns
    found = [name for name in names if name.strip(" _-.").lower() == "weight"]
    return {**columns, "weight": found[0]} if found else columns


def _build(dataset: Dataset, columns: dict[str, str], folder: Path) -> None:
    found = dataset.schema.names
    for role, name in columns.items():
        if name not in found:
            fix = f"name it: Annotations.open(path, {role}='…')"
            where = "The file"
            raise AnnotationError.missing_column(name, where=where, found=found, fix=fix)
    _refuse_columns(dataset, columns)
    _refuse_unlike(dataset, columns)
    text = dataset.format.default_extname == "csv"
    workers, classes = Names(), Names(find_words("auto", []))
    n_parts = max(-(-_estimate_rows(dataset) // ROWS_PER_PART), 1)
    parts = [folder / f"part-{number}" for number in range(n_parts)]
    wanted = [columns[role] for role in ROLES if role in columns]
    dealt = _deal_out(dataset, wanted, workers, classes, parts)
    dealt.tasks.settle(_read_part(part)[0] for part in parts if part.exists())
    (worker_names, of_worker), (class_names, of_class) = (
        own.in_order(text=text) for own in (workers, classes)
    )
    sizes = len(worker_names), len(class_names)
    if not any(part.exists() for part in parts):
        fix = "check that it is the right file, and that its labels are not all empty"
        raise AnnotationError(explain("There are no annotations in the file.", fix=fix))
    pairs = _find_pairs(parts, of_worker, of_class, sizes)
    writer = StoreWriter(folder)
    for part in parts:
        if not part.exists():
            continue
        names, task, worker, label, weight = _read_part(part)
        names, task = dealt.tasks.spell(names, task)
        counts = np.bincount(task, minlength=len(names))
        order = order_by(task, np.concatenate([[0], np.cumsum(counts)]))
        who, what = of_worker[worker[order]], of_class[label[order]]
        code = encode(who, what, sizes[1], None if pairs.whole else pairs)
        own = None if weight is None else weight[order]
        writer.append(names, counts, code, own)
        part.unlink()
    writer.finish(worker_names, class_names, pairs, dealt.left_out)


def _refuse_columns(dataset: Dataset, columns: dict[str, str]) -> None:
    """Refuse columns that cannot be names or weights."""
    from pyarrow import types

    fits = (types.is_integer, types.is_boolean, types.is_floating, types.is_string,
            types.is_large_string, types.is_dictionary)  # fmt: skip
    for role, name in columns.items():
        kind = dataset.schema.field(name).type
        if not any(fit(kind) for fit in fits):
            raise AnnotationError(
                explain(
                    f"The column {name!r} cannot be the {role} of annotations on disk.",
                    found=f"values of type {kind}",
                    expected="numbers or text",
                    fix=f"write it as text, or choose another: {role}='…'",
                )
            )
    soft = [name for name in dataset.schema.names if name.startswith("proba_")]
    if soft:
        raise AnnotationError(
            explain(
                "Probabilities of classes cannot stay on disk.",
                found=f"the column {soft[0]!r}",
                expected="one label on each row",
                fix="remove these columns, or read the file into memory",
            )
        )


def _refuse_unlike(dataset: Dataset, columns: dict[str, str]) -> None:
    """Refuse files that differ: missing columns would be empty, other types converted."""
    for fragment in dataset.get_fragments():
        own = fragment.physical_schema
        for role, name in _with_weights(own.names, columns).items():
            kinds = [s.field(name).type if name in s.names else None for s in (own, dataset.schema)]
            if role not in columns or kinds[0] != kinds[1]:
                raise AnnotationError(
                    explain(
                        f"The column {name!r} is not the same in {fragment.path} and other files.",
                        found=" and ".join(str(kind or "no such column") for kind in kinds),
                        expected="files with the same columns, of the same types",
                        fix="convert them to one form, or read them one by one",
                    )
                )


def _estimate_rows(dataset: Dataset) -> int:
    """Return an upper bound on the rows; those of text files are estimated, to save time."""
    if dataset.format.default_extname != "csv":
        return int(dataset.count_rows())
    return sum(Path(file).stat().st_size for file in dataset.files) // BYTES_PER_ROW


class Dealt(NamedTuple):
    """Facts found while distributing the rows."""

    left_out: int  # rows without a label or of weight 0, or that repeat the header
    tasks: TaskNames


def _deal_out(
    dataset: Dataset, columns: list[str], workers: Names, classes: Names, parts: list[Path]
) -> Dealt:
    """Write each row to the part given by the hash of its task."""
    import pyarrow

    writers: dict[int, pa.RecordBatchStreamWriter] = {}
    tasks = TaskNames(text=dataset.format.default_extname == "csv")
    left_out, n_rows = 0, 0
    for batch in dataset.to_batches(columns=columns, batch_size=ROWS_AT_ONCE):
        read = blank_nan(pyarrow.table(batch).select(columns), columns[:3])
        whole = read.filter(~_find_headers(read, columns[:3]))
        codes = classes.encode(whole.column(2).combine_chunks().drop_null())
        kept = np.zeros(len(whole), dtype=bool)
        kept[whole.column(2).is_valid().to_numpy()] = codes >= 0
        if len(columns) > len(ROLES[:3]):
            labels = whole.column(3).combine_chunks().filter(kept)
            weight = _parse_weights(labels, n_rows)
            kept[kept] = weight > 0
            weight = weight[weight > 0]
        rows = whole.filter(kept).combine_chunks()
        left_out += len(read) - len(rows)
        _refuse_nulls(rows, columns, n_rows)
        n_rows += len(read)
        if tasks.text and not kept.all():
            for names, name in ((tasks, columns[0]), (workers, columns[1])):
                names.notice(whole.filter(~kept).column(name).unique().drop_null().tolist())
        if not len(rows):
            continue
        task, worker, label = (rows.column(name).combine_chunks() for name in columns[:3])
        coded = task.dictionary_encode()
        names = coded.dictionary.to_numpy(zero_copy_only=False)
        hashed = pd.util.hash_array(tasks.look_at(names)) % np.uint64(len(parts))
        part = hashed.astype(np.int64)[coded.indices.to_numpy(zero_copy_only=False)]
        order = np.argsort(part, kind="stable")
        edges = np.searchsorted(part[order], np.arange(len(parts) + 1))
        data = {"task": task, "worker": workers.encode(worker), "label": classes.encode(label)}
        if len(columns) > len(ROLES[:3]):
            data["weight"] = weight
        table = pyarrow.table(data).take(order).combine_chunks()
        for number in np.flatnonzero(np.diff(edges)).tolist():
            if number not in writers:
                writers[number] = pyarrow.ipc.new_stream(parts[number], table.schema)
            start, stop = int(edges[number]), int(edges[number + 1])
            writers[number].write_table(table.slice(start, stop - start))
    for writer in writers.values():
        writer.close()
    return Dealt(left_out, tasks)


def _find_headers(rows: pa.Table, columns: list[str]) -> Array:
    """Find rows that repeat the header, as when files were concatenated."""
    from pyarrow import compute as pc

    found = np.ones(len(rows), dtype=bool)
    for name in columns:
        if not found.any() or rows.schema.field(name).type != "string":
            return np.zeros(len(rows), dtype=bool)
        found &= pc.equal(rows.column(name), name).fill_null(False).to_numpy()
    return found


def _refuse_nulls(rows: pa.Table, columns: list[str], before: int) -> None:
    """Refuse labels without a task or a worker."""
    for role, name in zip(ROLES[:2], columns[:2], strict=True):
        n = rows.column(name).null_count
        if n:
            raise AnnotationError(
                explain(
                    f"The {role} is missing in {n:,} of {len(rows):,} annotations.",
                    first=f"in the rows after {before:,}",
                    expected=f"a {role} on every row",
                    fix=f"fill in the {role}, or drop these rows",
                )
            )


def _parse_weights(column: pa.Array, before: int) -> Array:
    """Convert weights as for annotations in memory."""
    weight = coerce_floats(pd.Series(column.to_numpy(zero_copy_only=False)))
    bad = ~fit_single(weight)
    if bad.any():
        raise AnnotationError(
            explain(
                f"{plural(int(bad.sum()), 'weight')} cannot be used.",
                first=f"{column[int(bad.argmax())].as_py()!r}, in the rows after {before:,}",
                expected="a finite number of 0 or more on every row, from 1e-37 up if not 0",
                fix="correct these weights, or drop these rows",
            )
        )
    return weight.astype(np.float32)


def _read_part(part: Path) -> tuple[Array, Ints, Ints, Ints, Array | None]:
    """Read the names of a part's tasks, and its columns as numbers."""
    import pyarrow

    with pyarrow.ipc.open_stream(part) as stream:
        table = stream.read_all().combine_chunks()
    coded = table.column("task").combine_chunks().dictionary_encode()
    if hasattr(coded, "combine_chunks"):
        coded = coded.combine_chunks()
    names = coded.dictionary.to_numpy(zero_copy_only=False)
    task = coded.indices.to_numpy(zero_copy_only=False).astype(np.int32)
    weight = table.column("weight").to_numpy() if "weight" in table.column_names else None
    return names, task, table.column("worker").to_numpy(), table.column("label").to_numpy(), weight


def _find_pairs(parts: list[Path], worker: Ints, label: Ints, sizes: tuple[int, int]) -> Pairs:
    """Find the pairs that occur in any part, or all pairs if nearly all do."""
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
            _, _, who, what, _ = _read_part(part)
            yield np.unique(worker[who].astype(np.int64) * n_classes + label[what])
