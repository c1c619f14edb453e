"""The formats that can be read, most particular first; a format is a file and a line here.

Each file has a one-line docstring that says what the format is, ``matches(content)``,
which recognises it, and ``parse(content, options)``, which turns it into a long table.
"""

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Self

from crowdwise.io.content import Content, Long, Options
from crowdwise.io.formats import (
    appen,
    argilla,
    doccano,
    hugging_face,
    label_studio,
    long,
    matrix,
    mturk,
    nested,
    prodigy,
    toloka,
    wide,
    wrench,
)


@dataclass(frozen=True)
class Format:
    """A way to lay out annotations in a file."""

    name: str
    about: str
    matches: Callable[[Content], bool]
    parse: Callable[[Any, Options], Long]

    @classmethod
    def of(cls, module: ModuleType) -> Self:
        """The format that a module describes."""
        about = (module.__doc__ or "").strip().rstrip(".")
        return cls(module.__name__.rpartition(".")[2], about, module.matches, module.parse)


FORMATS = tuple(
    Format.of(module)
    for module in (
        label_studio,
        prodigy,
        argilla,
        mturk,
        appen,
        toloka,
        hugging_face,
        doccano,
        wrench,
        nested,
        matrix,
        long,
        wide,
    )
)
