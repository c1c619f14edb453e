"""The table of annotations: who gave which label to which task, and its sparse matrix."""

from crowdwise.annotations.columns import TIE, Cells, find_labeled, refuse_empty, tied
from crowdwise.annotations.table import Annotations

__all__ = ["TIE", "Annotations", "Cells", "find_labeled", "refuse_empty", "tied"]
