"""Which column is which: the words other tools use for task, worker and label."""

from collections.abc import Iterable

from crowdwise.errors import AnnotationError

# Compared in lower case without spaces, dots, dashes and underscores at either end or inside.
SYNONYMS = {
    "task": (
        "task", "taskid", "item", "itemid", "question", "questionid", "example", "exampleid",
        "instance", "instanceid", "unit", "unitid", "hitid", "object", "objectid", "sample",
        "sampleid", "doc", "docid", "document", "documentid", "image", "imageid", "text", "textid",
        "sentence", "sentenceid", "commentid", "revid", "id",
    ),
    "worker": (
        "worker", "workerid", "annotator", "annotatorid", "user", "userid", "username", "rater",
        "raterid", "labeler", "labelerid", "labeller", "coder", "coderid", "performer", "judge",
        "judgeid", "expert", "completedby", "turker", "amazonworkerids", "source", "model",
    ),
    "label": (
        "label", "labels", "answer", "annotation", "value", "response", "rating", "vote",
        "judgment", "judgement", "category", "class", "choice", "score", "decision", "prediction",
    ),
    "weight": ("weight", "trust", "confidence"),
    "time": (
        "time", "timestamp", "datetime", "date", "createdat", "completetime", "submittime",
        "submittedat", "updatedat",
    ),
    "gold": ("gold", "truth", "goldlabel", "groundtruth", "golden", "truelabel"),
}  # fmt: skip
REQUIRED = ("task", "worker", "label")


def plain(name: object) -> str:
    """A column's name without case and punctuation."""
    return "".join(letter for letter in str(name).lower() if letter.isalnum())


def recognise(columns: Iterable[object], given: dict[str, str | None]) -> dict[str, str]:
    """Find the column for each role: as given, else by its own name, else by a synonym."""
    names = [str(name) for name in columns]
    found: dict[str, str] = {}
    for role, name in given.items():
        if name is not None:
            found[role] = name
    by_plain: dict[str, str] = {}
    for name in names:
        by_plain.setdefault(plain(name), name)
    for role, synonyms in SYNONYMS.items():
        if role in found:
            continue
        taken = set(found.values())
        matches = [by_plain[s] for s in synonyms if s in by_plain and by_plain[s] not in taken]
        if matches:
            found[role] = matches[0]
    return found


def require(found: dict[str, str], columns: Iterable[object], where: str) -> None:
    """Refuse a table that lacks a task, worker or label column."""
    names = [str(name) for name in columns]
    for role in REQUIRED:
        if found.get(role) not in names:
            fix = (
                f"rename a column, or name it: {role}='…' in Python, --{role} … on the command line"
            )
            raise AnnotationError.missing_column(role, where=where, found=names, fix=fix)
