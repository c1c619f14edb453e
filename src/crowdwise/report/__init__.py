"""One HTML page about a crowd; its numbers are computed first, then rendered."""

from crowdwise.report.facts import Facts, gather, to_json
from crowdwise.report.page import to_html
from crowdwise.report.write import write_report

__all__ = ["Facts", "gather", "to_html", "to_json", "write_report"]
