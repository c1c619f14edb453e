"""What must hold for every report, seen by a browser: nothing fails, all of it can be reached."""

from itertools import pairwise
from typing import Any

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
  const parts = (colour) => {
    const numbers = colour.match(/[\\d.]+/g).map(Number), whole = colour.startsWith("color(");
    const [r, g, b, a = 1] = numbers;
    return whole ? [255 * r, 255 * g, 255 * b, a] : [r, g, b, a];
  };
  const light = (colour) => colour.slice(0, 3).map((c) => c / 255)
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


def problems_of(page: Any) -> list[str]:
    """Everything wrong with an open report, in words; empty if all is well."""
    found = [f"console: {text}" for text in page.problems()]
    found += [f"without a name: {text}" for text in page.run(NAMES)]
    found += [f"chart without marks: {text}" for text in page.run(EMPTY)]
    found += [f"link to nowhere: {text}" for text in page.run(BROKEN)]
    found += [f"outside the page: {text}" for text in page.run(OUTSIDE)]
    found += [f"too little contrast: {text}" for text in page.run(CONTRAST)]
    levels = page.run(HEADINGS)
    jumps = any(after > before + 1 for before, after in pairwise(levels))
    if levels[0] != 1 or levels.count(1) != 1 or jumps:
        found.append(f"headings out of order: {levels}")
    ids = page.run(IDS)
    found += [f"id twice: {one}" for one in {one for one in ids if ids.count(one) > 1}]
    if page.run(CAPTIONS) or page.run(SORTED):
        found.append("a table without a caption, or a head without aria-sort")
    wide = page.run("document.documentElement.scrollWidth - innerWidth")
    if wide > 0:
        found.append(f"{wide} pixels wider than the window")
    for landmark in ("header", "nav", "main", "footer"):
        if page.run(f"document.querySelectorAll('body > {landmark}').length") != 1:
            found.append(f"not one {landmark}")
    if not page.run("document.querySelector('[data-table=tasks] tbody tr') !== null"):
        found.append("the table of tasks is empty")
    return found
