"""Which classes anchor groups."""

from __future__ import annotations

from typing import Any

import numpy as np

from crowdwise.annotations.names import locate
from crowdwise.errors import ParameterError, explain, listing


def class_number(model: Any) -> int:
    """The positive class: the one that ``positive`` names, or the last."""
    if model.positive is None:
        return len(model.classes_) - 1
    found = int(locate(model.classes_, np.array([model.positive], dtype=object))[0])
    if found < 0:
        raise ParameterError(
            explain(
                f"positive={model.positive!r} is none of the classes.",
                expected=f"one of {listing(model.classes_)}",
            )
        )
    return found


def anchor_class(model: Any) -> int | None:
    """The one class that anchors, or None where every class does."""
    alone = model.anchors == "positive" or (model.anchors == "auto" and len(model.classes_) == 2)
    return class_number(model) if alone else None
