"""Real crowds in one line: downloaded once from their publishers, verified, parsed.

Files are kept in the platform's cache folder, or in ``$CROWDWISE_CACHE``. ``$CROWDWISE_MIRROR``,
the address of a server or a folder with files named ``<sha256>.<ext>``, is tried first if set; a
cache can serve as a mirror.

>>> from crowdwise import datasets
>>> "labelme" in datasets.names()
True
>>> print(datasets.info("labelme").warnings[0])
The file names in items contain the true class: never use them as a feature.
"""

from typing import TYPE_CHECKING

from crowdwise.datasets.download import cache_folder
from crowdwise.datasets.loading import fetch, load, where
from crowdwise.datasets.registry import Info, info, names

if TYPE_CHECKING:
    from crowdwise.datasets.crowd import Crowd

__all__ = ["Crowd", "Info", "cache_folder", "fetch", "info", "load", "names", "where"]


def __getattr__(name: str) -> "type[Crowd]":
    """Load the class on first use: listing and fetching do not need pandas."""
    if name == "Crowd":
        from crowdwise.datasets.crowd import Crowd

        return Crowd
    raise AttributeError(f"module 'crowdwise.datasets' has no attribute {name!r}")
