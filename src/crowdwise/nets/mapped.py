"""Features on disk, read into memory only row by row as needed."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.utils.data import Dataset

from crowdwise.base.fitting import order_by_name
from crowdwise.errors import FormatError, MissingExtraError, explain
from crowdwise.typing import Array, Ints


class MappedRows(Dataset[Tensor]):
    """Rows of an array on disk, one per task; ``ids`` names the tasks.

    They are in the order of the array, or in another ``order``.
    """

    def __init__(
        self,
        array: Array,
        ids: Array | None = None,
        names: Array | None = None,
        order: Ints | None = None,
    ) -> None:
        self.array, self.ids, self.names, self.order = array, ids, names, order

    def __len__(self) -> int:
        return len(self.array if self.order is None else self.order)

    def __getitem__(self, row: int) -> Tensor:
        return self.rows(np.array([row]))[0]

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of rows, and the shape of one."""
        return (len(self), *self.array.shape[1:])

    def rows(self, at: Ints) -> Tensor:
        """Read some rows from disk."""
        at = at if self.order is None else self.order[at]
        order = np.argsort(at, kind="stable")  # read the disk from front to back
        found = np.empty((len(at), *self.shape[1:]), dtype=np.float32)
        found[order] = self.array[at[order]]
        return torch.from_numpy(found)

    def in_order(self, tasks: Array | None) -> MappedRows:
        """Return the rows of these tasks, in order, if the rows have names."""
        index = pd.RangeIndex(len(self)) if self.ids is None else pd.Index(self.ids)
        order = order_by_name(pd.DataFrame(index=index), tasks)
        return self if order is None else MappedRows(self.array, None, self.names, order)


def map_features(
    path: str | Path, *, id: str | None = None, columns: list[str] | None = None
) -> MappedRows:
    """Open features in a file, for a learner's ``fit``; few rows are in memory at a time.

    Parameters
    ----------
    path : str or path
        A ``.npy`` file, which is read in place; or a ``.parquet`` file, whose columns are
        first written row by row to a temporary file, with four bytes per number.
    id : str, optional
        Column of a Parquet file with the tasks' names; without it, rows are in task order.
    columns : list of str, optional
        Columns of a Parquet file to use; by default all except ``id``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from crowdwise.learn import SpeeLFC, map_features
    >>> votes = [[0, 0], [1, 1], [0, 0], [1, 1]]  # tasks x workers
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "X.npy"
    ...     np.save(path, np.eye(4))
    ...     SpeeLFC(random_state=0).fit(map_features(path), votes).posterior_.shape
    (4, 2)
    """
    path = Path(path)
    if path.suffix == ".npy":
        return MappedRows(np.load(path, mmap_mode="r"))
    if path.suffix != ".parquet":
        raise FormatError(
            explain(
                f"{path} cannot be read in parts.",
                expected="a .npy or a .parquet file",
                fix="store the features with numpy.save, or as Parquet",
            )
        )
    return _map_parquet(path, id, columns)


def _map_parquet(path: Path, name: str | None, columns: list[str] | None) -> MappedRows:
    try:
        from pyarrow import parquet
    except ImportError:
        raise MissingExtraError.of("Features in Parquet", "pyarrow", "parquet") from None
    with parquet.ParquetFile(path) as file:
        known = file.schema_arrow.names
        taken = [own for own in known if own != name] if columns is None else list(columns)
        missing = [own for own in [*taken, *([name] if name else [])] if own not in known]
        if missing:
            raise FormatError(
                explain(
                    f"{path} has no column {missing[0]!r}.",
                    expected=", ".join(known[:20]),
                    fix="choose from these",
                )
            )
        ids, row, shape = [], 0, (file.metadata.num_rows, len(taken))
        with tempfile.TemporaryFile() as own:
            array: Array = np.memmap(own, dtype=np.float32, mode="w+", shape=shape)
        for batch in file.iter_batches(columns=[*taken, *([name] if name else [])]):
            for at, column in enumerate(taken):
                values = batch.column(column).to_numpy(zero_copy_only=False)
                try:
                    array[row : row + len(batch), at] = values
                except (TypeError, ValueError) as error:
                    raise FormatError(
                        explain(
                            f"Column {column!r} of {path} has something that is not a number.",
                            first=str(error),
                            fix="leave it out with columns=[…], or name it as id",
                        )
                    ) from None
            if name is not None:
                ids.append(batch.column(name).to_numpy(zero_copy_only=False))
            row += len(batch)
    names = np.concatenate(ids) if ids else None
    return MappedRows(array, names, np.array(taken, dtype=object))
