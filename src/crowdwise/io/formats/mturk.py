"""Amazon Mechanical Turk: the results of a batch, CSV."""

import json
import re
from dataclasses import replace

import pandas as pd

from crowdwise.io.build import LongTable
from crowdwise.io.document import ReadOptions, Record, Table
from crowdwise.io.formats.collect import choose_question, find_present, find_true, join_labels
from crowdwise.io.recognize import Format
from crowdwise.io.values import Cell, encode_column, encode_values
from crowdwise.typing import Array

Questions = dict[str, pd.Series]  # the labels of each question
INPUT, ANSWER, FORM = "Input.", "Answer.", "Answer.taskAnswers"
ROLES = {"task": "HITId", "time": "SubmitTime"}
ZONES = {"PST": "-08:00", "PDT": "-07:00", "UTC": "+00:00", "GMT": "+00:00"}
STAMP = re.compile(r"\w{3} (\w{3}) +(\d+) (\d\d:\d\d:\d\d) (\w{3}) (\d{4})").fullmatch


def parse(document: Table, options: ReadOptions) -> LongTable:
    """Return one row for each assignment that was not rejected."""
    roles = _find_roles(document, options)
    if options.asked not in document.columns:
        questions = _collect_questions(document)
        asked = _normalize_question(options, questions)
        question = choose_question(asked, questions, document.name)
        note = f"label from answer {question!r}"
        long = LongTable.from_columns(document, roles, (note,), label=questions[question])
    else:
        long = LongTable.from_columns(document, roles)
    if "time" in long.frame:
        long = replace(long, frame=long.frame.assign(time=_parse_times(long.frame["time"])))
    if options.rejected or "AssignmentStatus" not in document.columns:
        return long
    status = document.frame(["AssignmentStatus"])["AssignmentStatus"]
    return long.drop_rows(status.isin(["Rejected"]).to_numpy(bool), "rejected assignments")


def _find_roles(table: Table, options: ReadOptions) -> dict[str, str]:
    """Find the columns of an assignment; without a HIT, its only input is the task."""
    worker = next(name for name in table.columns if name.lower() == "workerid")
    roles = find_present(ROLES, table) | {"worker": worker} | options.columns
    if "task" not in roles:
        inputs = [name for name in table.columns if name.startswith(INPUT)]
        roles["task"] = choose_question(None, inputs, table.name, "input column", "task")
    return roles


def _normalize_question(options: ReadOptions, questions: Questions) -> str | None:
    asked = options.asked.removeprefix(ANSWER) if options.asked else None
    return f"{asked}.label" if asked and f"{asked}.label" in questions else asked


def _collect_questions(table: Table) -> Questions:
    """Collect the labels of each question; ticks such as ``Answer.mood.good`` form one."""
    names = [name for name in table.columns if name.startswith(ANSWER)]
    if names == [FORM]:
        return _parse_forms(table)
    frame = table.frame(names)
    ticks: dict[str, dict[str, Array]] = {}
    questions: Questions = {}
    for name in names:
        question, _, option = name.removeprefix(ANSWER).rpartition(".")
        column = encode_column(frame[name], "label", table.name)
        values = {str(cell).lower() for cell in column.cat.categories}
        if question and values <= {"true", "false"}:
            ticks.setdefault(question, {})[option] = find_true(column)
        else:
            questions[name.removeprefix(ANSWER)] = column
    for question, chosen in ticks.items():
        rows = zip(*chosen.values(), strict=True)
        picked = [[name for name, yes in zip(chosen, row, strict=True) if yes] for row in rows]
        questions[question] = encode_values(map(join_labels, picked), "label", table.name)
    return questions


def _parse_forms(table: Table) -> Questions:
    """Collect the labels of each question from answers written as JSON."""
    forms = [_parse_form(cell) for cell in table.frame([FORM])[FORM].astype(object)]
    names = dict.fromkeys(name for form in forms for name in form)
    return {n: encode_values([form.get(n) for form in forms], "label", table.name) for n in names}


def _parse_form(cell: Cell) -> Record:
    try:
        form = json.loads(cell)
    except (TypeError, ValueError, RecursionError):
        return {}
    form = form[0] if isinstance(form, list) and form else form
    return {k: _parse_answer(v) for k, v in form.items()} if isinstance(form, dict) else {}


def _parse_answer(value: Cell) -> Cell:
    if isinstance(value, dict):
        ticked = [name for name, yes in value.items() if yes is True]
        value = value.get("label", ticked)
    return join_labels(value)


def _parse_times(column: pd.Series) -> pd.Series:
    """Rewrite Amazon's times with time zones that can be parsed."""
    stamps = column.astype(object).map(lambda cell: STAMP(cell) if isinstance(cell, str) else None)
    if not stamps.map(lambda stamp: stamp is not None and stamp[4] in ZONES).any():
        return column
    return stamps.map(lambda s: s and f"{s[2]} {s[1]} {s[5]} {s[3]} {ZONES.get(s[4], '+00:00')}")


FORMAT = Format("mturk", __doc__, Table, parse, marks=({"workerid", "answer.*"},), any_case=True)
