"""Models in files without pickle: arrays as safetensors, the rest as JSON in their header.

A file is only data. The classes it names are looked up in a fixed list, so reading it runs no
code from the file; anything wrong with a file is one ``CrowdwiseError``.

>>> import tempfile
>>> from pathlib import Path
>>> from crowdwise.aggregate import DawidSkene
>>> model = DawidSkene().fit([[0, 0, 1], [1, 1, 0], [0, 0, 1], [1, 1, 0]])
>>> with tempfile.TemporaryDirectory() as folder:
...     model.save(Path(folder) / "model.safetensors")
...     again = load(Path(folder) / "model.safetensors")
>>> again.labels_.tolist()
[0, 1, 0, 1]
"""

from crowdwise.persist.container import is_model
from crowdwise.persist.models import Savable, load, save

__all__ = ["Savable", "is_model", "load", "save"]
