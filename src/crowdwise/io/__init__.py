"""Annotations in and out: files, frames and labeling tools."""

from crowdwise.io.coerce import as_annotations, as_gold
from crowdwise.io.predictions import to_argilla, to_label_studio
from crowdwise.io.reader import read
from crowdwise.io.write import consensus_frame, write_annotations, write_labels

__all__ = [
    "as_annotations",
    "as_gold",
    "consensus_frame",
    "read",
    "to_argilla",
    "to_label_studio",
    "write_annotations",
    "write_labels",
]
