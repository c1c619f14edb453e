"""Warnings about what a file cannot hold, or will not give back."""

import warnings

import numpy as np
import pandas as pd

from crowdwise.annotations.grouping import is_word
from crowdwise.annotations.names import guard
from crowdwise.annotations.table import Annotations
from crowdwise.errors import explain, listing
from crowdwise.io.values import parse_names
from crowdwise.typing import Array, Names


def warn_about_losses(annotations: Annotations, layout: str) -> None:
    """Warn about columns that are lost."""
    extra = ("weight", "time", "soft", "gold")
    lost = [name for name in extra if getattr(annotations, name) is not None]
    if lost:
        fact = f"{layout} cannot hold {', '.join(lost)}: left out."
        warnings.warn(explain(fact, fix="write csv, json or parquet to keep it"), stacklevel=4)


def warn_about_words(classes: Array) -> None:
    """Warn that a class will be read back as missing, by default."""
    words = [name for name in classes.tolist() if is_word(name)]
    if words:
        fact = f"Labels {listing(words)} are taken as missing when they are read back."
        fix = "rename them, or read with missing=None, on the command line --missing ''"
        warnings.warn(explain(fact, fix=fix), stacklevel=4)


def warn_about_spaces(workers: Array) -> None:
    """Warn that names of columns are read back without the spaces around them."""
    texts = [name for name in workers.tolist() if isinstance(name, str)]
    spaced = [name for name in texts if name != name.strip() and guard(name) != guard(name).strip()]
    if spaced:
        fact = f"Workers {listing(spaced)} are read back without the spaces around their names."
        warnings.warn(explain(fact, fix="rename them, or write csv, json or parquet"), stacklevel=4)


def warn_about_duplicates(names: Names, role: str) -> None:
    """Warn that names such as 1 and "1", or "1" and "1.0", are read back as the same."""
    values = np.asarray(names, dtype=object)
    own = values[~pd.isna(values)].tolist()
    kinds = set(map(type, own))
    if len(kinds) < 2 and not (kinds == {str} and any(name.endswith(".0") for name in own)):
        return
    texts = list(map(str, own))
    by_text: dict[object, list[object]] = {}
    for name, text in zip(own, parse_names(texts), strict=True):
        by_text.setdefault(text, []).append(name)
    twins = [alike for alike in by_text.values() if len(alike) > 1]
    if twins:
        shown = " and ".join(map(repr, twins[0]))
        fact = f"Some names in {role} become the same text, and will be read back as one."
        fix = "rename them, or write json or jsonl, which keep numbers and text apart"
        warnings.warn(explain(fact, first=shown, fix=fix), stacklevel=4)
