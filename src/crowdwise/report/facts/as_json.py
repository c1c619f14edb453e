"""Facts as plain values that any program can read."""

import json
import math
from dataclasses import fields, is_dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.sparse import issparse


def to_json(facts: Any) -> str:
    """The facts as JSON text; a number that is not known is null."""
    return json.dumps(plain(facts), ensure_ascii=False, allow_nan=False)


def plain(value: Any) -> Any:
    """Dicts, lists, text, numbers and None only."""
    if is_dataclass(value):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    elif isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    elif issparse(value):
        value = pairs_of(value)
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    known = value is None or isinstance(value, bool | int)
    return value if known else str(value).encode("utf-8", "replace").decode("utf-8")


def pairs_of(table: Any) -> list[list[list[int]]]:
    """A sparse table of counts as a list of (column, count) for each row."""
    table = table.tocsr()
    column, times = table.indices.tolist(), table.data.astype(int).tolist()
    cells = [[c, t] for c, t in zip(column, times, strict=True)]
    return [cells[low:high] for low, high in pairwise(table.indptr.tolist())]
