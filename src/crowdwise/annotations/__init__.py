"""The table of annotations: who gave which label to which task, and its sparse matrix."""

from crowdwise.annotations.cells import Cells
from crowdwise.annotations.table import Annotations, find_labeled, refuse_empty

__all__ = ["Annotations", "Cells", "find_labeled", "refuse_empty"]
