"""The table of annotations: who gave which label to which task, and its sparse matrix."""

from crowdwise.annotations.columns import Cells, find_labeled, refuse_empty
from crowdwise.annotations.table import Annotations

__all__ = ["Annotations", "Cells", "find_labeled", "refuse_empty"]
