"""Published tables, run again: every method of a paper on its data, ours beside theirs.

A table is a file in ``bench/tables`` that makes one :class:`Table`; ``crowdwise bench NAME``
runs it over seeds and writes JSON and Markdown.

>>> from crowdwise import bench
>>> "speelfc-table2" in bench.names()
True
"""

from crowdwise.bench.registry import names, table, with_third_party
from crowdwise.bench.runner import run_table
from crowdwise.bench.table import Column, Published, Row, Table

__all__ = [
    "Column",
    "Published",
    "Row",
    "Table",
    "names",
    "run_table",
    "table",
    "with_third_party",
]
