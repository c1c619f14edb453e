"""The table of annotations: who gave which label to which task, and its sparse matrix."""

from crowdwise.annotations.cells import Cells
from crowdwise.annotations.table import Annotations

__all__ = ["Annotations", "Cells"]
