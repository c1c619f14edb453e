"""Labels of annotations on disk, written block by block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from crowdwise.annotations.streaming import open_dataset
from crowdwise.errors import AnnotationError, FileError, MissingExtraError, explain
from crowdwise.inference.engines.files import StreamedPosterior
from crowdwise.inference.posteriors import choose
from crowdwise.io.atomic import replace_file
from crowdwise.io.open import list_folder
from crowdwise.io.recognize import REQUIRED, recognize_columns, require_columns
from crowdwise.memory import available_memory
from crowdwise.typing import Array, Floats

IN_MEMORY = {".csv": 4, ".parquet": 12}  # bytes of memory per byte of a file
SHARE = 0.6  # of the available memory


def stream_labels(model: Any, path: str | Path, *, probabilities: bool = False) -> None:
    """Write the label and confidence of every task that a model was fitted on to Parquet.

    For models of annotations on disk: tasks are read, inferred and written block by block.

    Parameters
    ----------
    model : fitted aggregator
        Fitted to :meth:`Annotations.open <crowdwise.Annotations.open>`.
    path : str or Path
        A file named ``.parquet``, which appears once it is complete.
    probabilities : bool, default=False
        Also write a column ``proba_<class>`` for every class.
    """
    posterior = model.posterior_
    if not isinstance(posterior, StreamedPosterior):
        raise AnnotationError(
            explain(
                "stream_labels is for models of annotations on disk.",
                found=f"a {type(model).__name__} of annotations in memory",
                fix="use labels_ and probas_, which are there already",
            )
        )
    if Path(path).suffix != ".parquet":
        fix = "name a file that ends in .parquet"
        raise FileError(explain(f"{path} is not a Parquet file.", fix=fix))
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise MissingExtraError.of("Writing labels in blocks", "pyarrow", "parquet") from None
    writer = None
    with replace_file(path, binary=True) as file:
        for names, rows in _align(posterior.stored.task_names(), posterior.blocks()):
            columns = _columns(model, names, rows, probabilities=probabilities)
            table = pyarrow.table(columns)
            writer = writer or parquet.ParquetWriter(file, table.schema)
            writer.write_table(table)
        if writer is not None:
            writer.close()


def is_too_large(path: str) -> bool:
    """Return whether a file or folder takes too much of the memory, and can be streamed."""
    source = Path(path)
    files = list_folder(source) if source.is_dir() else [source] * source.is_file()
    kinds = {file.suffix.lower() for file in files}
    if len(kinds) != 1 or not kinds <= IN_MEMORY.keys():
        return False
    needed, there = sum(file.stat().st_size for file in files), available_memory()
    return there is not None and IN_MEMORY[kinds.pop()] * needed > SHARE * there


def name_columns(path: str, given: Mapping[str, str | None]) -> dict[str, str]:
    """Find the columns of what is too large, by the rules for smaller files."""
    columns = open_dataset(Path(path)).schema.names
    found = recognize_columns(columns, given)
    require_columns(found, columns, "The file")
    return {role: found[role] for role in REQUIRED}


def _columns(model: Any, names: Array, rows: Floats, *, probabilities: bool) -> dict[str, Array]:
    label = model.classes_[choose(rows)]
    columns = {"task": names, "label": label, "confidence": rows.max(axis=1)}
    if probabilities:
        columns |= {f"proba_{name}": rows[:, i] for i, name in enumerate(model.classes_)}
    return columns


def _align(names: Iterator[Array], blocks: Iterator[Floats]) -> Iterator[tuple[Array, Floats]]:
    """Align names and rows of the same tasks, which come in blocks of different sizes."""
    held = np.zeros(0)
    for rows in blocks:
        parts, there = [held], len(held)
        while there < len(rows):
            parts.append(next(names))
            there += len(parts[-1])
        whole = np.concatenate([part for part in parts if len(part)])
        yield whole[: len(rows)], rows
        held = whole[len(rows) :]
