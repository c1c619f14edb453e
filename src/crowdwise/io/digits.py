"""Rounding to significant digits."""

import numpy as np
import pandas as pd
from pandas.api.types import is_float_dtype

from crowdwise.typing import Floats

EXACT = 22  # powers of ten up to this are exact as floats, so results print short


def round_floats(frame: pd.DataFrame, digits: int) -> pd.DataFrame:
    """Round float columns to this many digits; the integer part is always exact."""
    rounded = frame.copy(deep=False)
    for place, kind in enumerate(frame.dtypes):
        if is_float_dtype(kind):
            rounded.isetitem(place, round_digits(frame.iloc[:, place], digits))
    return rounded


def round_digits(column: pd.Series, digits: int) -> Floats:
    """Round numbers to this many digits.

    >>> round_digits(pd.Series([0.1 + 0.2, 2 / 3, 1e-9 / 3, 1234567.8, 1e-40 / 3]), 6).tolist()
    [0.3, 0.666667, 3.33333e-10, 1234568.0, 3.33333e-41]
    """
    values: Floats = column.to_numpy(dtype=np.float64, na_value=np.nan)
    size = np.abs(values)
    used = np.isfinite(values) & (size > 0)
    place = np.floor(np.log10(size, where=used, out=np.zeros_like(size))).astype(int)
    decimals = np.maximum(digits - 1 - place, 0)
    rounded = values.copy()
    for number in np.unique(decimals[decimals <= EXACT]):
        chosen = decimals == number
        rounded[chosen] = np.round(values[chosen], number)
    tiny = decimals > EXACT
    rounded[tiny] = [float(f"{value:.{digits - 1}e}") for value in values[tiny]]
    return rounded
