"""The whole page, in a single self-contained file."""

import base64
import hashlib
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined

from crowdwise.errors import plural
from crowdwise.report.facts import Facts
from crowdwise.report.page import figures, maps, words
from crowdwise.report.page.panel import panel
from crowdwise.report.page.tables import round_values, task_table, worker_table

FIGURES = (
    figures.per_task,
    figures.per_worker,
    figures.agreement,
    figures.confidence,
    figures.reliability,
    maps.task_map,
    figures.accuracy,
    maps.worker_map,
    figures.drift,
    figures.pairs,
    panel,
    figures.balance,
    figures.confusion,
    figures.curve,
    figures.held_out,
    figures.truth,
)
# The page's sections in order, each a template, with their titles in the table of contents.
SECTIONS = {
    "summary": "Summary",
    "data": "Data",
    "agreement": "Agreement",
    "labels": "Labels",
    "workers": "Workers",
    "pairs": "Pairs",
    "panel": "Judges",
    "classes": "Classes",
    "curve": "More labels?",
    "plan": "Progress",
    "methods": "Methods",
    "about": "Glossary",
}


def to_html(facts: Facts) -> str:
    """Render the report as a single HTML file."""
    facts = words.clean_facts(facts)
    charts = {chart.id: chart for make in FIGURES if (chart := make(facts)) is not None}
    tables = {"tasks": task_table(facts), "workers": worker_table(facts)}
    block = {
        "charts": {
            key: {"columns": list(chart.columns), "rows": round_values(chart.rows)}
            for key, chart in charts.items()
        },
        "tables": {key: table.for_script() for key, table in tables.items()},
        "classes": facts.classes.name,
        "confusion": np.round(facts.workers.confusion, 1).tolist(),
    }
    absent = {key for key in ("curve", "panel", "plan") if getattr(facts, key) is None}
    sections = {key: title for key, title in SECTIONS.items() if key not in absent}
    return (
        environment()
        .get_template("page.html.j2")
        .render(
            facts=facts,
            charts=charts,
            tables=tables,
            block=block,
            sections=sections,
            policy=policy(),
        )
    )


@cache
def environment() -> Environment:
    """Set up the templates and their filters; all text is escaped."""
    made = Environment(
        loader=PackageLoader("crowdwise.report.page"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    for word in (words.share, words.number, words.between, words.shares_between, words.duration):
        made.filters[word.__name__] = word
    made.filters |= {"count": "{:,}".format, "plural": plural, "name": words.name}
    made.globals |= {"style": source("report.css"), "script": source("report.js")}
    dense: dict[str, Any] = {"ensure_ascii": False, "allow_nan": False, "separators": (",", ":")}
    made.policies["json.dumps_kwargs"] = dense
    return made


def policy() -> str:
    """Return the content security policy: only this style and this script may run."""
    style, script = digest(source("report.css")), digest(source("report.js"))
    return (
        f"default-src 'none'; style-src '{style}'; script-src '{script}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def source(name: str) -> str:
    """Read a file beside this one."""
    return files("crowdwise.report.page").joinpath(name).read_text(encoding="utf-8")


def digest(text: str) -> str:
    """Return the CSP source expression that allows this code to run."""
    found = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(found).decode('ascii')}"
