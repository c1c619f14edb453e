"""Bring the generated parts of README and docs up to date, and build the site.

python docs/build.py

A page with a pair of marks such as ``<!-- methods … -->`` and ``<!-- end of methods -->`` gets
what stands between them from the code or from benchmarks/results. The site is plain HTML with
one style sheet inside each page: it needs no network and opens from disk.
"""

import contextlib
import inspect
import io
import os
import re
import sys
from html import escape
from pathlib import Path
from string import Template

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PAGES = {
    "index": "Start here",
    "methods": "Methods",
    "learning": "Learning from crowds",
    "formats": "Files and formats",
    "datasets": "Data sets",
    "command-line": "Command line",
    "accuracy": "Accuracy",
    "speed": "Speed",
    "design": "How it is built",
    "dependencies": "Dependencies",
}
STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.6 system-ui, sans-serif; max-width: 62rem; margin: 0 auto; padding: 1rem; }
nav a { margin-right: 1rem; white-space: nowrap; } nav { border-bottom: 1px solid #8884; }
pre, code { font-family: ui-monospace, monospace; font-size: .92em; }
pre { background: #8881; padding: .8rem; overflow-x: auto; border-radius: .4rem; }
table { border-collapse: collapse; display: block; overflow-x: auto; font-size: .92em; }
th, td { padding: .3rem .6rem; border-bottom: 1px solid #8883; text-align: left; }
"""
PAGE = Template(
    '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
    "<title>$title · crowdwise</title><style>$style</style></head>"
    "<body><nav>$nav</nav><main>$body</main></body></html>\n"
)


def main() -> None:
    for file in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        text = file.read_text()
        fresh = refreshed(text)
        if fresh != text:
            file.write_text(fresh)
            sys.stdout.write(f"updated {file.relative_to(ROOT)}\n")
    build_site(ROOT / "site")
    sys.stdout.write("built site/index.html\n")


def refreshed(text: str) -> str:
    """The page with every generated part made anew."""
    for mark, make in PARTS.items():
        if f"<!-- {mark}:" in text:
            pattern = rf"(<!-- {mark}:.*?-->\n).*?(<!-- end of {mark} -->)"
            made = make()
            text = re.sub(
                pattern, lambda found, made=made: found[1] + made + found[2], text, flags=re.S
            )
    return text


def method_table() -> str:
    """One line per aggregator, from the code."""
    return table_of(methods())


def learner_table() -> str:
    """One line per learner, from the code."""
    from crowdwise import learn

    return table_of({name: getattr(learn, name) for name in learn.LEARNERS})


def table_of(classes: dict[str, type]) -> str:
    rows = ["| method | what it does | reference |", "|---|---|---|"]
    for name, cls in classes.items():
        rows.append(f"| `{name}` | {summary(cls)} | {reference(cls)} |")
    return "\n".join(rows) + "\n"


def method_pages() -> str:
    """Every method's docstring."""
    parts = []
    for name, cls in methods().items():
        signature = ", ".join(str(p) for p in list(inspect.signature(cls).parameters.values()))
        promises = ", ".join(
            trait.replace("_", " ") for trait, holds in vars(cls.traits).items() if holds
        )
        text = inspect.getdoc(cls)
        parts.append(
            f"## {name}\n\n```text\n{name}({signature})\n\n{text}\n```\n\nPromises: {promises}.\n"
        )
    return "\n".join(parts)


def methods() -> dict[str, type]:
    from crowdwise import aggregate

    return {name: getattr(aggregate, name) for name in aggregate.__all__}


def summary(cls: type) -> str:
    return inspect.getdoc(cls).splitlines()[0].rstrip(".")


def reference(cls: type) -> str:
    """Authors, year and DOI of a method's first reference."""
    text = " ".join(inspect.getdoc(cls).partition("References\n----------\n")[2].split())
    found = re.match(r"(.*?\(\d{4}\))", text)
    link = re.search(r"doi:(\S+?)\.?(\s|$)", text)
    if not found:
        return ""
    return f"[{found[1]}](https://doi.org/{link[1]})" if link else found[1]


def results(name: str) -> str:
    """A committed result table, without its heading."""
    file = RESULTS / f"{name}.md"
    if not file.exists():
        return "Not measured yet.\n"
    return file.read_text().partition("\n\n")[2]


def formats() -> str:
    from crowdwise.data.formats import FORMATS

    rows = ["| format | what it is |", "|---|---|"]
    rows += [f"| `{f.name}` | {f.about} |" for f in FORMATS]
    return "\n".join(rows) + "\n"


def datasets() -> str:
    from crowdwise.datasets import info, names

    rows = ["| set | what it is | tasks | workers | annotations | licence |"]
    rows.append("|---|---|---:|---:|---:|---|")
    for name in names():
        about = info(name)
        sizes = [about.counts.get(key, "") for key in ("tasks", "workers", "annotations")]
        shown = " | ".join(f"{size:,}" if size != "" else "" for size in sizes)
        rows.append(f"| `{name}` | {about.title} | {shown} | {about.licence} |")
    return "\n".join(rows) + "\n"


def commands() -> str:
    """The help text of every command."""
    from crowdwise.cli import COMMANDS

    parts = [f"## crowdwise {name}\n\n```text\n{help_of(name)}```\n" for name in COMMANDS]
    return "\n".join(parts)


def help_of(name: str) -> str:
    """What ``crowdwise NAME --help`` prints, 92 columns wide."""
    from crowdwise.cli import main

    os.environ["COLUMNS"] = "92"
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        main([name, "--help"])
    return text.getvalue()


def build_site(folder: Path) -> None:
    from markdown import markdown

    folder.mkdir(exist_ok=True)
    links = "".join(f'<a href="{name}.html">{escape(title)}</a>' for name, title in PAGES.items())
    for name, title in PAGES.items():
        text = (ROOT / "docs" / f"{name}.md").read_text()
        html = markdown(text, extensions=["tables", "fenced_code", "toc"])
        html = re.sub(r'href="([\w-]+)\.md(#[\w-]*)?"', r'href="\1.html\2"', html)
        page = PAGE.substitute(title=escape(title), style=STYLE, nav=links, body=html)
        (folder / f"{name}.html").write_text(page)


PARTS = {
    "methods": method_table,
    "method pages": method_pages,
    "learners": learner_table,
    "formats": formats,
    "datasets": datasets,
    "commands": commands,
    "accuracy": lambda: results("accuracy"),
    "speed": lambda: results("speed"),
    "learning on mgc": lambda: results("learning-mgc"),
    "learning on labelme": lambda: results("learning-labelme"),
    "reading": lambda: results("reading"),
    "speed at 10^8": lambda: results("speed-1e8"),
    "peers": lambda: results("same-as-crowdkit"),
}


if __name__ == "__main__":
    main()
