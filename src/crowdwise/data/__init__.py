"""Annotations: three integer columns and their names; readers and writers at the border."""

from crowdwise.data.annotations import Annotations
from crowdwise.data.cells import Cells
from crowdwise.data.coerce import as_annotations, as_gold
from crowdwise.data.predictions import to_argilla, to_label_studio
from crowdwise.data.write import consensus_frame, write_annotations, write_labels

__all__ = [
    "Annotations",
    "Cells",
    "as_annotations",
    "as_gold",
    "consensus_frame",
    "to_argilla",
    "to_label_studio",
    "write_annotations",
    "write_labels",
]
