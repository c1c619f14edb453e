"""One module per publisher: files in, :class:`~crowdwise.datasets.tables.PublishedTables` out.

A parser is a function ``(files, **options)``; ``files`` maps file names to paths. The registry
refers to it as ``module`` (its function ``parse``) or ``module:function``, with the options.
"""

from collections.abc import Callable
from importlib import import_module

from crowdwise.datasets.tables import PublishedTables


def find_parser(name: str) -> Callable[..., PublishedTables]:
    """Find a parser by its name in the registry."""
    module, _, function = name.partition(":")
    found: Callable[..., PublishedTables] = getattr(
        import_module(f"crowdwise.datasets.parsers.{module}"), function or "parse"
    )
    return found
