"""Annotations taken from the columns of a table, a row each."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from crowdwise.io.content import Long, Table
from crowdwise.io.recognize import require_columns

UNTYPED = ("task", "worker", "label", "gold")


def take(
    table: Table, roles: Mapping[str, str], notes: tuple[str, ...] = (), **computed: Any
) -> Long:
    """The columns that play the roles, and columns computed from others."""
    columns = {role: name for role, name in roles.items() if role not in computed}
    require_columns(columns, table.columns, table.name, needed=())
    frame = table.frame(list(columns.values()))
    cells = {role: frame[name] for role, name in columns.items()} | computed
    worth = {r: n for r, n in columns.items() if n != r or r in ("weight", "time", "gold")}
    taken = (f"{role} from column {name!r}" for role, name in worth.items())
    untyped = UNTYPED if table.untyped else ()
    return Long(pd.DataFrame(cells), (*taken, *notes), untyped)


def present(roles: Mapping[str, str], table: Table) -> dict[str, str]:
    """The roles whose column the table has."""
    return {role: name for role, name in roles.items() if name in table.columns}
