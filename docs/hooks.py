"""Hooks of MkDocs: add the pages generated from code and results, fix links, typeset formulas.

MkDocs calls the functions named ``on_…``.
"""

import posixpath
import re
import sys
from itertools import chain
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "docs"))

import measured  # noqa: E402  from this folder, which MkDocs does not put on the path
import pages  # noqa: E402

INDEXES = ("methods", "results", "examples")  # pages with others below them
COPIES = {f"{name}/index.md": f"docs/{name}.md" for name in INDEXES}
COPIES |= {"contributing.md": "CONTRIBUTING.md", "changes.md": "CHANGELOG.md"}
MOVED = {"methods": "docs/methods", "results": "benchmarks/results", "examples": "examples"}
MADE = {
    "methods/": pages.of_methods,
    "reference/": pages.of_reference,
    "results/": pages.of_results,
    "examples/": pages.of_examples,
}
KEPT = re.compile(r"(<a\b.*?</a>|<pre\b.*?</pre>|<h\d.*?</h\d>)", re.S)
LINK = re.compile(r"\[([^][]*(?:\[[^][]*\][^][]*)*)\]\(([^)\s#]+)(#[^)\s]*)?\)")
INLINE = re.compile(r"\$`([^`\n]+)`\$")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """List the generated pages in the navigation, and typeset blocks of LaTeX."""
    config.nav = [listed(entry) for entry in config.nav]
    fence = {"name": "math", "class": "math", "format": block_formula}
    config.mdx_configs["pymdownx.superfences"] = {"custom_fences": [fence]}
    return config


def listed(entry: Any) -> Any:
    """Expand an entry of the navigation, such as ``methods/``, to the pages it stands for."""
    if isinstance(entry, dict):
        return {title: listed(part) for title, part in entry.items()}
    if isinstance(entry, list):
        return [listed(part) for part in entry]
    if entry == "methods/":
        families = pages.methods().items()
        below = [
            {pages.FAMILIES[name]: [f"methods/{one}.md" for one in of]} for name, of in families
        ]
        return ["methods/index.md", *below]
    if entry in MADE:
        made = (uri for uri, _ in MADE[entry]() if uri != f"{entry}index.md")
        return [f"{entry}index.md", *made]
    return entry


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages and their figures."""
    generated = chain(
        ((uri, (ROOT / name).read_text()) for uri, name in COPIES.items()),
        *(make() for make in MADE.values()),
    )
    for name in INDEXES:
        files.remove(files.src_uris[f"{name}.md"])
    for uri, text in generated:
        if old := files.get_file_from_path(uri):
            files.remove(old)
        files.append(File.generated(config, uri, content=text))
    pictures = [(f"results/{file.name}", file) for file in measured.RESULTS.glob("*.svg")]
    for example in pages.examples():
        pictures += [(f"examples/{name}", file) for name, file in pages.figures(example)]
    for uri, file in pictures:
        files.append(File.generated(config, uri, abs_src_path=str(file)))
    return files


def on_page_markdown(text: str, page: Page, files: Files, **_: Any) -> str:
    """Turn links between files of the repository into links between pages, or into plain text."""
    uri = page.file.src_uri
    text = text.replace(measured.index(), measured.index(full=True))

    def moved(found: re.Match[str]) -> str:
        words, target, place = found[1], found[2], found[3] or ""
        if "://" in target:
            return found[0]
        aim = in_site(posixpath.normpath(posixpath.join(folder_of(uri), target)))
        if files.get_file_from_path(aim) is None:
            return words
        return f"[{words}]({posixpath.relpath(aim, posixpath.dirname(uri) or '.')}{place})"

    parts = re.split(r"(^```.*?^```)", text, flags=re.M | re.S)
    return "".join(
        part if n % 2 else INLINE.sub(inline_formula, LINK.sub(moved, part))
        for n, part in enumerate(parts)
    )


def folder_of(uri: str) -> str:
    """The folder of the repository that the links of a page are relative to."""
    if uri in COPIES:
        return posixpath.dirname(COPIES[uri])
    return MOVED.get(posixpath.dirname(uri), posixpath.join("docs", posixpath.dirname(uri)))


def in_site(path: str) -> str:
    """Where a file of the repository is in the site."""
    folder, name = posixpath.split(path)
    copies = {source: uri for uri, source in COPIES.items()}
    folders = {source: ours for ours, source in MOVED.items()}
    if folder in folders:
        return f"{folders[folder]}/{name.replace('.py', '.md')}"
    return copies.get(path, path.removeprefix("docs/"))


def on_page_content(html: str, page: Page, **_: Any) -> str:
    """Link the names of methods in the text to their pages."""
    names = "|".join(sorted(pages.names(), key=len, reverse=True))
    name = re.compile(rf"<code>((?:\w+\.)?({names})(?:\(\))?)</code>")
    here = posixpath.dirname(page.file.dest_uri) or "."

    def link(found: re.Match[str]) -> str:
        url = f"methods/{found[2]}.html"
        if url == page.file.dest_uri:
            return found[0]
        return f'<a href="{posixpath.relpath(url, here)}">{found[0]}</a>'

    parts = KEPT.split(html)
    return "".join(part if n % 2 else name.sub(link, part) for n, part in enumerate(parts))


def block_formula(source: str, *_: Any, **__: Any) -> str:
    """Typeset a fenced block of LaTeX."""
    return f'<div class="math" tabindex="0">{mathml(source, display="block")}</div>'


def inline_formula(found: re.Match[str]) -> str:
    return f'<span class="math">{mathml(found[1])}</span>'  # <math> alone would start a block


def mathml(source: str, display: str = "inline") -> str:
    """Convert LaTeX to MathML; a tilde becomes an operator, which has space around it."""
    return convert(source, display=display).replace("<mi>&#x0007E;</mi>", "<mo>&#x0223C;</mo>")
