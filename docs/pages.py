"""Generated pages: methods, the Python API, result tables and examples.

Each is a pair: its address in the site and its Markdown.
"""

import ast
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import measured
from docstrings import description, markdown, section, summary

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
FIGURES = ROOT / "build" / "figures"  # where docs/build.py puts those of the examples
FAMILIES = {
    "aggregate": "Truths from labels alone",
    "learn": "Classifiers from features and labels",
    "embed": "Representations from features and labels",
}
PROMISES = {
    "binary_only": "works with two classes only",
    "monotone": "its objective never falls",
    "stochastic": "depends on `random_state`",
    "keeps_unanimity": "tasks on which all workers agree keep their label",
    "weighted": "a weight of two equals a repeated row",
    "resists_noise": "a worker who labels at random changes little",
    "learns_from_gold": "known truths inform more than their own tasks",
    "ordinal": "the order of the classes counts",
}
FOUND_LAST = "---\nsearch:\n  boost: 0.2\n---\n\n"  # a name leads to its page first
READ_ON = {
    "aggregate": "[From labels to truths](../labels.md)",
    "learn": "[Learning from crowds](../learning.md)",
    "embed": "[Representations](../embedding.md)",
}


@cache
def methods() -> dict[str, dict[str, type]]:
    """Every method by family and name."""
    from crowdwise import aggregate, embed, learn

    listed = {
        aggregate: aggregate.__all__,
        learn: {*learn.LEARNERS, "LIAML", "ICED"},
        embed: embed.EMBEDDERS,
    }
    return {
        module.__name__.rpartition(".")[2]: {
            name: getattr(module, name) for name in sorted(names, key=str.lower)
        }
        for module, names in listed.items()
    }


def names() -> list[str]:
    return [name for family in methods().values() for name in family]


def of_methods() -> Iterator[tuple[str, str]]:
    for family, members in methods().items():
        for name, cls in members.items():
            parts = [
                f"# {name}\n\n{description(cls)}",
                f"## How it works\n\n{notes(name, cls)}",
                api(cls),
                shell(family, name),
                promises(cls),
                f"## Measured\n\n{results(family, name)}",
                references(cls),
                f"{READ_ON[family]} · [Which method should I use?](../which-method.md)",
            ]
            yield f"methods/{name}.md", "\n\n".join(part for part in parts if part)


def notes(name: str, cls: type) -> str:
    """The model, when it works and when it fails: from the docstring, and docs/methods."""
    text, more = markdown(section(cls, "Notes")), DOCS / "methods" / f"{name}.md"
    if name in formulas():
        text = formulas()[name] + re.sub(r"\A[^\n]*:\n\n```text\n.*?\n```\n", "", text, flags=re.S)
    if more.exists():
        text = f"{text}\n\n{more.read_text()}"
    for verb in ("Works", "Fails"):
        head = f"### When it {verb.lower()}\n\n"
        text = re.sub(rf"^(?={verb} when\b)", head, text, flags=re.M)
    return text


@cache
def formulas() -> dict[str, str]:
    """The section of every method in docs/formulas.md."""
    parts = re.split(r"^### `(\w+)`\n+", (DOCS / "formulas.md").read_text(), flags=re.M)
    texts = (re.split(r"^## ", text, flags=re.M)[0] for text in parts[2::2])
    return dict(zip(parts[1::2], texts, strict=True))


def promises(cls: type) -> str:
    """The promises of a method that the laws check."""
    traits = getattr(cls, "traits", None)
    held = [f"- {words}" for name, words in PROMISES.items() if getattr(traits, name, False)]
    head = "## Promises\n\nChecked by [the laws](../adding-a-method.md):\n\n"
    return head + "\n".join(held) if held else ""


def results(family: str, name: str) -> str:
    found = measured.bench_results(name, names(), list(methods()["embed"]))
    if family == "aggregate":
        found = f"{measured.aggregator_results(name)}\n{found}"
    return found if found.strip() else "Not in a committed table yet."


def api(thing: type) -> str:
    """Signature, parameters, attributes and examples, through mkdocstrings."""
    options = "show_docstring_description: false\n      show_root_toc_entry: false"
    return f"## API\n\n::: {thing.__module__}.{thing.__qualname__}\n    options:\n      {options}"


