"""The numbers of a report, separate from how they are rendered."""

from crowdwise.report.facts.facts import Facts, to_json
from crowdwise.report.facts.gather import gather

__all__ = ["Facts", "gather", "to_json"]
