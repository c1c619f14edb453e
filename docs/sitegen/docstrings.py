"""Docstrings in numpy's form, read into sections and written as Markdown."""

import inspect
import re
from dataclasses import dataclass, field

ROLE = re.compile(r":\w+:`~?([^`]+)`")
DOI = re.compile(r"doi:(\S+?)(?=\.?(?:\s|$))")
DOUBLE = re.compile(r"(?<!`)``(?!`)(.+?)(?<!`)``(?!`)", re.S)
ADDRESS = re.compile(r"(?<![(<])(https?://\S+)")


@dataclass
class Docstring:
    """What a docstring says: its first line, the text below, and sections by title."""

    summary: str
    text: str
    sections: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, thing: object) -> "Docstring":
        lines = (inspect.getdoc(thing) or "").splitlines()
        marks = [
            n for n in range(1, len(lines)) if lines[n] and set(lines[n]) == {"-"} and lines[n - 1]
        ]
        first = marks[0] - 1 if marks else len(lines)
        ends = [*(mark - 1 for mark in marks[1:]), len(lines)] if marks else []
        sections = {
            lines[mark - 1]: "\n".join(lines[mark + 1 : end]).strip("\n")
            for mark, end in zip(marks, ends, strict=True)
        }
        return cls(lines[0] if lines else "", "\n".join(lines[1:first]).strip(), sections)


def prose(text: str) -> str:
    """Running text as Markdown: literal blocks, double backquotes and roles."""
    text = re.sub(r"::\n\n((?: {4}.*\n?|\n)+)", _literal, text + "\n")
    text = ROLE.sub(lambda found: f"`{found[1].rsplit('.', 1)[-1]}`", text)
    return DOUBLE.sub(r"`\1`", text).strip()


def _literal(found: re.Match[str]) -> str:
    code = "\n".join(line[4:] for line in found[1].rstrip().splitlines())
    return f":\n\n```text\n{code}\n```\n\n"


def definitions(text: str) -> list[tuple[str, str, str]]:
    """Name, kind and meaning of every parameter or attribute."""
    found: list[tuple[str, str, list[str]]] = []
    for line in text.splitlines():
        if line and not line.startswith(" "):
            name, _, kind = line.partition(" : ")
            found.append((name, kind, []))
        elif found:
            found[-1][2].append(line[4:])
    return [(name, kind, prose("\n".join(lines))) for name, kind, lines in found]


def references(text: str) -> list[str]:
    """Every reference as Markdown with its link."""
    found = [" ".join(part.split()) for part in text.split("\n\n") if part.strip()]
    linked = [DOI.sub(lambda d: f"[doi:{d[1]}](https://doi.org/{d[1]})", part) for part in found]
    return [ADDRESS.sub(r"<\1>", part) for part in linked]
