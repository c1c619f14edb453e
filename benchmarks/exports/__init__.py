"""Random exports of every tool that is read or refused, with junk mixed in, by a seed.

A writer knows how many records it wrote, and which of them are clean votes; so a reading can be
checked: every record is an annotation or counted in a note, and no vote is lost or made up.
"""

from exports.check import check, read_as
from exports.foreign import FOREIGN
from exports.judge_logs import JUDGE_LOGS
from exports.pen import Export, Pen, draw_export
from exports.records import RECORDS
from exports.tables import TABLES

WRITERS = {**RECORDS, **JUDGE_LOGS, **TABLES, **FOREIGN}

__all__ = ["FOREIGN", "WRITERS", "Export", "Pen", "check", "draw_export", "read_as"]
