"""Points in time as numbers and text, and back: what tasks may be named by."""

from datetime import date, datetime
from typing import Any

import numpy as np
import pandas as pd

from crowdwise.errors import FormatError
from crowdwise.typing import Array

TIMES = "mM"  # kinds of numpy arrays of durations and of points in time
MOMENTS = (date, datetime, pd.Timestamp)


def as_times(numbers: Array, name: Any) -> Array:
    """Whole numbers of a unit as durations or points in time."""
    dtype = np.dtype(str(name))
    if dtype.kind not in TIMES:
        raise FormatError(f"{name!r:.80} is not a type of time.")
    return numbers.view(dtype)


def pack_moment(value: Any) -> dict[str, Any]:
    """A day or a point in time as text, with its zone where that has a name."""
    zone = getattr(value, "tzinfo", None)
    named = None if zone is None else str(zone)
    try:
        pd.Timestamp(0, tz=named)
    except (KeyError, ValueError, TypeError, OSError):  # the text has the offset, at least
        named = None
    return {"type": type(value).__name__, "value": value.isoformat(), "zone": named}


def unpack_moment(tree: dict[str, Any]) -> Any:
    """What :func:`pack_moment` made the text of."""
    if tree["type"] == "Timestamp":  # the only one that finds time zones by their names
        moment = pd.Timestamp(tree["value"])
        return moment if tree["zone"] is None else moment.tz_convert(tree["zone"])
    return {"date": date, "datetime": datetime}[tree["type"]].fromisoformat(tree["value"])
