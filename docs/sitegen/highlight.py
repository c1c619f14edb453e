"""Colours for code: Python by its own tokenizer, shells by comments and quotes."""

import builtins
import io
import keyword
import re
import token
import tokenize
from html import escape, unescape

BLOCK = re.compile(r'<pre><code class="language-(\w+)">(.*?)</code></pre>', re.S)
SHELL = re.compile(r"(?P<c>(?:^|(?<=\s))#.*)|(?P<s>'[^']*'|\"[^\"]*\")|(?P<k>^\s*[\w./-]+)", re.M)
KINDS = {token.STRING: "s", token.NUMBER: "n", token.COMMENT: "c"}
KINDS |= {getattr(token, name): "s" for name in dir(token) if name.startswith("FSTRING")}


def highlighted(html: str) -> str:
    """A page with its code blocks in colour."""
    return BLOCK.sub(lambda found: block(unescape(found[2]), found[1]), html)


def block(code: str, language: str) -> str:
    """One block of code as HTML; a shell's commands get the class of keywords."""
    painters = {"python": python, "pycon": session, "bash": shell, "sh": shell}
    painted = painters.get(language, escape)(code)
    return f'<pre tabindex="0"><code class="language-{language}">{painted}</code></pre>'


def python(code: str) -> str:
    """Python, token by token; what cannot be read stays plain."""
    lines = code.splitlines(keepends=True)
    parts, row, column = [], 1, 0
    try:
        for found in tokenize.generate_tokens(io.StringIO(code).readline):
            parts.append(escape(_between(lines, (row, column), found.start)))
            parts.append(span(kind_of(found), found.string))
            row, column = found.end
    except (tokenize.TokenError, SyntaxError):
        return escape(code)
    return "".join(parts)


def session(code: str) -> str:
    """An interactive session: what was typed in colour, what was answered faint."""
    lines = []
    for line in code.splitlines():
        typed = line.startswith((">>>", "..."))
        shown = python(line[3:].rstrip("\n")) if typed else ""
        lines.append(span("o", line[:3]) + shown if typed else span("o", line))
    return "\n".join(lines) + "\n"


def kind_of(found: tokenize.TokenInfo) -> str:
    """The class of a token: keyword, builtin, string, number or comment."""
    if found.type == token.NAME:
        if keyword.iskeyword(found.string):
            return "k"
        return "b" if hasattr(builtins, found.string) else ""
    return KINDS.get(found.type, "")


def shell(code: str) -> str:
    """A shell's commands, quoted words and comments."""
    parts, last = [], 0
    for found in SHELL.finditer(code):
        parts += [escape(code[last : found.start()]), span(found.lastgroup or "", found[0])]
        last = found.end()
    return "".join([*parts, escape(code[last:])])


def span(kind: str, text: str) -> str:
    return f'<span class="{kind}">{escape(text)}</span>' if kind and text else escape(text)


def _between(lines: list[str], start: tuple[int, int], end: tuple[int, int]) -> str:
    """The text between two places, which the tokenizer passes over."""
    (row, column), (last_row, last_column) = start, end
    if row == last_row:
        return lines[row - 1][column:last_column] if row <= len(lines) else ""
    middle = "".join(lines[row : last_row - 1])
    tail = lines[last_row - 1][:last_column] if last_row <= len(lines) else ""
    return lines[row - 1][column:] + middle + tail
