"""The pen that writes exports: it draws votes, spoils some of them, and keeps the books."""

import codecs
import gzip
import io
import json
import random
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

WORDS = ["yes", "no", "maybe", "Jörg", "李小龍", "naïve", "🙂", "a b", "it's", "x.y", "x@y.org",
         "007", "-3", "12", "3.5", "true", "λ=1", "a,b", 'say "hi"', "a;b", "a\tb", "<b>",
         "=1+1", "e\u0301", "\u202eabc"]  # fmt: skip
TYPED: list[Any] = [True, False, 1, 0, "yes", "no"]
NUMBERS: list[Any] = [0, 1, 2.0, 3.5, -7]
Vote = tuple[Any, Any, Any]
LONG = "long " * 3000
JUNK: list[Any] = [None, "", " ", True, False, 0, 1, -1, 3.5, 1e300, float("nan"), 10**30, [], {},
                   ["a"], ["a", "a"], [["a"]], {"a": 1}, {"a": {"b": []}}, "\x00", "\ud800", LONG,
                   "NA", "nan", "null", "[1", "{", '{"a": [', "2024-05-01", [None],
                   [1, None]]  # fmt: skip


@dataclass
class Export:
    """A file as some tool would write it, and what is known about it."""

    tool: str
    name: str
    data: bytes
    records: int | None = None  # how many were written; None where damage hides it
    votes: list[Vote] = field(default_factory=list)  # all that may be read
    clean: list[Vote] = field(default_factory=list)  # those that must be
    foreign: str = ""  # what the refusal must say, where there must be one
    options: dict[str, Any] = field(default_factory=dict)


