"""Markdown pages as a static site: navigation, contents, search; no network, no other tool."""

import json
import posixpath
import re
import shutil
from html import escape, unescape
from pathlib import Path
from string import Template
from typing import Any

from markdown import Markdown

from sitegen.highlight import highlighted
from sitegen.method_pages import names as method_names
from sitegen.pages import ROOT, Page

THEME = ROOT / "docs" / "theme"
EXTENSIONS = ["tables", "fenced_code", "toc", "sane_lists"]
KEPT = re.compile(r"(<a\b.*?</a>|<pre\b.*?</pre>|<h\d.*?</h\d>)", re.S)
TAGS = re.compile(r"<[^>]+>")
PICTURES = "<!-- pictures -->"
LONGEST = 700  # characters of a section that can be searched


def write_site(pages: list[Page], folder: Path) -> None:
    """Write every page, the style, the script and the search index."""
    folder.mkdir(parents=True, exist_ok=True)
    template = Template((THEME / "page.html").read_text())
    index: list[dict[str, str]] = []
    urls = {page.source.resolve(): page.url for page in pages}
    for place, page in enumerate(pages):
        body, contents = rendered(page, urls)
        index += searchable(page, body)
        around = neighbours(pages, place)
        file = folder / page.url
        file.parent.mkdir(exist_ok=True)
        root = "../" * page.url.count("/")
        for picture in page.pictures:
            shutil.copyfile(picture, file.with_name(f"{file.stem}-{picture.name}"))
        file.write_text(
            template.substitute(
                title=escape(page.title),
                group=escape(page.group),
                root=root,
                nav=navigation(pages, page, root),
                contents=contents,
                body=with_pictures(body, page),
                around=around,
            )
        )
    for name in ("style.css", "site.js"):
        shutil.copyfile(THEME / name, folder / name)
    listing = json.dumps(index, ensure_ascii=False, separators=(",", ":"))
    (folder / "search-index.js").write_text(f"window.SEARCH_INDEX = {listing};\n")


def rendered(page: Page, urls: dict[Path, str]) -> tuple[str, str]:
    """The page's HTML, and its table of contents."""
    settings = {"toc": {"permalink": "#", "permalink_title": "Link to this section"}}
    reader: Any = Markdown(extensions=EXTENSIONS, extension_configs=settings)
    html = reader.convert(page.text)
    html = re.sub(r'href="([^"#]*)(#[^"]*)?"', lambda f: moved(f, page, urls), html)
    html = linked(highlighted(html), page)
    html = html.replace("<table>", '<div class="scroll" tabindex="0"><table>')
    html = html.replace("</table>", "</table></div>")
    return html, contents_of(reader.toc_tokens)


def moved(found: re.Match[str], page: Page, urls: dict[Path, str]) -> str:
    """A link to a file of the repository as one to its page; others stay, or lose their aim."""
    target, anchor = found[1], found[2] or ""
    if not target or "://" in target or target.startswith("mailto:"):
        return found[0]
    url = urls.get((page.source.parent / target).resolve())
    if url is None:
        return 'class="gone"'
    return f'href="{relative(url, page)}{anchor}"'


def relative(url: str, page: Page) -> str:
    return posixpath.relpath(url, posixpath.dirname(page.url) or ".")


def linked(html: str, page: Page) -> str:
    """Names of methods in running text lead to their pages."""
    words = "|".join(sorted(method_names(), key=len, reverse=True))
    name = re.compile(rf"<code>((?:\w+\.)?({words})(?:\(\))?)</code>")

    def link(found: re.Match[str]) -> str:
        url = f"methods/{found[2]}.html"
        return found[0] if url == page.url else f'<a href="{relative(url, page)}">{found[0]}</a>'

    parts = KEPT.split(html)
    return "".join(part if n % 2 else name.sub(link, part) for n, part in enumerate(parts))


def contents_of(tokens: list[dict[str, Any]]) -> str:
    """Second and third headings, as a list of links."""
    tops = [
        child
        for token in tokens
        for child in (token["children"] if token["level"] == 1 else [token])
    ]
    if len(tops) < 2:
        return ""
    lines = []
    for top in tops:
        inner = "".join(f"<li>{_anchor(child)}</li>" for child in top["children"])
        lines.append(f"<li>{_anchor(top)}{f'<ul>{inner}</ul>' if inner else ''}</li>")
    opening = '<nav class="contents" aria-label="On this page"><h2>On this page</h2><ul>'
    return f"{opening}{''.join(lines)}</ul></nav>"


def _anchor(token: dict[str, Any]) -> str:
    return f'<a href="#{token["id"]}">{token["name"]}</a>'


def navigation(pages: list[Page], current: Page, root: str) -> str:
    """All groups; pages below an index are listed while one of them, or it, is open."""
    open_index = current.parent or current.url
    parts, group = [], ""
    for page in pages:
        if page.parent and page.parent != open_index:
            continue
        if page.group != group:
            parts.append(_heading(page, "</ul>" if group else ""))
            group = page.group
        here = ' aria-current="page"' if page is current else ""
        kind = ' class="below"' if page.parent else ""
        parts.append(f'<li{kind}><a href="{root}{page.url}"{here}>{escape(page.title)}</a></li>')
    return "".join(parts) + "</ul>"


def _heading(page: Page, before: str) -> str:
    kind = ' class="below"' if page.parent else ""
    return f"{before}<h2{kind}>{escape(page.group)}</h2><ul>"


def neighbours(pages: list[Page], place: int) -> str:
    """Links to the page before and after; pages below an index keep to themselves."""
    page = pages[place]
    peers = [one for one in pages if one.parent == page.parent]
    at = peers.index(page)
    parts = []
    for step, sign in ((-1, "← {}"), (1, "{} →")):
        if 0 <= at + step < len(peers):
            other = peers[at + step]
            side = "before" if step < 0 else "after"
            text = sign.format(escape(other.title))
            parts.append(f'<a class="{side}" href="{relative(other.url, page)}">{text}</a>')
    return "".join(parts)


def with_pictures(body: str, page: Page) -> str:
    """The body with the page's pictures, at their mark or at the end."""
    stem = posixpath.basename(page.url).removesuffix(".html")
    shown = "".join(_figure(f"{stem}-{picture.name}", picture.stem) for picture in page.pictures)
    return body.replace(PICTURES, shown) if PICTURES in body else body + shown


def _figure(file: str, name: str) -> str:
    words = escape(name.replace("_", " "))
    picture = f'<img src="{escape(file)}" alt="{words}" loading="lazy">'
    return f"<figure>{picture}<figcaption>{words}</figcaption></figure>"


def searchable(page: Page, html: str) -> list[dict[str, str]]:
    """The words of every section, with its address."""
    pieces = re.split(r'<h[12] id="([^"]+)">(.*?)</h[12]>', html, flags=re.S)
    found = []
    for anchor, heading, text in zip(pieces[1::3], pieces[2::3], pieces[3::3], strict=True):
        url = f"{page.url}#{anchor}" if found else page.url
        found.append(
            {
                "page": page.title,
                "title": plain(heading).rstrip("# "),
                "url": url,
                "text": plain(text)[:LONGEST],
            }
        )
    return found


def plain(html: str) -> str:
    return " ".join(unescape(TAGS.sub(" ", html)).split())
