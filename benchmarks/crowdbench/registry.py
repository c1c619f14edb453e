"""The available tables: one file each, imported on demand."""

import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from crowdbench.table import Row, Table
from crowdwise.errors import ParameterError, explain

FOLDER = Path(__file__).parent / "tables"


def names() -> list[str]:
    """Every table's name: its file's, with hyphens."""
    found = (module.name for module in pkgutil.iter_modules([str(FOLDER)]))
    return sorted(name.replace("_", "-") for name in found if not name.startswith("_"))


def table(name: str) -> Table:
    """One table by name."""
    if name not in names():
        raise ParameterError(
            explain(f"there is no table {name!r}.", expected=", ".join([*names(), "all"]))
        )
    module = import_module(f"crowdbench.tables.{name.replace('-', '_')}")
    made: Table = module.TABLE
    return made


def with_third_party(made: Table, specs: Sequence[str]) -> Table:
    """The table with one more row for every ``package.module:Class``, at its default settings."""
    rows = {spec: Row(_maker(spec)) for spec in specs}
    return replace(made, rows={**made.rows, **rows}) if rows else made


def _maker(spec: str) -> Callable[[str], Any]:
    module, _, name = spec.partition(":")
    try:
        maker = getattr(import_module(module), name)
        model = maker()
    except Exception as error:  # whatever is in that package
        raise ParameterError(
            explain(
                f"{spec!r} cannot be imported and created: {error}.",
                first=type(error).__name__,
                expected="package.module:Class of an installed package, without required arguments",
            )
        ) from error
    if not callable(getattr(model, "fit", None)):
        raise ParameterError(
            explain(
                f"{spec!r} creates a {type(model).__name__}, which has no fit method.",
                expected="an estimator",
            )
        )
    return lambda column: maker()
