"""CrowdTruth's medical relations: which of 14 relations hold between two terms of a sentence."""

import re
from zipfile import ZipFile

import pandas as pd

from crowdwise.datasets.tables import Files, PublishedTables, by_task, read_table

# Region, city and IP address of each worker are also published, and never read.
COLUMNS = {
    "_id": "number",
    "_worker_id": "worker",
    "_country": "country",
    "_channel": "channel",
    "relations": "label",
    "sent_id": "task",
    "sentence": "text",
    "term1": "term1",
    "term2": "term2",
}
WORD = re.compile(r"\w+")
SHEETS = {"train": 1, "dev": 2, "test": 3}
# SID, baseline and expert are the columns A, E and F.
NUMBER_CELL = re.compile(r'<c r="([AEF])(\d+)"[^>]*t="n"[^>]*><v>([^<]*)</v>')


def relations(files: Files) -> PublishedTables:
    """Parse all relations: a label is the set of those that a worker ticked."""
    rows = judgments(files)
    known = {relation: ground_truth(files, relation) for relation in ("cause", "treat")}
    texts = pd.concat([known["cause"].rename(columns={"sentence": "text"}), sentences(rows)])
    shown = texts.groupby(level=0).last()  # a worker saw the last
    texts = shown.loc[:, ["text", "term1", "term2"]]
    texts["in_ground_truth"] = texts.index.isin(known["cause"].index).astype(int)
    texts["has_worker_labels"] = texts.index.isin(rows["task"]).astype(int)
    kept = ["expert", "test_partition", "baseline", "sentence_relation_score", "UMLS_seed_relation"]
    return PublishedTables(
        rows[["task", "worker", "label"]],
        items=texts,
        split=workbook_split(files, "treat"),
        workers=people(rows),
        extra={f"truth_{name}": table[kept].replace("NA", "") for name, table in known.items()},
    )


def parse(files: Files, relation: str, truth: str) -> PublishedTables:
    """Parse one relation, ticked (1) or not (0), on the sentences of the ground truth."""
    known = ground_truth(files, relation)
    scored = truth_by(files, relation, truth, known)
    everything = judgments(files)
    rows = everything[everything["task"].isin(known.index.union(scored.index))]
    ticked = rows["label"].str.contains(rf"\b{relation.upper()}S\b")
    split = workbook_split(files, relation) if relation == "treat" else None
    return PublishedTables(
        rows[["task", "worker"]].assign(label=ticked.astype(int)),
        scored,
        items=sentences(rows),
        split=None if split is None else split[split.index.isin(rows["task"])],
        workers=people(everything).loc[rows["worker"].unique()],
    )


def truth_by(files: Files, relation: str, rule: str, known: pd.DataFrame) -> pd.Series:
    """Derive the truth by one of four rules, which the registry explains."""
    if rule == "lia_paper":
        sheet = workbook(files, relation, "train").dropna(subset=["E", "F"])
        both = sheet["E"].astype(float) * sheet["F"].astype(float)  # baseline, expert
        return by_task(sheet["A"].to_numpy(), (both > 0).astype(int).to_numpy(), "truth")
    column = {"adjudicated": "test_partition", "distant_supervision": "baseline"}.get(rule, rule)
    sign = known[column][known[column].isin(["-1", "1"])]
    return (sign == "1").astype(int).rename("truth")


def judgments(files: Files) -> pd.DataFrame:
    """Return each worker's first answer to each sentence."""
    parts = [read_table(files[name], usecols=list(COLUMNS)) for name in files if "RelEx" in name]
    rows = pd.concat(parts, ignore_index=True).rename(columns=COLUMNS)
    rows["task"] = rows["task"].str.partition("-")[0]
    ticks = {text: "|".join(sorted(set(WORD.findall(text)))) for text in rows["label"].unique()}
    rows["label"] = rows["label"].map(ticks)
    rows = rows.astype({"number": int, "worker": int}).sort_values("number")
    return rows.drop_duplicates(["task", "worker"]).sort_values(["task", "worker"])


def sentences(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the sentence and its two terms, as shown to a worker."""
    return rows.drop_duplicates("task").set_index("task")[["text", "term1", "term2"]]


def people(rows: pd.DataFrame) -> pd.DataFrame:
    """Return country, work channel and number of labels of every worker."""
    return pd.DataFrame(
        {
            "country": _usual(rows, "country"),
            "channel": _usual(rows, "channel"),
            "n_labels": rows.groupby("worker").size(),
        }
    )


def _usual(rows: pd.DataFrame, column: str) -> pd.Series:
    """Return a worker's most common value; a few moved."""
    return rows.groupby(["worker", column]).size().groupby("worker").idxmax().str[1]


def ground_truth(files: Files, relation: str) -> pd.DataFrame:
    """Return the published judgments by experts and distant supervision, by task."""
    return read_table(files[f"ground_truth_{relation}.csv"]).set_index("SID").rename_axis("task")


def workbook(files: Files, relation: str, sheet: str) -> pd.DataFrame:
    """Read the numbers on one sheet of the authors' workbook, by row and column letter."""
    with ZipFile(files[f"ground_truth_{relation}.xlsx"]) as archive:
        text = archive.read(f"xl/worksheets/sheet{SHEETS[sheet]}.xml").decode()
    cells = pd.DataFrame(NUMBER_CELL.findall(text), columns=["column", "row", "value"])
    return cells.astype({"row": int}).pivot(index="row", columns="column", values="value")


def workbook_split(files: Files, relation: str) -> pd.Series:
    """Return which sheet of the workbook each sentence is on."""
    tasks = {part: workbook(files, relation, part)["A"] for part in SHEETS}
    parts = [by_task(found.to_numpy(), part, "split") for part, found in tasks.items()]
    return pd.concat(parts)
