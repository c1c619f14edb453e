"""The numbers of a report: what is computed, apart from how it is shown."""

from crowdwise.report.facts.as_json import to_json
from crowdwise.report.facts.gather import Facts, gather

__all__ = ["Facts", "gather", "to_json"]
