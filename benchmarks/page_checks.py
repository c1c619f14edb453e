"""Pages in a browser, through Playwright, and what must hold for every report.

Nothing fails, nothing is fetched, and all of it can be seen and reached.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)

NAMES = """[...document.querySelectorAll(
    "a, button, input, select, summary, svg[role=img], [role=region]")]
  .filter((node) => node.checkVisibility()
    && !(node.getAttribute("aria-label") || node.labels?.length || node.textContent.trim()))
  .map((node) => node.outerHTML.slice(0, 80))"""
HEADINGS = '[...document.querySelectorAll("h1, h2, h3")].map((node) => Number(node.tagName[1]))'
EMPTY = """[...document.querySelectorAll(".canvas svg")]
  .filter((picture) => !picture.querySelector("[data-tip]")).map((p) => p.closest("figure").id)"""
IDS = '[...document.querySelectorAll("[id]")].map((node) => node.id)'
BROKEN = """[...document.querySelectorAll('a[href^="#"]')]
  .filter((link) => !document.getElementById(link.hash.slice(1))).map((link) => link.hash)"""
CAPTIONS = '[...document.querySelectorAll("table")].filter((table) => !table.caption).length'
SORTED = """[...document.querySelectorAll("[data-table] > .scroll thead th")]
  .filter((head) => !head.ariaSort || !head.querySelector("button")).length"""
OUTSIDE = """[...document.querySelectorAll("main *")]
  .filter((node) => !node.closest(".scroll, .canvas, nav ul")
    && node.getBoundingClientRect().right > innerWidth + 1)
  .map((node) => node.outerHTML.slice(0, 80))"""
# Text against what is behind it, by the formula of WCAG 2.
CONTRAST = """(() => {
  const parts = (color) => {
    const numbers = color.match(/[\\d.]+/g).map(Number), whole = color.startsWith("color(");
    const [r, g, b, a = 1] = numbers;
    return whole ? [255 * r, 255 * g, 255 * b, a] : [r, g, b, a];
  };
  const light = (color) => color.slice(0, 3).map((c) => c / 255)
    .map((c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, place) => sum + c * [0.2126, 0.7152, 0.0722][place], 0);
  const behind = (node) => {
    if (!node) return [255, 255, 255, 1];
    const own = parts(getComputedStyle(node).backgroundColor);
    if (own[3] === 1) return own;
    const under = behind(node.parentElement);
    return [0, 1, 2].map((k) => own[3] * own[k] + (1 - own[3]) * under[k]).concat(1);
  };
  const found = new Set();
  for (const node of document.querySelectorAll("main *, nav *, header *, footer *")) {
    const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
    const passed = node.closest("svg, noscript, script, option, :disabled");
    if (!own || passed || !node.checkVisibility()) continue;
    const [a, b] = [light(parts(getComputedStyle(node).color)), light(behind(node))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) found.add(`${node.tagName}.${node.className} ${ratio.toFixed(2)}`);
  }
  return [...found];
})()"""


def find_chromium() -> str | None:
    """Where a Chromium is, or None; the environment variable ``CHROMIUM`` overrules."""
    own = os.environ.get("CHROMIUM")
    return own or next((path for name in BROWSERS if (path := shutil.which(name))), None)


@contextmanager
def launched(path: str) -> Iterator[Browser]:
    """A headless browser for as long as it is needed."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@contextmanager
def opened(
    browser: Browser, url: str, *, width: int = 1200, height: int = 900, **look: Any
) -> Iterator[Page]:
    """A page in a window of this size; ``look`` is, for example, ``color_scheme="dark"``."""
    size = {"width": width, "height": height}
    with browser.new_context(viewport=size, is_mobile=width < 600, **look) as context:
        page = context.new_page()
        page.goto(url)
        yield page


def noticed(page: Page) -> list[str]:
    """Errors on the console, and every address that was requested besides the page itself."""
    found = [str(error) for error in page.page_errors()]
    found += [one.text for one in page.console_messages() if one.type in ("error", "warning")]
    asked = [one.url for one in page.requests() if one.resource_type != "document"]
    return found + [f"requested {url}" for url in asked if not url.startswith(("data:", "blob:"))]


def problems_of(page: Page) -> list[str]:
    """Everything wrong with an open report, in words; empty if all is well."""
    found = [f"console: {text}" for text in noticed(page)]
    found += [f"without a name: {text}" for text in page.evaluate(NAMES)]
    found += [f"chart without marks: {text}" for text in page.evaluate(EMPTY)]
    found += [f"link to nowhere: {text}" for text in page.evaluate(BROKEN)]
    found += [f"outside the page: {text}" for text in page.evaluate(OUTSIDE)]
    found += [f"too little contrast: {text}" for text in page.evaluate(CONTRAST)]
    levels = page.evaluate(HEADINGS)
    jumps = any(after > before + 1 for before, after in pairwise(levels))
    if levels[0] != 1 or levels.count(1) != 1 or jumps:
        found.append(f"headings out of order: {levels}")
    ids = page.evaluate(IDS)
    found += [f"id twice: {one}" for one in {one for one in ids if ids.count(one) > 1}]
    if page.evaluate(CAPTIONS) or page.evaluate(SORTED):
        found.append("a table without a caption, or a head without aria-sort")
    wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    if wide > 0:
        found.append(f"{wide} pixels wider than the window")
    for landmark in ("header", "nav", "main", "footer"):
        if page.evaluate(f"document.querySelectorAll('body > {landmark}').length") != 1:
            found.append(f"not one {landmark}")
    if not page.evaluate("document.querySelector('[data-table=tasks] tbody tr') !== null"):
        found.append("the table of tasks is empty")
    return found
