"""The pages of the site: which there are, in which group, and the Markdown of each."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from sitegen import measured, method_pages

ROOT = Path(__file__).resolve().parents[2]
GROUPS: dict[str, dict[str, str]] = {
    "Start here": {
        "index": "Five minutes",
        "which-method": "Which method should I use?",
        "labels": "From labels to truths",
        "report": "The report",
        "examples": "Examples",
    },
    "How do I …": {
        "label-studio": "I have a Label Studio export",
        "which-workers": "Which workers should I drop?",
        "imbalance": "My classes are imbalanced",
        "images": "I have images and a torch model",
        "learning": "I have features and labels",
        "embedding": "I need a representation",
        "simulating": "I need a crowd with known truth",
        "coming-from-crowd-kit": "Coming from crowd-kit",
        "coming-from-cleanlab": "Coming from cleanlab",
        "coming-from-snorkel": "Coming from Snorkel",
        "adding-a-method": "Adding a method",
    },
    "Reference": {
        "command-line": "Command line",
        "formats": "Files and formats",
        "datasets": "Data sets",
        "methods": "Methods",
    },
    "Results": {
        "results": "All tables",
        "accuracy": "Accuracy",
        "speed": "Speed",
    },
    "About": {
        "design": "How the pieces fit",
        "dependencies": "Dependencies",
        "contributing": "Contributing",
        "changes": "What changed",
    },
}
ELSEWHERE = {"contributing": "CONTRIBUTING.md", "changes": "CHANGELOG.md"}


@dataclass
class Page:
    """One page before it is HTML."""

    url: str  # from the root of the site
    title: str
    group: str
    source: Path  # where it is, or would be, in the repository: links are relative to it
    text: str = field(repr=False, default="")
    parent: str = ""  # the page that it is listed below in the navigation
    pictures: tuple[Path, ...] = ()


def all_pages(figures: Path | None = None) -> list[Page]:
    """Every page, in the order of the navigation; pages of a kind follow their index."""
    found: list[Page] = []
    below = {"methods": of_methods, "results": of_results, "examples": lambda: of_examples(figures)}
    for group, names in GROUPS.items():
        for name, title in names.items():
            source = ROOT / ELSEWHERE.get(name, f"docs/{name}.md")
            text = source.read_text().replace(measured.index(), measured.index(full=True))
            found.append(Page(f"{name}.html", title, group, source, text))
            found += below[name]() if name in below else []
    return found


def of_methods() -> Iterator[Page]:
    for family, members in method_pages.methods().items():
        for name, cls in members.items():
            source = ROOT / "docs" / "methods" / f"{name}.md"
            text = method_pages.page(family, name, cls)
            group = method_pages.FAMILIES[family]
            yield Page(f"methods/{name}.html", name, group, source, text, "methods.html")


def of_results() -> Iterator[Page]:
    for name in measured.tables():
        source = measured.RESULTS / f"{name}.md"
        picture = source.with_suffix(".svg")
        pictures = (picture,) if picture.exists() else ()
        url, title = f"results/{name}.html", measured.title_of(name)
        yield Page(url, title, "Results", source, source.read_text(), "results.html", pictures)


def of_examples(figures: Path | None) -> Iterator[Page]:
    """Every script: its words, how to run it, its code, and its pictures where they were made."""
    for source in sorted((ROOT / "examples").glob("*.py")):
        code = source.read_text()
        title, _, words = (ast.get_docstring(ast.parse(code)) or source.stem).partition("\n\n")
        body = code.split('"""', 2)[-1].strip()
        words = words.partition("python examples/")[0]
        text = (
            f"# {title.rstrip('.')}\n\n{words}\n\n```bash\npython examples/{source.name}\n```\n\n"
            f"<!-- pictures -->\n\n```python\n{body}\n```\n"
        )
        made = sorted((figures / source.stem).glob("*.png")) if figures else []
        url, name = f"examples/{source.stem}.html", source.stem.replace("_", " ").capitalize()
        yield Page(url, name, "Start here", source, text, "examples.html", tuple(made))
