"""One page per method, from its docstring and from what was measured."""

import inspect
import re
from functools import cache
from html import unescape
from pathlib import Path

from sitegen import benched, crowds
from sitegen.docstrings import Docstring, definitions, prose, references

DOCS = Path(__file__).resolve().parents[1]
FAMILIES = {
    "aggregate": "Truths from labels alone",
    "learn": "Classifiers from features and labels",
    "embed": "Representations from features and labels",
}
PROMISES = {
    "binary_only": "works with two classes only",
    "monotone": "its objective never falls",
    "stochastic": "depends on `random_state`",
    "keeps_unanimity": "a crowd of one mind keeps its labels",
    "weighted": "a weight of two equals a repeated row",
    "resists_noise": "a worker who labels at random moves little",
    "learns_from_gold": "known truths inform more than their own tasks",
    "ordinal": "the order of the classes counts",
}
LONGEST = 88  # characters of a call on one line
GREEK = ("alpha", "beta", "gamma", "eta", "lambda", "mu", "sigma", "tau", "theta")
SIGNS = {rf"\b{name}\b": unescape(f"&{name};") for name in GREEK} | {
    r"\bsum over": "∑ over",
    r"\bprod over": "∏ over",
    r" ?\*\* 2\b": "²",
    r" \* ": " · ",
    r">=": "≥",
    r"<=": "≤",
    r"->": "→",
    r"\bproportional to\b": "∝",
}


@cache
def methods() -> dict[str, dict[str, type]]:
    """Every method by family and name."""
    from crowdwise import aggregate, embed, learn

    learners = [*learn.LEARNERS, *(n for n in ("LIAML", "ICED") if n not in learn.LEARNERS)]
    return {
        family: {name: getattr(module, name) for name in sorted(listed, key=str.lower)}
        for family, module, listed in (
            ("aggregate", aggregate, aggregate.__all__),
            ("learn", learn, learners),
            ("embed", embed, embed.EMBEDDERS),
        )
    }


def names() -> list[str]:
    return [name for family in methods().values() for name in family]


def page(family: str, name: str, cls: type) -> str:
    """The whole page, as Markdown."""
    doc = Docstring.of(cls)
    parts = [
        f"# {name}",
        prose(doc.summary),
        prose(doc.text),
        notes(doc, name),
        section(
            "Parameters", f"```python\n{signature(family, cls)}\n```\n\n{fields('Parameters', doc)}"
        ),
        section("Attributes", fields("Attributes", doc)),
        promises(cls),
        section("Measured", results(family, name)),
        section("Example", example(doc)),
        section("References", "\n".join(f"- {one}" for one in references_of(doc))),
        use(family, name),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def signature(family: str, cls: type) -> str:
    """How it is imported and made, with its defaults."""
    found = inspect.signature(cls).parameters.values()
    given = [f"{p.name}={shown(p.default)}" for p in found]
    call = f"{cls.__name__}({', '.join(given)})"
    if len(call) > LONGEST:
        call = "\n".join([f"{cls.__name__}(", *(f"    {one}," for one in given), ")"])
    return f"from crowdwise.{family} import {cls.__name__}\n\n{call}"


def shown(value: object) -> str:
    return value.__name__ if inspect.isclass(value) else repr(value)


def notes(doc: Docstring, name: str) -> str:
    """The maths, when it works and when it fails, from the notes."""
    text = notes_of(doc, name)
    text = re.sub(r"^Works when\b", "### When it works\n\nWorks when", text, flags=re.M)
    text = re.sub(r"^Fails when\b", "### When it fails\n\nFails when", text, flags=re.M)
    text = re.sub(
        r"```text\n(.*?)```", lambda found: f"```maths\n{pretty(found[1])}```", text, flags=re.S
    )
    return section("How it works", text)


def notes_of(doc: Docstring, name: str) -> str:
    """The docstring's notes; for a docstring without, those beside it in docs/methods."""
    beside = DOCS / "methods" / f"{name}.md"
    parts = [prose(doc.sections.get("Notes", ""))]
    if beside.exists():
        parts.insert(0, prose(beside.read_text()))
    return "\n\n".join(part for part in parts if part)


def pretty(formula: str) -> str:
    """A formula with the signs that a keyboard lacks."""
    for plain, sign in SIGNS.items():
        formula = re.sub(plain, sign, formula)
    return formula


def fields(title: str, doc: Docstring) -> str:
    """Parameters or attributes as a list of definitions."""
    found = definitions(doc.sections.get(title, ""))
    lines = [
        f"- **{name.replace('_', chr(92) + '_')}**{f' : *{kind}*' if kind else ''}  \n  "
        + meaning.replace("\n", "\n  ")
        for name, kind, meaning in found
    ]
    return "\n".join(lines)


def promises(cls: type) -> str:
    """What the laws check of it."""
    traits = vars(getattr(cls, "traits", object))
    held = [said for name, said in PROMISES.items() if traits.get(name) is True]
    text = "\n".join(f"- {one}" for one in held)
    return section(
        "Promises", f"Checked by [the laws](../adding-a-method.md):\n\n{text}" if held else ""
    )


def results(family: str, name: str) -> str:
    found = benched.bench_results(name, names(), list(methods()["embed"]))
    if family == "aggregate":
        found = f"{crowds.aggregator_results(name)}\n{found}"
    return found if found.strip() else "Not in a committed table yet.\n"


def example(doc: Docstring) -> str:
    text = doc.sections.get("Examples", "")
    return f"```pycon\n{text}\n```" if text else ""


def references_of(doc: Docstring) -> list[str]:
    return references(doc.sections.get("References", ""))


def use(family: str, name: str) -> str:
    """Where to read on."""
    if family == "aggregate":
        shell = f"```bash\ncrowdwise aggregate votes.csv --method {name} -o labels.csv\n```"
        return section("From a shell", shell)
    where = {
        "learn": "[Learning from crowds](../learning.md)",
        "embed": "[Representations](../embedding.md)",
    }
    return section("Read on", f"{where[family]} · [which method](../which-method.md)")


def section(title: str, text: str) -> str:
    return f"## {title}\n\n{text}" if text.strip() else ""
