"""Appen, formerly Figure Eight and CrowdFlower: the full report, CSV."""

from dataclasses import replace

from crowdwise.io.build import LongTable
from crowdwise.io.document import ReadOptions, Table
from crowdwise.io.formats.collect import choose_question, find_present, find_true
from crowdwise.io.recognize import Format

ROLES = {"task": "_unit_id", "worker": "_worker_id", "time": "_created_at"}
GOLD = "_gold"


def parse(document: Table, options: ReadOptions) -> LongTable:
    """Return one row for each judgment that is not tainted; test questions give gold."""
    columns = list(document.columns)
    fields = [name for name in columns if name + GOLD in columns]
    if not fields:
        fields = [name for name in columns if not name.startswith(("_", "orig_"))]
    known = columns if options.asked in columns else fields
    question = choose_question(options.asked, known, document.name)
    roles = find_present(ROLES, document) | {"label": question}
    if question + GOLD in columns:
        roles["gold"] = question + GOLD
    long = LongTable.from_columns(document, roles | options.columns)
    if "gold" in long.frame and "gold" not in options.columns:
        long = _keep_single_gold(document, long)
    if options.rejected or "_tainted" not in columns:
        return long
    tainted = find_true(document.frame(["_tainted"])["_tainted"])
    return long.drop_rows(tainted, "tainted judgments")


def _keep_single_gold(table: Table, long: LongTable) -> LongTable:
    """Keep the gold of test questions that have a single right label; count the others."""
    gold, notes = long.frame["gold"].astype(object), long.notes
    several = gold.map(lambda cell: isinstance(cell, str) and "\n" in cell.strip()).to_numpy(bool)
    aside = {"several right labels": several}
    if "_golden" in table.columns:
        aside["units that are no test questions"] = ~find_true(table.frame(["_golden"])["_golden"])
    for what, rows in aside.items():
        units = long.frame.loc[rows & gold.notna().to_numpy(bool), "task"].nunique()
        notes += (f"truths of {what} left out: {units:,}",) if units else ()
        gold[rows] = None
    return replace(long, frame=long.frame.assign(gold=gold), notes=notes)


FORMAT = Format("appen", __doc__, Table, parse, marks=({"_unit_id", "_worker_id"},))
