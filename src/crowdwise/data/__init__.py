"""Annotations: three integer columns and their names; readers and writers at the border."""

from crowdwise.data.annotations import Annotations
from crowdwise.data.cells import Cells
from crowdwise.data.coerce import as_annotations, as_gold

__all__ = ["Annotations", "Cells", "as_annotations", "as_gold"]
