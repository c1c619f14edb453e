"""The rendered report: one self-contained HTML page."""

from crowdwise.report.page.document import to_html

__all__ = ["to_html"]
