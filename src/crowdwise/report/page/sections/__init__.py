"""The parts of the page, in order; each takes the facts and returns markup."""

from crowdwise.report.page.sections.about import about
from crowdwise.report.page.sections.agreement import agreement
from crowdwise.report.page.sections.classes import classes
from crowdwise.report.page.sections.curve import curve
from crowdwise.report.page.sections.data import data
from crowdwise.report.page.sections.labels import labels
from crowdwise.report.page.sections.methods import methods
from crowdwise.report.page.sections.pairs import pairs
from crowdwise.report.page.sections.summary import summary
from crowdwise.report.page.sections.workers import workers

SECTIONS = {
    "summary": ("In short", summary),
    "data": ("Data", data),
    "agreement": ("Agreement", agreement),
    "labels": ("Labels", labels),
    "workers": ("Workers", workers),
    "pairs": ("Who disagrees", pairs),
    "classes": ("Classes", classes),
    "curve": ("More labels?", curve),
    "methods": ("Methods", methods),
    "about": ("How to read", about),
}

__all__ = ["SECTIONS"]
