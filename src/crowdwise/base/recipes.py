"""Settings of papers and their code, by name."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from crowdwise.errors import ParameterError, explain


def find_recipe(
    method: type, recipes: Mapping[str, Mapping[str, Any]], name: str
) -> dict[str, Any]:
    """Return copies of the settings in a method's recipe."""
    if name not in recipes:
        raise ParameterError(
            explain(
                f"{method.__name__} has no recipe {name!r}.",
                expected=", ".join(recipes) or "none; it is used as it is",
                fix="choose one of these, or set its parameters yourself",
            )
        )
    return copy.deepcopy(dict(recipes[name]))
