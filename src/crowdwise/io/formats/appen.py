"""Appen, formerly Figure Eight and CrowdFlower: the full report, CSV."""

from crowdwise.io.content import Content, Long, Options, Table
from crowdwise.io.formats._rows import choose
from crowdwise.io.formats._tables import present, take
from crowdwise.io.values import is_true

ROLES = {"task": "_unit_id", "worker": "_worker_id", "time": "_created_at"}
GOLD = "_gold"


def matches(content: Content) -> bool:
    """Whether there are columns for the unit and the worker, as Appen writes them."""
    return {"_unit_id", "_worker_id"} <= set(content.columns)


def parse(content: Table, options: Options) -> Long:
    """One row for each judgment that is not tainted; test questions bring gold."""
    columns = list(content.columns)
    fields = [name for name in columns if name + GOLD in columns]
    if not fields:
        fields = [name for name in columns if not name.startswith(("_", "orig_"))]
    known = columns if options.asked in columns else fields
    question = choose(options.asked, known, content.name)
    roles = present(ROLES, content) | {"label": question}
    if question + GOLD in columns:
        roles["gold"] = question + GOLD
    long = take(content, roles | options.columns)
    if "gold" in long.frame and "gold" not in options.columns:
        long.frame["gold"] = _single(content, long)
    if options.rejected or "_tainted" not in columns:
        return long
    tainted = is_true(content.frame(["_tainted"])["_tainted"])
    return long.without(tainted, "tainted judgments")


def _single(table: Table, long: Long) -> object:
    """Gold of test questions that have one right label."""
    gold = long.frame["gold"].astype(object)
    several = gold.map(lambda cell: isinstance(cell, str) and "\n" in cell.strip()).to_numpy(bool)
    gold[several] = None
    if "_golden" in table.columns:
        gold[~is_true(table.frame(["_golden"])["_golden"])] = None
    return gold
