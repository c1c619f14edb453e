"""A record of sums, from which restarted ranks resume where they were.

All ranks run the same loop, and what they learn follows from the sums alone. So with the
same sums in the same order, a rank reaches the earlier state without processing the tasks again.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from crowdwise.inference.engines.blocks import Parts, Run
from crowdwise.inference.engines.group import Group, gather
from crowdwise.typing import Floats

MOST_BYTES = 4 << 30


class Record:
    """A file of sums; after a kill, only complete ones count."""

    def __init__(self, path: Path, most_bytes: int = MOST_BYTES) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        self.path, self.most_bytes, self.starts = path, most_bytes, [0]
        length = path.stat().st_size
        with path.open("rb") as file:
            while len(head := file.read(8)) == 8:
                stop = self.starts[-1] + 8 + int.from_bytes(head, "little")
                if stop > length:
                    break
                self.starts.append(file.seek(stop))

    def __len__(self) -> int:
        return len(self.starts) - 1

    def read(self, number: int) -> Floats:
        first, stop = self.starts[number : number + 2]
        return np.fromfile(self.path, offset=first + 8, count=(stop - first - 8) // 8)

    def append(self, row: Floats) -> None:
        if self.starts[-1] > self.most_bytes:
            return  # a restart then resumes from here
        with self.path.open("r+b") as file:
            file.seek(self.starts[-1])
            file.truncate()
            file.write(row.nbytes.to_bytes(8, "little") + row.tobytes())
            self.starts.append(file.tell())


class Recorder:
    """The sums that a group computed before, and those that it computes now.

    Some ranks keep a record, one on each machine; the one with the most sums informs the rest.
    """

    def __init__(self, group: Group, record: Record | None) -> None:
        self.group, self.record, self.step = group, record, 0
        counts = gather(group, 0 if record is None else len(record))
        self.teller, self.n_known = int(np.argmax(counts)), int(max(counts))

    def recall(self) -> Floats | None:
        """Return the next sum, if it was computed before; the same on every rank."""
        if self.step >= self.n_known:
            return None
        nodes: list[tuple[int, int, Parts]] = []
        if self.group.rank == self.teller and self.record is not None:
            nodes = [(0, 0, (self.record.read(self.step),))]
        return self.group.add(Run(nodes))[0]

    def keep(self, row: Floats) -> None:
        """Record the next sum, if this rank keeps a record."""
        if self.record is not None and self.step >= len(self.record):
            self.record.append(row)
        self.step += 1
