"""Reading and writing annotations: files, frames and labeling tools."""

from crowdwise.io.accept import as_annotations
from crowdwise.io.consensus import consensus_frame, to_argilla, to_label_studio
from crowdwise.io.gold import as_gold
from crowdwise.io.reader import read
from crowdwise.io.stream import stream_labels
from crowdwise.io.write import write_annotations, write_labels

__all__ = [
    "as_annotations",
    "as_gold",
    "consensus_frame",
    "read",
    "stream_labels",
    "to_argilla",
    "to_label_studio",
    "write_annotations",
    "write_labels",
]
