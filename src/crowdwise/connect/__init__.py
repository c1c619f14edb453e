"""Labeling tools: their labels in, consensus and plans back.

No tool's own package is needed, except by :mod:`~crowdwise.connect.argilla`, which works on
the objects of its client.
"""

from crowdwise.connect.label_studio import LabelStudio
from crowdwise.connect.link import ConnectError, Link
from crowdwise.connect.overlap import Overlap

__all__ = ["ConnectError", "LabelStudio", "Link", "Overlap"]
