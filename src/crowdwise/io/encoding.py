"""Encodings of text: UTF-8 is the rule, and others are found."""

import codecs

MARKS = {
    codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16",
}  # fmt: skip
MOSTLY = 0.4  # zeros in every other byte that make text without a mark UTF-16


def find_encoding(start: bytes) -> str | None:
    """UTF-16 or UTF-32, where a mark says so, or zeros in every other byte; else None."""
    for mark, encoding in MARKS.items():
        if start.startswith(mark):
            return encoding
    places = [start[k::2].count(0) / max(len(start[k::2]), 1) for k in (0, 1)]
    if max(places) < MOSTLY or min(places) > 0 or len(start) < 4:
        return None
    return "utf-16-be" if places[0] else "utf-16-le"