def references(cls: type) -> str:
    text = markdown(section(cls, "References"))
    listed = [" ".join(part.split()) for part in text.split("\n\n") if part.strip()]
    return "## References\n\n" + "\n".join(f"- {one}" for one in listed) if listed else ""


def shell(family: str, name: str) -> str:
    if family != "aggregate":
        return ""
    command = f"crowdwise aggregate votes.csv --method {name} -o labels.csv"
    return f"## On the command line\n\n```bash\n{command}\n```"


def of_reference() -> Iterator[tuple[str, str]]:
    """One page per public module: all it exports but methods, which have their own pages."""
    rows = [[f"[`{one.__name__}`]({one.__name__}.md)", summary(one)] for one in modules()]
    yield (
        "reference/index.md",
        "# Python API\n\n" + measured.table(["module", "what it is"], rows, text=2),
    )
    for module in modules():
        links = [f"[`{one}`](../methods/{one}.md)" for one in exports(module) if one in names()]
        rest = [thing for one, thing in exports(module).items() if one not in names()]
        parts = [f"# {module.__name__}", description(module)]
        parts += [f"Methods, each with its own page: {', '.join(links)}."] if links else []
        parts += [f"::: {thing.__module__}.{thing.__qualname__}" for thing in rest]
        yield f"reference/{module.__name__}.md", "\n\n".join(parts)


@cache
def modules() -> list[ModuleType]:
    """Every public module that exports something; for a package that does not, its modules."""
    import crowdwise

    found = [module for module in below(crowdwise) if module.__name__ != "crowdwise.cli"]
    parts = ([module] if exports(module) else below(module) for module in found)
    return [module for each in parts for module in each if exports(module)]


def below(package: ModuleType) -> list[ModuleType]:
    listed = pkgutil.iter_modules(getattr(package, "__path__", ()))
    public = (one.name for one in listed if not one.name.startswith("_"))
    return [importlib.import_module(f"{package.__name__}.{name}") for name in public]


def exports(module: ModuleType) -> dict[str, Any]:
    """Classes and functions in ``__all__``, or without one, those defined in the module."""
    named = getattr(module, "__all__", None)
    found = {name: getattr(module, name) for name in named or vars(module) if name[0] != "_"}
    return {
        name: thing
        for name, thing in sorted(found.items(), key=lambda pair: pair[0].lower())
        if (inspect.isclass(thing) or inspect.isfunction(thing))
        and thing.__module__.startswith("crowdwise" if named else module.__name__)
    }


def of_results() -> Iterator[tuple[str, str]]:
    for name in measured.tables():
        picture = measured.RESULTS / f"{name}.svg"
        shown = f"\n\n![{measured.title_of(name)}]({picture.name})\n" if picture.exists() else ""
        text = (measured.RESULTS / f"{name}.md").read_text()
        yield f"results/{name}.md", FOUND_LAST + text + shown


def of_examples() -> Iterator[tuple[str, str]]:
    """One page per script: its description, how to run it, its figures if drawn, its code."""
    for file in examples():
        code = file.read_text()
        title, _, words = (ast.get_docstring(ast.parse(code)) or file.stem).partition("\n\n")
        parts = [f"{FOUND_LAST}# {title.rstrip('.')}", words.partition("python examples/")[0]]
        parts.append(f"```bash\npython examples/{file.name}\n```")
        parts += [f"![{figure.stem.replace('_', ' ')}]({name})" for name, figure in figures(file)]
        parts.append(f"```python\n{code.split(chr(34) * 3, 2)[-1].strip()}\n```")
        yield f"examples/{file.stem}.md", "\n\n".join(parts)


def examples() -> list[Path]:
    return sorted((ROOT / "examples").glob("*.py"))


def figures(example: Path) -> list[tuple[str, Path]]:
    """The figures that an example drew, by their names in the site."""
    drawn = sorted((FIGURES / example.stem).glob("*.png"))
    return [(f"{example.stem}-{figure.name}", figure) for figure in drawn]
