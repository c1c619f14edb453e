"""Large delimited files to codes, by the compiled loops and on all cores.

One thread cuts the text into blocks of whole rows; the others read blocks, each into dictionaries
of its own. At the end these are joined, and the distinct texts are sorted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import pandas as pd

from crowdwise import compiled
from crowdwise.inference.engines.blocks import count_threads, in_order
from crowdwise.io.document import File, explain_read_errors
from crowdwise.typing import Ints

BLOCK = 1 << 22  # bytes of text in a block
LARGEST = 1 << 26  # bytes of one with very long rows
SLACK = bytes(16)  # that the compiled loops may read behind a block
BOM = b"\xef\xbb\xbf"


class Part(NamedTuple):
    """The rows of a block."""

    dictionary: int  # which one the codes refer to
    codes: list[bytes]  # of each column


def encode_cells(
    file: File, delimiter: str, n_columns: int, places: Sequence[int]
) -> list[pd.Categorical] | None:
    """Read the columns at these positions below the header, with their texts sorted.

    None if this is not compiled, if a row does not have ``n_columns`` cells, if there is anything
    outside the quotes of a quoted cell, or if the text is not UTF-8.
    """
    if compiled.find("read_cells") is None:
        return None
    wanted = np.full(n_columns, -1, dtype=np.int32)
    wanted[list(places)] = np.arange(len(places))
    with explain_read_errors(file.name), file.open_shown() as handle:
        found = _read_blocks(handle, delimiter, wanted)
    return None if found is None else _join(*found)


def _read_blocks(
    handle: BinaryIO, delimiter: str, wanted: Ints
) -> tuple[list[Any], list[Part]] | None:
    """Return the dictionaries of all threads, and the parts of the file in order."""
    native: Any = compiled.native
    n_threads = count_threads()
    dictionaries = [native.new_cells(int(wanted.max()) + 1) for _ in range(n_threads)]
    idle: SimpleQueue[int] = SimpleQueue()
    for number in range(n_threads):
        idle.put(number)

    def read(block: bytes, header: bool) -> Part | None:
        number, size = idle.get(), len(block) - len(SLACK)
        try:
            own = dictionaries[number]
            codes = native.read_cells(own, block, size, ord(delimiter), wanted, header)
        finally:
            idle.put(number)
        return None if codes is None else Part(number, list(codes))

    waiting: deque[Future[Part | None]] = deque()
    parts: list[Part | None] = []
    with ThreadPoolExecutor(n_threads) as pool:
        for number, block in enumerate(_cut_rows(handle)):
            if block is None:
                return None
            waiting.append(pool.submit(read, block, number == 0))
            while len(waiting) > n_threads:
                parts.append(waiting.popleft().result())
            if parts and parts[-1] is None:
                return None
        parts += [part.result() for part in waiting]
    known = [part for part in parts if part is not None]
    return (dictionaries, known) if len(known) == len(parts) else None


def _cut_rows(handle: BinaryIO) -> Iterator[bytes | None]:
    """Yield blocks of whole rows; None if the text has none, or an unclosed quote.

    A line end is the end of a row if the number of quotes before it is even: in text that the
    compiled loops accept, quotes enclose cells, or are doubled inside one.
    """
    left = handle.read(BLOCK).removeprefix(BOM)
    while left:
        more = handle.read(BLOCK)
        if not more:
            yield left + (b"" if left.endswith(b"\n") else b"\n") + SLACK
            return
        stop = _find_row_end(left)
        if stop:
            yield left[:stop] + SLACK
        elif len(left) > LARGEST:
            yield None
            return
        left = left[stop:] + more


def _find_row_end(text: bytes) -> int:
    """Find the end of the last whole row of a text that starts with one."""
    quotes, stop = text.count(b'"') if b'"' in text else 0, len(text)
    while stop:
        line = text.rfind(b"\n", 0, stop) + 1
        quotes -= text.count(b'"', line, stop)
        if quotes % 2 == 0:
            return line
        stop = line - 1 if line else 0
    return 0


def _join(dictionaries: list[Any], parts: list[Part]) -> list[pd.Categorical] | None:
    """Build each column from the codes of its parts."""
    columns = []
    for place in range(len(parts[0].codes)):
        column = _join_column(dictionaries, parts, place)
        if column is None:
            return None
        columns.append(column)
    return columns


def _join_column(dictionaries: list[Any], parts: list[Part], place: int) -> pd.Categorical | None:
    native: Any = compiled.native
    first = dictionaries[0]
    moved = [native.join_cells(first, other, place) for other in dictionaries[1:]]
    named = native.name_cells(first, place)
    if named is None:
        return None
    texts, rank = pd.Index(named[0], dtype=object), np.frombuffer(named[1], dtype=np.int32)
    assert texts.is_monotonic_increasing  # so that pandas knows that each occurs once
    ranks = [rank, *(rank[np.frombuffer(codes, dtype=np.int32)] for codes in moved)]
    ranks = [np.append(own, np.int32(-1)) for own in ranks]  # where a missing text's code looks
    ends = np.cumsum([len(part.codes[place]) // 4 for part in parts])
    whole = np.empty(ends[-1], dtype=np.int32)

    def move(number: int) -> None:
        part = parts[number]
        codes = np.frombuffer(part.codes[place], dtype=np.int32)
        part.codes[place] = b""  # to free its memory
        here = whole[ends[number] - len(codes) : ends[number]]
        np.take(ranks[part.dictionary], codes, out=here, mode="wrap")

    deque(in_order(move, range(len(parts))), maxlen=0)
    return pd.Categorical.from_codes(whole, texts)
