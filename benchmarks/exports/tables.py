"""Exports that are tables: CSV, TSV, workbooks and arrays."""

import csv
import io
import json
from typing import Any

import numpy as np
import pandas as pd

from exports.pen import Export, Pen, Writer

CELLS = ["", " ", '"', "\n", "x" * 20_000, "NA", "{", "[1", "0", "1.0", "é", "a,b;c\td"]
TIME = "2024/05/31 3:07:14 PM GMT+2"


def cell(pen: Pen, value: str) -> str:
    """The value, or junk that a cell of text can hold."""
    if not pen.chance(pen.dirt):
        return value
    pen.spoiled = True
    return pen.pick(CELLS)


def to_text(header: list[str], rows: list[list[str]], delimiter: str = ",") -> bytes:
    stream = io.StringIO()
    writer = csv.writer(stream, delimiter=delimiter, lineterminator="\n")
    writer.writerows([header, *rows])
    return stream.getvalue().encode("utf-8", "surrogatepass")


def long_rows(pen: Pen, *, text: bool = True) -> list[list[Any]]:
    """Rows of task, worker, label; some are blank, some occur twice."""
    rows: list[list[Any]] = []
    for task, worker, label in pen.draw_votes(typed=False):
        spoil = (lambda value: cell(pen, value)) if text else pen.spoil
        row = [spoil(task), spoil(worker), spoil(label)]
        pen.write(*row)
        rows.append(row)
        if pen.chance(pen.dirt):
            pen.spoiled = True
            pen.write(*row)
            rows.append(row)
    return rows


def long_csv(pen: Pen) -> Export:
    mark = pen.pick(",;\t|")
    header = pen.pick([["task", "worker", "label"], ["item", "annotator", "answer"]])
    name = pen.pick(["votes.csv", "votes.txt", "votes"])
    if mark == "\t":
        name = "votes.tsv"
    return pen.export("long", name, to_text(header, long_rows(pen), mark))


def long_json(pen: Pen) -> Export:
    rows = []
    for task, worker, label in pen.draw_votes():
        rows.append(pen.record(task=task, worker=worker, label=label))
        pen.write(task, worker, label)
    if pen.chance(0.5):
        return pen.export("long", "votes.jsonl", pen.dump_lines(rows))
    return pen.export("long", "votes.json", pen.dump(rows))


def long_binary(pen: Pen) -> Export:
    frame = pd.DataFrame(long_rows(pen), columns=["task", "worker", "label"])
    frame = frame.map(lambda own: None if own == "" else own)
    stream = io.BytesIO()
    if pen.chance(0.5):
        frame.to_parquet(stream)
        return pen.export("long", "votes.parquet", stream.getvalue())
    if any(str(own).startswith("=") for own in frame.to_numpy().ravel()):  # becomes a formula
        pen.clean.clear()
    frame.map(lambda own: own[:30_000] if isinstance(own, str) else own).to_excel(
        stream, index=False
    )
    return pen.export("long", "votes.xlsx", stream.getvalue())


def triples(pen: Pen) -> Export:
    rows = [[f"t{task}", f"w{worker}", f"l{label}"] for task, worker, label in pen.draw_votes()]
    for row in rows:
        pen.write(*row)
    if len(rows) == 1:
        rows.insert(0, ["task", "worker", "label"])
    return pen.export("triples", "votes.json", pen.dump(rows))


def wide_csv(pen: Pen) -> Export:
    """A table of labels, whose empty cells are no records."""
    workers = [f"w{k}" for k in range(pen.random.randint(2, 5))]
    rows = []
    for number in range(pen.random.randint(2, 6)):
        row = [f"q{number}"]
        for worker in workers:
            label = pen.pick(["yes", "no"]) if pen.chance(0.8) else ""
            if label:
                pen.write(row[0], worker, label)
            row.append(label)
        rows.append(row)
    pen.options = {"format": "wide"} if pen.chance(0.5) else {"worker": "w*"}
    return pen.export("wide", "votes.csv", to_text(["task", *workers], rows))