class Pen:
    """Draws names and junk, and counts what is written."""

    def __init__(self, seed: int | str, dirt: float = 0.0) -> None:
        self.random = random.Random(seed)
        self.dirt = dirt
        self.spoiled = False
        self.records = 0
        self.votes: list[Vote] = []
        self.clean: list[Vote] = []
        self.words = self.random.sample(WORDS, 4)
        self.options: dict[str, Any] = {}
        self.legal = True  # whether all text is Unicode

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def pick(self, values: Any) -> Any:
        return self.random.choice(list(values))

    def names(self, prefix: str, most: int, *, typed: bool) -> list[Any]:
        """Different names: numbers, words with a prefix, or odd ones."""
        size = self.random.randint(1, most)
        if self.chance(0.3):
            return [k + 1 if typed else str(k + 1) for k in range(size)]
        if self.chance(0.3):
            return [f"{prefix}{word}" for word in self.random.sample(WORDS, size)]
        return [f"{prefix}{k}" for k in range(size)]

    def spoil(self, value: Any) -> Any:
        """The value; or junk in its place, after which the record is not a clean one."""
        if not self.chance(self.dirt):
            return value
        self.spoiled = True
        return self.pick(JUNK)

    def record(self, **fields: Any) -> dict[str, Any]:
        """An object, of which a field may be missing, spoiled or beside another one."""
        own = {key: self.spoil(value) for key, value in fields.items()}
        if self.chance(self.dirt):
            del own[self.pick(own)]
            self.spoiled = True
        if self.chance(self.dirt):
            own[self.pick(["note", "x", "é", "meta"])] = self.pick(JUNK)
        return own

    def write(self, task: Any, worker: Any, label: Any, *, aside: bool = False) -> None:
        """Enter a record into the books; ``aside`` if a reader should not take it."""
        self.records += 1
        if not aside or self.spoiled:
            self.votes.append((task, worker, label))
            if not self.spoiled:
                self.clean.append((task, worker, label))
        self.spoiled = False

    def draw_votes(self, most: int = 5, *, typed: bool = True, twice: bool = True) -> list[Vote]:
        """Triples of a task, a worker and a label; some pairs of the first two occur again."""
        tasks, workers = (self.names(kind, most, typed=typed) for kind in "tw")
        words = self.pick([TYPED, NUMBERS, self.words]) if typed else self.words
        votes = [
            (task, worker, self.pick(words))
            for task in tasks
            for worker in workers
            if self.chance(0.8)
        ] or [(tasks[0], workers[0], words[0])]
        again = self.random.sample(votes, len(votes) // 4) if twice and self.chance(0.1) else []
        return votes + [(task, worker, self.pick(words)) for task, worker, _ in again]

    def export(self, tool: str, name: str, data: bytes, foreign: str = "") -> Export:
        """What was written, as a file; one that is not UTF-8 cannot be read."""
        self.clean = self.clean if self.legal else []
        return Export(tool, name, data, self.records, self.votes, self.clean, foreign, self.options)

    def dump(self, value: Any) -> bytes:
        data = json.dumps(value, ensure_ascii=self.chance(0.5)).encode("utf-8", "surrogatepass")
        self.legal &= b"\xed\xa0\x80" not in data
        return data

    def dump_lines(self, rows: list[Any]) -> bytes:
        end = b"\r\n" if self.chance(0.2) else b"\n"
        return b"".join(self.dump(row) + end for row in rows)


Writer = Callable[[Pen], Export]


def draw_export(writers: dict[str, Writer], seed: int) -> Export:
    """The export that a seed stands for: its tool, its junk and its wrapping."""
    chooser = random.Random(seed)
    tool = chooser.choice(sorted(writers))
    pen = Pen(f"{seed} {tool}", chooser.choice([0.0, 0.0, 0.02, 0.1, 0.3]))
    return wrap(writers[tool](pen), pen)


def empty_rows(pen: Pen, rows: list[Any], *kinds: Any) -> list[Any]:
    """The rows, with some among them that hold no record."""
    extra = [pen.pick(kinds) for _ in rows if pen.chance(pen.dirt)]
    return pen.random.sample([*rows, *extra], len(rows) + len(extra))


def wrap(export: Export, pen: Pen) -> Export:
    """The export in another encoding, packed, or damaged."""
    text = not export.name.endswith((".zip", ".npy", ".parquet", ".xlsx"))
    if text and pen.chance(0.2):
        export.data = _encode(export.data, pen)
    if pen.chance(0.1):
        export.data = _damage(export.data, pen)
        export.records, export.clean, export.foreign = None, [], ""
        export.votes = []
    if pen.chance(0.1):
        export.options["repeats"] = pen.pick(["first", "last", "majority"])
        export.clean = [] if export.clean != export.votes else export.clean
    if pen.chance(0.1):
        export.options["rejected"] = True
    if pen.chance(0.1) and not export.name.endswith((".zip", ".xlsx")):
        export.data = gzip.compress(export.data)
        export.name += ".gz"
    elif pen.chance(0.1) and "." in export.name and not export.name.endswith((".zip", ".xlsx")):
        export.data, export.name = pack({export.name: export.data}), "export.zip"
    return export


def pack(files: dict[str, bytes]) -> bytes:
    """Files in a zip."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return stream.getvalue()


def _encode(data: bytes, pen: Pen) -> bytes:
    how = pen.pick(["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "blank"])
    if how == "blank":
        return pen.pick([b"\n", b"\r\n\n", b" "]) * (data[:1] in (b"{", b"[")) + data + b"\n\n"
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:  # a lone surrogate
        return data
    if how in ("utf-16-le", "utf-16-be") and sum(map(str.isascii, text)) < 0.9 * len(text):
        return codecs.BOM_UTF8 + data  # not to be told from junk without a mark
    return text.encode(how)


def _damage(data: bytes, pen: Pen) -> bytes:
    changed = bytearray(data)
    if pen.chance(0.5):
        return bytes(changed[: pen.random.randrange(len(changed) + 1)])
    for _ in range(pen.random.randint(1, 5)):
        if changed:
            place = pen.random.randrange(len(changed))
            changed[place : place + pen.random.randint(0, 3)] = pen.pick(
                [b"", b"\x00", b'"', b",", b"\n", b"{", b"]", b"\xff", b"1"]
            )
    return bytes(changed)
