"""Text in CSV files that a spreadsheet would run as a formula.

Whoever names a worker ``=HYPERLINK(…)`` writes into the spreadsheet of whoever opens the results.
So text that begins with ``=``, ``+``, ``-``, ``@``, a tab or the end of a line is written to CSV
and TSV with an apostrophe before it, and read back without it. Text that begins with apostrophes
before such a sign gets one more, so every name comes back as it was. Numbers, and a sign alone,
are no formulas and stay as they are.
"""

import re
from collections.abc import Iterable
from typing import Any

SIGNS = "=+-@\t\r\n\uff1d\uff0b\uff0d\uff20"  # the last four: the same signs in full width
FIRST = f"'{SIGNS}"
is_formula = re.compile(f"'*[{re.escape(SIGNS)}].", re.S).match
is_number = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?").fullmatch


def guard(text: str) -> str:
    """The text as CSV holds it.

    >>> guard("=1+1"), guard("'=1+1"), guard("-1.5"), guard("+"), guard("ann")
    ("'=1+1", "''=1+1", '-1.5', '+', 'ann')
    """
    return f"'{text}" if is_formula(text) and not is_number(text) else text


def guard_values(values: Iterable[object]) -> dict[object, str]:
    """Those of the values that CSV holds in another form, with that form."""
    likely = (value for value in values if isinstance(value, str) and value[:1] in FIRST)
    return {text: guarded for text in likely if (guarded := guard(text)) != text}


def unguard(texts: list[Any]) -> list[Any]:
    """The texts of one column as they were before they were guarded.

    A column in which a formula is not guarded was not written by this rule, and stays as it is.
    """
    if not any(map(_is_guarded, texts)) or guard_values(t for t in texts if not _is_guarded(t)):
        return texts
    return [text[1:] if _is_guarded(text) else text for text in texts]


def _is_guarded(text: object) -> bool:
    return isinstance(text, str) and text[:1] == "'" and is_formula(text) is not None
