"""Tools that people label in: labels out of them, consensus and plans back in.

Nothing here needs a package of the tool itself, except :mod:`~crowdwise.connect.argilla`, which
works on the objects of its client.
"""

from crowdwise.connect.label_studio import LabelStudio
from crowdwise.connect.link import ConnectError, Link
from crowdwise.connect.overlap import Overlap

__all__ = ["ConnectError", "LabelStudio", "Link", "Overlap"]
