"""Recognize: the format of a document, and the role of each column."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, Generic, TypeVar

import numpy as np

from crowdwise.annotations.frames import refuse_absent, shorten_columns
from crowdwise.errors import AnnotationError
from crowdwise.io.build import LongTable
from crowdwise.io.document import Document, ReadOptions, Tree
from crowdwise.io.values import Cell

# What a parser raises on content that only looks like its format.
MALFORMED = (
    ArithmeticError, AttributeError, LookupError, RecursionError, StopIteration, TypeError,
    ValueError,
)  # fmt: skip
Kind = TypeVar("Kind", bound=Document)


def always(_: Document) -> bool:
    return True


@dataclass(frozen=True)
class Format(Generic[Kind]):
    """A layout of annotations in a file.

    Attributes
    ----------
    name : str
        Its name.
    doc : str
        One line that describes it: the docstring of its module.
    kind : type or tuple of types
        The kinds of documents that can have it.
    parse : callable
        Converts such a document, with the caller's options, to a long table.
    marks : tuple of sets of str
        Sets of columns that identify it: all those of one set exist. Shell patterns are
        allowed. An empty tuple means no such check.
    any_case : bool
        Whether ``marks`` ignore case.
    lists : tuple of str
        Normalized names of columns, one of which must have several values in a cell; an empty
        tuple means no such check.
    matches : callable
        Makes the final decision on a document that passes the above.
    """

    name: str
    doc: str | None
    kind: type[Any] | tuple[type[Any], ...]  # a Kind, which mypy would not take if abstract
    parse: Callable[[Kind, ReadOptions], LongTable]
    marks: tuple[set[str], ...] = ()
    any_case: bool = False
    lists: tuple[str, ...] = ()
    matches: Callable[[Kind], bool] = always

    @property
    def about(self) -> str:
        return (self.doc or "").strip().rstrip(".")

    def recognizes(self, document: Document) -> bool:
        """Return whether a document looks like this format."""
        try:
            return (
                isinstance(document, self.kind)
                and (not self.marks or self._has_marks(document.columns))
                and (not self.lists or _has_lists(document, self.lists))
                and self.matches(document)
            )
        except MALFORMED:
            return False

    def _has_marks(self, columns: Iterable[object]) -> bool:
        names = {str(name).lower() if self.any_case else str(name) for name in columns}
        return any(all(_names_one(mark, names) for mark in marks) for marks in self.marks)


def _names_one(pattern: str, names: set[str]) -> bool:
    if "*" in pattern:
        return any(fnmatchcase(name, pattern) for name in names)
    return pattern in names


def holds_several(cell: Cell) -> bool:
    """Return whether a cell has several values: a list, a dict, or text written like one."""
    if isinstance(cell, str):
        return "," in cell or cell[:1] in ("[", "{")
    return isinstance(cell, list | tuple | np.ndarray | Mapping)


def _has_lists(document: Document, names: tuple[str, ...]) -> bool:
    if isinstance(document, Tree):  # has no columns, and a format looks at all of it
        return True
    columns = [name for name in document.columns if normalize_name(name) in names]
    return any(holds_several(row.get(k)) for k in columns for row in document.sample)


def recognize_format(document: Document, formats: Sequence[Format[Any]]) -> Format[Any] | None:
    """Return the first format that a document looks like, if there is one."""
    return next((form for form in formats if form.recognizes(document)), None)


# Compared in lower case without spaces, dots, dashes and underscores at either end or inside.
SYNONYMS = {
    "task": (
        "task", "taskid", "item", "itemid", "question", "questionid", "example", "exampleid",
        "instance", "instanceid", "unit", "unitid", "hitid", "object", "objectid", "sampleid",
        "docid", "documentid", "imageid", "textid", "sentenceid", "commentid", "tweetid", "postid",
        "revid", "origid", "id", "sample", "doc", "document", "image", "text", "sentence",
        "comment", "tweet",
    ),
    "worker": (
        "worker", "workerid", "annotator", "annotatorid", "user", "userid", "username", "rater",
        "raterid", "labeler", "labelerid", "labeller", "labellerid", "coder", "coderid",
        "performer", "performerid", "judge", "judgeid", "expert", "expertid", "completedby",
        "turker", "amtworkerids", "judgemodel", "grader", "graderid", "evaluator", "evaluatorid",
        "source", "model",
    ),
    "label": (
        "label", "labels", "answer", "annotation", "value", "response", "rating", "vote",
        "judgment", "judgement", "category", "class", "choice", "score", "verdict", "grade",
        "decision", "prediction",
    ),
    "weight": ("weight",),
    "time": (
        "time", "timestamp", "datetime", "date", "createdat", "completetime", "submittime",
        "submittedat", "updatedat",
    ),
    "gold": ("gold", "truth", "goldlabel", "groundtruth", "truelabel"),
}  # fmt: skip
REQUIRED = ("task", "worker", "label")


@lru_cache(maxsize=1 << 14, typed=True)  # wide tables are looked at by every format in turn
def normalize_name(name: object) -> str:
    """Return a column's name without case and punctuation."""
    return "".join(letter for letter in str(name).lower() if letter.isalnum())


def is_name_of(name: object, role: str) -> bool:
    """Return whether a column's name says that it holds names of tasks or workers."""
    plain = normalize_name(name)
    return plain == role or (plain in SYNONYMS[role] and plain.endswith("id"))


def list_candidates(role: str, columns: Iterable[object]) -> list[str]:
    """List the columns that a role's synonyms match, the likeliest first."""
    by_plain: dict[str, str] = {}
    for name in map(str, columns):
        by_plain.setdefault(normalize_name(name), name)
    return [by_plain[word] for word in SYNONYMS[role] if word in by_plain]


def recognize_columns(columns: Iterable[object], given: Mapping[str, str | None]) -> dict[str, str]:
    """Find the column for each role: as given, else by its own name, else by a synonym."""
    names = list(map(str, columns))
    found = {role: name for role, name in given.items() if name is not None}
    for role in SYNONYMS:
        taken = set(found.values())
        left = [name for name in list_candidates(role, names) if name not in taken]
        if role not in found and left:
            found[role] = left[0]
    return found


def require_columns(
    found: Mapping[str, str],
    columns: Iterable[object],
    where: str,
    needed: Iterable[str] = REQUIRED,
) -> None:
    """Refuse a table without a column for a required role, or without a named column."""
    names = list(map(str, columns))
    for role in needed:
        if role not in found:
            fix = f"rename a column, or name it: {role}='…' in Python, --{role} … in a shell"
            if not found:
                fix += "; the first line must name the columns"
            elif role == "worker":
                fix += "; worker='rater_*' if every such column is a worker"
            shown = shorten_columns(names)
            raise AnnotationError.missing_column(role, where=where, found=shown, fix=fix)
        refuse_absent({role: found[role]}, names, where)
    refuse_absent(found, names, where)
