"""Every error and warning this package raises on purpose.

A message has four parts: what is wrong and how much of it, the first place where it occurs, what
was expected, and what to do. :func:`explain` lays them out, so that all messages have the same
form. Errors derive from :class:`CrowdwiseError` and from the built-in type that people
already catch.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Self

from crowdwise.screen import printable


class CrowdwiseError(Exception):
    """Something the caller can fix; the message says how."""

    def __str__(self) -> str:
        return printable(super().__str__())


class AnnotationError(CrowdwiseError, ValueError):
    """The annotations are not a clean (task, worker, label) table."""

    @classmethod
    def unknown(
        cls, column: str, *, n_bad: int, n_rows: int, first: str, known: Sequence[object], fix: str
    ) -> Self:
        """Say how many values are unknown, where the first one is, and what to do."""
        what = f"An unknown {column} occurs in {n_bad:,} of {plural(n_rows, 'annotation')}."
        expected = f"{column} in [{listing(known)}]"
        return cls(explain(what, first=first, expected=expected, fix=fix))

    @classmethod
    def missing_column(cls, role: str, *, where: str, found: Iterable[object], fix: str) -> Self:
        """Say which column could not be found, and which ones were."""
        what = f"{where} has no column for the {role}."
        shown = ", ".join(map(str, found)) or "no columns"
        return cls(explain(what, found=shown, expected=f"a column named {role!r}", fix=fix))


class FileError(CrowdwiseError, OSError):
    """A file cannot be read or written."""


class DownloadError(FileError):
    """A file could not be fetched, or what came is not what was published."""


class FormatError(CrowdwiseError, ValueError):
    """A file was read, but its contents are not what its format promises."""


class ParameterError(CrowdwiseError, ValueError):
    """A parameter's value does not fit the data or the other parameters."""


class MissingExtraError(CrowdwiseError, ImportError):
    """An optional dependency is needed and not installed."""

    @classmethod
    def of(cls, what: str, package: str, extra: str) -> Self:
        return cls(f'{what} needs {package}.\n  fix:      pip install "crowdwise[{extra}]"')


def explain(what: str, **parts: str) -> str:
    """Lay out a message: the fact, then one indented line for each named part."""
    lines = [f"  {name + ':':<9} {text}" for name, text in parts.items() if text]
    return printable("\n".join([what, *lines]))


def listing(values: Any, most: int = 5) -> str:
    """Show the first few values, quoted, with an ellipsis if there are more."""
    shown = [repr(v.item() if hasattr(v, "item") else v) for v in values[:most]]
    return ", ".join(shown) + (", …" if len(values) > most else "")


def plural(n: int, noun: str, nouns: str = "") -> str:
    """Write a count with its noun: ``1 task``, ``2,000 tasks``.

    >>> plural(1, "task"), plural(2000, "task"), plural(0, "class", "classes")
    ('1 task', '2,000 tasks', '0 classes')
    """
    return f"{n:,} {noun if n == 1 else nouns or noun + 's'}"
