"""Notes that count: which records of a source did not become annotations, and why."""

from collections import Counter
from collections.abc import Iterable
from typing import Self


class Aside(str):
    """A note on records that are not annotations: what happened to them, and how many they are.

    The records of a source are its annotations and those that its notes count.

    >>> note = Aside("canceled annotations left out", 1200)
    >>> note, note.n
    ('canceled annotations left out: 1,200', 1200)
    """

    __slots__ = ("n", "what")
    what: str
    n: int

    def __new__(cls, what: str, n: int) -> Self:
        note = super().__new__(cls, f"{what}: {n:,}")
        note.what, note.n = what, n
        return note

    def __getnewargs__(self) -> tuple[str, int]:  # type: ignore[override]
        return self.what, self.n


def count_aside(notes: Iterable[str]) -> int:
    """How many records the notes account for."""
    return sum(note.n for note in notes if isinstance(note, Aside))


def join_notes(notes: Iterable[str]) -> tuple[str, ...]:
    """Each note once, and those that count added up."""
    total: Counter[str] = Counter()
    for note in (notes := list(notes)):
        if isinstance(note, Aside):
            total[note.what] += note.n
    plain = dict.fromkeys(note for note in notes if not isinstance(note, Aside))
    return (*plain, *(Aside(what, n) for what, n in total.items()))
