"""Published tables, rerun: every method of a paper on its data, beside the published figures.

A table is a file in ``crowdbench/tables`` that makes one :class:`Table`; ``crowdwise bench NAME``
runs it over seeds and writes JSON and Markdown.

>>> import crowdbench
>>> "speelfc-table2" in crowdbench.names()
True
"""

from crowdbench.registry import names, table, with_third_party
from crowdbench.runner import run_table
from crowdbench.table import Column, Published, Row, Table

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
