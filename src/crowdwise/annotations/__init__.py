"""The table of annotations: who gave which label to which task, and its sparse matrix."""

from crowdwise.annotations.columns import (
    TIE,
    Cells,
    drop_weightless,
    find_labeled,
    keep_counting,
    tied,
)
from crowdwise.annotations.pairs import Pairs
from crowdwise.annotations.store import StoredAnnotations
from crowdwise.annotations.table import Annotations

__all__ = [
    "TIE",
    "Annotations",
    "Cells",
    "Pairs",
    "StoredAnnotations",
    "drop_weightless",
    "find_labeled",
    "keep_counting",
    "tied",
]
