"""Amazon Mechanical Turk: the results of a batch, CSV."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from crowdwise.io.content import Content, Long, Options, Table
from crowdwise.io.formats._rows import choose
from crowdwise.io.formats._tables import present, take
from crowdwise.io.values import as_coded, coded, is_true, joined

INPUT, ANSWER, FORM = "Input.", "Answer.", "Answer.taskAnswers"
ROLES = {"task": "HITId", "time": "SubmitTime"}
ZONES = {"PST": "-08:00", "PDT": "-07:00", "UTC": "+00:00", "GMT": "+00:00"}
STAMP = re.compile(r"\w{3} (\w{3}) +(\d+) (\d\d:\d\d:\d\d) (\w{3}) (\d{4})").fullmatch


def matches(content: Content) -> bool:
    """Whether there are columns for the worker and an answer, as Amazon writes them."""
    columns = {str(name).lower() for name in content.columns}
    return "workerid" in columns and any(name.startswith("answer.") for name in columns)


def parse(content: Table, options: Options) -> Long:
    """One row for each assignment that was not rejected."""
    roles = _roles(content, options)
    if options.asked not in content.columns:
        questions = _questions(content)
        question = choose(_asked(options, questions), questions, content.name)
        note = f"label from answer {question!r}"
        long = take(content, roles, (note,), label=questions[question])
    else:
        long = take(content, roles)
    if "time" in long.frame:
        long = replace(long, frame=long.frame.assign(time=_times(long.frame["time"])))
    if options.rejected or "AssignmentStatus" not in content.columns:
        return long
    status = content.frame(["AssignmentStatus"])["AssignmentStatus"]
    return long.without(status.isin(["Rejected"]).to_numpy(bool), "rejected assignments")


def _roles(table: Table, options: Options) -> dict[str, str]:
    """The columns of an assignment; without a HIT, its only input is the task."""
    worker = next(name for name in table.columns if name.lower() == "workerid")
    roles = present(ROLES, table) | {"worker": worker} | options.columns
    if "task" not in roles:
        inputs = [name for name in table.columns if name.startswith(INPUT)]
        roles["task"] = choose(None, inputs, table.name, "input column", "task")
    return roles


def _asked(options: Options, questions: Mapping[str, Any]) -> str | None:
    asked = options.asked.removeprefix(ANSWER) if options.asked else None
    return f"{asked}.label" if asked and f"{asked}.label" in questions else asked


def _questions(table: Table) -> dict[str, Any]:
    """The labels of each question; ticks such as ``Answer.mood.good`` make one question."""
    names = [name for name in table.columns if name.startswith(ANSWER)]
    if names == [FORM]:
        return _forms(table)
    frame = table.frame(names)
    ticks: dict[str, dict[str, Any]] = {}
    questions: dict[str, Any] = {}
    for name in names:
        question, _, option = name.removeprefix(ANSWER).rpartition(".")
        column = as_coded(frame[name], "label", table.name)
        values = {str(cell).lower() for cell in column.cat.categories}
        if question and values <= {"true", "false"}:
            ticks.setdefault(question, {})[option] = is_true(column)
        else:
            questions[name.removeprefix(ANSWER)] = column
    for question, chosen in ticks.items():
        rows = zip(*chosen.values(), strict=True)
        picked = [[name for name, yes in zip(chosen, row, strict=True) if yes] for row in rows]
        questions[question] = coded(map(joined, picked), "label", table.name)
    return questions


def _forms(table: Table) -> dict[str, Any]:
    """The labels of each question of answers written as JSON."""
    forms = [_form(cell) for cell in table.frame([FORM])[FORM].astype(object)]
    names = dict.fromkeys(name for form in forms for name in form)
    return {n: coded([form.get(n) for form in forms], "label", table.name) for n in names}


def _form(cell: Any) -> dict[str, Any]:
    try:
        form = json.loads(cell)
    except (TypeError, ValueError, RecursionError):
        return {}
    form = form[0] if isinstance(form, list) and form else form
    return {k: _answer(v) for k, v in form.items()} if isinstance(form, dict) else {}


def _answer(value: Any) -> Any:
    if isinstance(value, dict):
        ticked = [name for name, yes in value.items() if yes is True]
        value = value.get("label", ticked)
    return joined(value)


def _times(column: pd.Series) -> pd.Series:
    """Times as Amazon writes them, with zones that can be read."""
    stamps = column.astype(object).map(lambda cell: STAMP(cell) if isinstance(cell, str) else None)
    if not stamps.map(lambda stamp: stamp is not None and stamp[4] in ZONES).any():
        return column
    return stamps.map(lambda s: s and f"{s[2]} {s[1]} {s[5]} {s[3]} {ZONES.get(s[4], '+00:00')}")
