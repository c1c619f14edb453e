"""Learners as their papers have them: what they would choose for themselves is switched off."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from crowdbench.table import Row

OFF = {"penalty": 0.0, "prior": 0.0}  # what learners choose by held-out labels where it is "auto"


def without_search(rows: Mapping[str, Row]) -> dict[str, Row]:
    """The rows of a paper's table: models keep to the settings that the table gives them."""
    return {name: replace(row, make=_plain(row.make)) for name, row in rows.items()}


def switch_off(model: Any) -> Any:
    """The model, with nothing left for it to choose."""
    params = model.get_params() if hasattr(model, "get_params") else {}
    chosen = {
        name: OFF[name.split("__")[-1]]
        for name, value in params.items()
        if isinstance(value, str) and value == "auto" and name.split("__")[-1] in OFF
    }
    return model.set_params(**chosen) if chosen else model


def _plain(make: Callable[[str], Any]) -> Callable[[str], Any]:
    return lambda column: switch_off(make(column))
