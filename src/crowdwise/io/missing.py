"""Words that stand for a missing label, such as NA and None."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

# What pandas, R, SQL, Python and spreadsheets write where there is nothing.
WORDS = frozenset(
    {
        "NA", "N/A", "n/a", "<NA>", "#NA", "#N/A", "#N/A N/A", "NaN", "nan", "-NaN", "-nan", "NaT",
        "None", "NULL", "Null", "null", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN",
        "#NULL!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#DIV/0!",
    }
)  # fmt: skip
TAKEN = "taken as missing"  # in every note about such words


def is_word(cell: Any, words: frozenset[str] = WORDS) -> bool:
    """Whether a cell is one of these words, with spaces around it or not."""
    return isinstance(cell, str) and cell.strip() in words


def find_words(missing: Any, classes: Iterable[object] = ()) -> frozenset[str]:
    """The words that mean "no label": those given, or the usual ones that are not classes."""
    if isinstance(missing, str) and missing == "auto":
        return WORDS - {name for name in classes if isinstance(name, str)}
    return frozenset(value.strip() for value in missing if isinstance(value, str))


def blank_words(column: pd.Series, words: frozenset[str]) -> tuple[pd.Series, Counter[str]]:
    """A column without these words, and how often each was there; it must be a categorical."""
    if not isinstance(column.dtype, pd.CategoricalDtype):
        return column, Counter()
    codes, names = column.cat.codes.to_numpy(), column.cat.categories
    blank = np.array([is_word(name, words) for name in names], dtype=bool)
    if not blank.any():
        return column, Counter()
    times = np.bincount(codes[codes >= 0], minlength=len(names))
    found = {str(names[k]).strip(): int(times[k]) for k in np.flatnonzero(blank) if times[k]}
    kept = np.append(np.where(blank, -1, np.cumsum(~blank) - 1), -1)[codes]
    own = pd.Categorical.from_codes(kept, names[~blank], ordered=column.cat.ordered)
    return pd.Series(own, index=column.index), Counter(found)


def note_names(column: pd.Series, role: str) -> tuple[str, ...]:
    """A note on tasks or workers that are named like a missing value; these are names even so."""
    if is_numeric_dtype(column.dtype):
        return ()
    if (
        isinstance(column.dtype, pd.CategoricalDtype)
        and not column.cat.categories.isin(WORDS).any()
    ):
        return ()  # without a look at all rows
    found = column[column.isin(WORDS)].astype(object).value_counts()
    shown = ", ".join(f"{name!r} {times:,}" for name, times in found.items())
    return (f"{role}s with names like that of a missing value: {shown}",) if shown else ()


def note_words(found: Counter[str], what: str = "labels") -> tuple[str, ...]:
    """A note that says how many of which words were taken as missing, and how to keep them."""
    if not found:
        return ()
    shown = ", ".join(f"{word!r} {times:,}" for word, times in found.most_common())
    how = "missing=None in Python and --missing '' in a shell keep them"
    return (f"{what} {TAKEN}: {shown} ({how})",)
