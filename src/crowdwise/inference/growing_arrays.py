"""Arrays that grow at the end, in time independent of their length."""

from __future__ import annotations

import numpy as np

from crowdwise.annotations.names import as_names
from crowdwise.typing import Array, Ints, Names


class Growing:
    """An array with spare room at the end; ``view`` is the part in use."""

    def __init__(self, start: Array) -> None:
        self.data, self.n = start, len(start)

    @property
    def view(self) -> Array:
        return self.data[: self.n]

    def append(self, rows: Array) -> None:
        """Append rows; the type is widened if needed."""
        dtype = self.data.dtype if self.n == 0 else np.result_type(self.data, rows)
        if self.n == 0:
            dtype = rows.dtype
        need = self.n + len(rows)
        if need > len(self.data) or dtype != self.data.dtype:
            room = np.zeros((max(need, 2 * self.n), *rows.shape[1:]), dtype=dtype)
            room[: self.n] = self.view
            self.data = room
        self.data[self.n : need] = rows
        self.n = need

    def extend(self, n: int, value: float = 0) -> None:
        """Append rows of one value until there are ``n``."""
        shape = (n - self.n, *self.data.shape[1:])
        self.append(np.full(shape, value, dtype=self.data.dtype))

    def widen(self, pad: int) -> None:
        """Append ``pad`` zeros to every axis except the first."""
        width = [(0, 0), *[(0, pad)] * (self.data.ndim - 1)]
        self.data = np.pad(self.data, width)


class NameBook:
    """Names and their numbers, in order of first appearance."""

    def __init__(self, names: Array) -> None:
        self.names = Growing(names.copy())
        self.number = {name: i for i, name in enumerate(names.tolist())}

    def __len__(self) -> int:
        return self.names.n

    def enroll(self, names: Names) -> Ints:
        """Return the number of each name; new ones get the next numbers."""
        array = as_names(names)
        found = [self.number.setdefault(name, len(self.number)) for name in array.tolist()]
        codes = np.array(found, dtype=np.int64)
        fresh = codes >= self.names.n
        if fresh.any():
            self.names.append(array[fresh])
        return codes


def number_repeats(codes: Ints) -> tuple[Ints, Ints]:
    """Return where each value last occurred (-1 for never), and how often before."""
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    same = np.zeros(len(codes), dtype=bool)
    same[1:] = ordered[1:] == ordered[:-1]
    place = np.arange(len(codes))
    start = np.maximum.accumulate(np.where(same, 0, place))
    before, times = np.empty(len(codes), np.int64), np.empty(len(codes), np.int64)
    before[order] = np.where(same, np.concatenate([[-1], order[:-1]]), -1) if len(codes) else -1
    times[order] = place - start
    return before, times
