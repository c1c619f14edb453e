"""Which column is which: the words other tools use for task, worker and label."""

from collections.abc import Iterable, Mapping
from functools import lru_cache

from crowdwise.annotations.frames import refuse_absent, shorten_columns
from crowdwise.errors import AnnotationError

# Compared in lower case without spaces, dots, dashes and underscores at either end or inside.
SYNONYMS = {
    "task": (
        "task", "taskid", "item", "itemid", "question", "questionid", "example", "exampleid",
        "instance", "instanceid", "unit", "unitid", "hitid", "object", "objectid", "sampleid",
        "docid", "documentid", "imageid", "textid", "sentenceid", "commentid", "tweetid", "postid",
        "revid", "origid", "id", "sample", "doc", "document", "image", "text", "sentence",
        "comment", "tweet",
    ),
    "worker": (
        "worker", "workerid", "annotator", "annotatorid", "user", "userid", "username", "rater",
        "raterid", "labeler", "labelerid", "labeller", "labellerid", "coder", "coderid",
        "performer", "performerid", "judge", "judgeid", "expert", "expertid", "completedby",
        "turker", "amtworkerids", "source", "model",
    ),
    "label": (
        "label", "labels", "answer", "annotation", "value", "response", "rating", "vote",
        "judgment", "judgement", "category", "class", "choice", "score", "decision", "prediction",
    ),
    "weight": ("weight",),
    "time": (
        "time", "timestamp", "datetime", "date", "createdat", "completetime", "submittime",
        "submittedat", "updatedat",
    ),
    "gold": ("gold", "truth", "goldlabel", "groundtruth", "truelabel"),
}  # fmt: skip
REQUIRED = ("task", "worker", "label")


@lru_cache(maxsize=1 << 14, typed=True)  # wide tables are looked at by every format in turn
def normalize_name(name: object) -> str:
    """A column's name without case and punctuation."""
    return "".join(letter for letter in str(name).lower() if letter.isalnum())


def list_candidates(role: str, columns: Iterable[object]) -> list[str]:
    """The columns that a role's synonyms name, the likeliest first."""
    by_plain: dict[str, str] = {}
    for name in map(str, columns):
        by_plain.setdefault(normalize_name(name), name)
    return [by_plain[word] for word in SYNONYMS[role] if word in by_plain]


def recognize_columns(columns: Iterable[object], given: Mapping[str, str | None]) -> dict[str, str]:
    """Find the column for each role: as given, else by its own name, else by a synonym."""
    names = list(map(str, columns))
    found = {role: name for role, name in given.items() if name is not None}
    for role in SYNONYMS:
        taken = set(found.values())
        left = [name for name in list_candidates(role, names) if name not in taken]
        if role not in found and left:
            found[role] = left[0]
    return found


def require_columns(
    found: Mapping[str, str],
    columns: Iterable[object],
    where: str,
    needed: Iterable[str] = REQUIRED,
) -> None:
    """Refuse a table that lacks a column for a role that is needed, or one that was named."""
    names = list(map(str, columns))
    for role in needed:
        if role not in found:
            fix = f"rename a column, or name it: {role}='…' in Python, --{role} … in a shell"
            if not found:
                fix += "; the first line must name the columns"
            elif role == "worker":
                fix += "; worker='rater_*' if every such column is a worker"
            shown = shorten_columns(names)
            raise AnnotationError.missing_column(role, where=where, found=shown, fix=fix)
        refuse_absent({role: found[role]}, names, where)
    refuse_absent(found, names, where)
