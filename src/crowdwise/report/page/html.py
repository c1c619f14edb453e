"""Markup that text from the data cannot get into."""

import html
import json
import re
from typing import Any

CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffe\uffff]")
VOID = ("br", "circle", "input", "line", "link", "meta", "path", "rect", "polygon", "polyline")


class Markup(str):
    """Text that is markup already; all other text is escaped on its way into a page."""

    __slots__ = ()


def clean(value: object) -> str:
    """Any value as text that every browser and every XML reader takes."""
    text = str(value).encode("utf-8", "replace").decode("utf-8")
    return CONTROL.sub("\ufffd", text)


def escaped(value: object) -> Markup:
    """Text as markup that shows it."""
    return value if isinstance(value, Markup) else Markup(html.escape(clean(value), quote=True))


def tag(name: str, /, *children: Any, **attributes: Any) -> Markup:
    """An element; ``class_`` and ``for_`` lose their tail, other underscores become dashes.

    An attribute that is None or False is left out, True stands alone.

    >>> tag("p", "a < b", class_="note")
    '<p class="note">a &lt; b</p>'
    """
    parts = [name]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        plain = key.rstrip("_").replace("_", "-") if key not in SAME_CASE else SAME_CASE[key]
        parts.append(plain if value is True else f'{plain}="{escaped(value)}"')
    opened = " ".join(parts)
    if name in VOID and not children:
        return Markup(f"<{opened}/>")
    return Markup(f"<{opened}>{join(*children)}</{name}>")


SAME_CASE = {"view_box": "viewBox"}


def join(*children: Any) -> Markup:
    """Pieces of a page one after the other; None is nothing, a list is its members."""
    parts = []
    for child in children:
        if child is None:
            continue
        parts.append(join(*child) if isinstance(child, list | tuple) else escaped(child))
    return Markup("".join(parts))


def name(value: object, most: int = 60) -> Markup:
    """A name from the data: kept apart from the direction of the text around it."""
    return tag("bdi", shortened(clean(value), most))


def shortened(text: str, most: int) -> str:
    """The text, or its beginning and end where it is too long."""
    if len(text) <= most:
        return text
    tail = most // 3
    return f"{text[: most - tail - 1]}…{text[-tail:]}"


def data_block(identity: str, value: Any) -> Markup:
    """Values for the script, where no text can end the element or start another."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return tag("script", Markup(text), type="application/json", id=identity)
