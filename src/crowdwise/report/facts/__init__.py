"""The numbers of a report: what is computed, apart from how it is shown."""

from crowdwise.report.facts.facts import Facts, to_json
from crowdwise.report.facts.gather import gather

__all__ = ["Facts", "gather", "to_json"]
