"""A long table, one row an annotation: columns task, worker, label or words like these."""

from dataclasses import replace

from crowdwise.io.content import Content, Long, Options, Table
from crowdwise.io.formats._tables import take
from crowdwise.io.recognize import REQUIRED, list_candidates, recognize_columns, require_columns
from crowdwise.io.values import parse_names

SOFT = "proba_"


def matches(content: Content) -> bool:
    """Whether columns for the task, the worker and the label are there."""
    found = recognize_columns(content.columns, {"task": content.task})
    return isinstance(content, Table) and set(REQUIRED) <= found.keys()


def parse(content: Table, options: Options) -> Long:
    """The columns as they are named, or as the caller says."""
    roles = recognize_columns(content.columns, {"task": content.task} | options.columns)
    require_columns(roles, content.columns, content.name)
    if options.task is None and content.task is None:
        roles["task"] = _repeating(content, roles)
    soft = [name for name in content.columns if name.startswith(SOFT)]
    long = replace(take(content, roles | {name: name for name in soft}), guessed=True)
    if not soft:
        return long
    classes = [name.removeprefix(SOFT) for name in soft]
    names = parse_names(classes) if content.untyped else classes
    return replace(long, soft=dict(zip(names, soft, strict=True)))


def _repeating(table: Table, roles: dict[str, str]) -> str:
    """The first column for the task in which a value occurs twice: row numbers are no tasks."""
    taken = {name for role, name in roles.items() if role != "task"}
    possible = [name for name in list_candidates("task", table.columns) if name not in taken]
    for name in possible if len(possible) > 1 else []:
        if table.frame([name])[name].duplicated().any():
            return name
    return roles["task"]
