"""The page as a whole: one file that needs nothing else."""

import base64
import hashlib
from importlib.resources import files

from crowdwise.report.facts import Facts
from crowdwise.report.page.html import Markup, clean, tag
from crowdwise.report.page.sections import SECTIONS
from crowdwise.report.page.sheet import Sheet
from crowdwise.report.page.words import DASH


def to_html(facts: Facts) -> str:
    """The report as the text of one HTML file."""
    sheet = Sheet(extra={"classes": [clean(name) for name in facts.classes.name]})
    parts = {key: make(facts, sheet) for key, (_, make) in SECTIONS.items()}
    shown = {key: part for key, part in parts.items() if part is not None}
    links = [tag("li", tag("a", SECTIONS[key][0], href=f"#{key}")) for key in shown]
    style, script = source("report.css"), source("report.js")
    body = tag(
        "body",
        tag("a", "Skip to the report", href="#main", class_="skip"),
        tag("header", tag("h1", tag("bdi", facts.title)), tag("p", subtitle(facts))),
        tag("nav", tag("ul", links), aria_label="Contents"),
        tag("main", tag("noscript", tag("p", NO_SCRIPT)), *shown.values(), id="main"),
        tag("footer", tag("p", f"Made by crowdwise {facts.version}.")),
        tag("div", class_="tip", hidden=True, aria_hidden="true"),
        tag("div", id="said", class_="unseen", role="status", aria_live="polite"),
        sheet.block(),
        tag("script", script),
    )
    return f"<!DOCTYPE html>\n{tag('html', head(facts.title, style, script), body, lang='en')}\n"


NO_SCRIPT = "Tables that can be sorted, and saving of charts, need JavaScript."


def head(title: str, style: Markup, script: Markup) -> Markup:
    """What the browser must know; only this style and this script may run."""
    policy = (
        f"default-src 'none'; style-src '{digest(style)}'; script-src '{digest(script)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", f"{title} {DASH} crowdwise report"),
        tag("style", style),
    )


def source(name: str) -> Markup:
    """A file beside this one, as it is."""
    return Markup(files("crowdwise.report.page").joinpath(name).read_text(encoding="utf-8"))


def digest(text: str) -> str:
    """What the policy calls a piece of code that may run."""
    found = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(found).decode('ascii')}"


def subtitle(facts: Facts) -> str:
    """What the page is about, in one line."""
    data = facts.data
    labels = f"{data.n_annotations:,} annotations of {data.n_tasks:,} tasks"
    return f"{labels} by {data.n_workers:,} workers, {data.n_classes:,} classes"