def matrix(pen: Pen) -> Export:
    size = (pen.random.randint(1, 6), pen.random.randint(2, 5))
    array = np.array([[pen.random.randint(-1, 2) for _ in range(size[1])] for _ in range(size[0])])
    array[0, 0], array[0, 1] = 0, 2
    for task, worker in zip(*np.nonzero(array >= 0), strict=True):
        pen.write(task, worker, array[task, worker])
    if pen.chance(0.5):
        stream = io.BytesIO()
        np.save(stream, array)
        return pen.export("matrix", "votes.npy", stream.getvalue())
    text = "\n".join(" ".join(map(str, row)) for row in array.tolist()) + "\n"
    return pen.export("matrix", "votes.txt", text.encode())


def mturk(pen: Pen) -> Export:
    kind = pen.pick(["plain", "ticks", "form"])
    columns = {"plain": ["Answer.mood"], "ticks": ["Answer.mood.yes", "Answer.mood.no"],
               "form": ["Answer.taskAnswers"]}[kind]  # fmt: skip
    rows = []
    for task, worker, _ in pen.draw_votes(typed=False):
        label, status = pen.pick(["yes", "no"]), pen.pick(["Approved", "Submitted", "Rejected"])
        given = {
            "plain": [label],
            "ticks": [str(label == name).lower() for name in ("yes", "no")],
            "form": [json.dumps([{"mood": pen.pick([label, {label: True, "x": False}])}])],
        }[kind]
        rows.append([cell(pen, own) for own in (task, worker, status, *given)])
        aside = rows[-1][2] == "Rejected"
        pen.write(task, worker, label, aside=aside)
    header = ["HITId", "WorkerId", "AssignmentStatus", *columns]
    return pen.export("mturk", "batch.csv", to_text(header, rows))


def appen(pen: Pen) -> Export:
    rows = []
    for task, worker, label in pen.draw_votes(typed=False):
        tainted = pen.pick(["true", "false", "false"])
        rows.append([cell(pen, own) for own in (task, worker, tainted, label, "", "false")])
        pen.write(task, worker, label, aside=rows[-1][2] == "true")
    header = ["_unit_id", "_worker_id", "_tainted", "mood", "mood_gold", "_golden"]
    return pen.export("appen", "full.csv", to_text(header, rows))


def toloka(pen: Pen) -> Export:
    rows = []
    for task, worker, label in pen.draw_votes(typed=False):
        status = pen.pick(["APPROVED", "SUBMITTED", "REJECTED"])
        rows.append([cell(pen, own) for own in ("http://x", task, worker, status, label)])
        pen.write(task, worker, label, aside=rows[-1][3] == "REJECTED")
    own = ["INPUT:image", "ASSIGNMENT:task_id", "ASSIGNMENT:worker_id", "ASSIGNMENT:status"]
    return pen.export("toloka", "assignments.tsv", to_text([*own, "OUTPUT:mood"], rows, "\t"))


def google_forms(pen: Pen) -> Export:
    tasks = [f"Image {k}?" for k in range(pen.random.randint(1, 5))]
    rows = []
    for number in range(pen.random.randint(1, 5)):
        row = [TIME, f"w{number}@x.org"]
        for task in tasks:
            label = cell(pen, pen.pick([*pen.words, ""]))
            if label:
                pen.write(task, row[1], label)
            pen.spoiled = False
            row.append(label)
        rows.append(row)
    header = ["Timestamp", "Email Address", *tasks]
    return pen.export("google_forms", "responses.csv", to_text(header, rows))


def label_studio_csv(pen: Pen) -> Export:
    rows = []
    for number, (task, worker, label) in enumerate(pen.draw_votes(typed=False)):
        several = json.dumps({"choices": [label]}) if pen.chance(0.3) else label
        rows.append([cell(pen, own) for own in (task, several, worker, str(number), "2.5")])
        pen.write(task, worker, label)
    header = ["id", "mood", "annotator", "annotation_id", "lead_time"]
    return pen.export("label_studio", "export.csv", to_text(header, rows))


TABLES: dict[str, Writer] = {
    "appen": appen,
    "google_forms": google_forms,
    "label_studio_csv": label_studio_csv,
    "long_binary": long_binary,
    "long_csv": long_csv,
    "long_json": long_json,
    "matrix": matrix,
    "mturk": mturk,
    "toloka": toloka,
    "triples": triples,
    "wide_csv": wide_csv,
}
