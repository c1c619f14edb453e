"""Docstrings for the site: reStructuredText marks become Markdown, before griffe reads them."""

import inspect
import re
from typing import Any

from griffe import Extension, Object

SECTION = r"^{title}\n-+\n(.*?)(?=^\w[\w ]*\n-+$|\Z)"


class Markdown(Extension):
    """Turn what mkdocstrings takes from the sources into Markdown."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = markdown(inspect.cleandoc(obj.docstring.value))


def summary(thing: object) -> str:
    """The first line of a docstring."""
    return (inspect.getdoc(thing) or "").partition("\n")[0]


def description(thing: object) -> str:
    """What a docstring says above its first section, as Markdown."""
    text = inspect.getdoc(thing) or ""
    return markdown(re.split(r"^\w[\w ]*\n-+$", text, maxsplit=1, flags=re.M)[0]).strip()


def section(thing: object, title: str) -> str:
    """A section of a docstring as it is written, or nothing."""
    text = inspect.getdoc(thing) or ""
    found = re.search(SECTION.format(title=title), text, flags=re.M | re.S)
    return found[1].strip() if found else ""


def markdown(text: str) -> str:
    """Literal blocks, roles and DOIs as Markdown."""
    text = re.sub(r"::\n\n((?: {4}.*\n?|\n)+)", _fence, text + "\n")
    text = re.sub(r":\w+:`~?([^`]+)`", lambda role: f"`{role[1].rsplit('.', 1)[-1]}`", text)
    text = re.sub(r"(?<!`)``(?!`)(.+?)(?<!`)``(?!`)", r"`\1`", text, flags=re.S)
    return re.sub(r"(?<!\[)doi:(\S+?)(?=\.?(?:\s|$))", r"[doi:\1](https://doi.org/\1)", text)


def _fence(block: re.Match[str]) -> str:
    code = "\n".join(line[4:] for line in block[1].rstrip().splitlines())
    return f":\n\n```text\n{code}\n```\n\n"
