"""Snow et al. (2008): one table per type of task, with Mechanical Turk ids and gold."""

from csv import QUOTE_NONE

import pandas as pd

from crowdwise.datasets.tables import Files, PublishedTables, read_table, truth_of

COLUMNS = {"!amt_worker_ids": "worker", "orig_id": "task", "response": "label", "gold": "truth"}


LABELS = ["task", "worker", "label"]


def parse(files: Files, file: str) -> PublishedTables:
    """Parse the labels and the gold label of each task."""
    rows = rows_of(files, file)
    return PublishedTables(rows[LABELS], truth_of(rows))


def rte(files: Files, file: str) -> PublishedTables:
    """Parse entailment; the sentence pairs come from the challenge's own table."""
    rows = rows_of(files, file)
    pairs = read_table(files["rte1.tsv"], sep="\t", quoting=QUOTE_NONE).set_index("id")
    pairs = pairs[pairs.index.isin(rows["task"])].rename_axis("task")
    items = pd.DataFrame(
        {
            "text": pairs["text"] + " [SEP] " + pairs["hypothesis"],
            "premise": pairs["text"],
            "hypothesis": pairs["hypothesis"],
            "rte_task": pairs["task"],
        }
    )
    return PublishedTables(rows[LABELS], truth_of(rows), items=items)


def temp(files: Files, file: str) -> PublishedTables:
    """Parse temporal order: the two event words, without the licensed article around them."""
    rows = rows_of(files, file)
    words = read_table(files["temp.standardized.csv"], usecols=["orig_id", "event1", "event2"])
    words = words.drop_duplicates("orig_id").set_index("orig_id").rename_axis("task")
    words = words.apply(lambda column: column.str.replace(r"<[^>]*>", "", regex=True))
    words.insert(0, "text", words["event1"] + " ... " + words["event2"])
    return PublishedTables(rows[LABELS], truth_of(rows), items=words)


def wordsim(files: Files, file: str, variant: str) -> PublishedTables:
    """Parse word similarity; ``binary`` cuts ratings (0-10) and gold (0-4) at the middle."""
    rows = rows_of(files, file)
    pairs = pd.Index(rows["task"].unique(), name="task")
    if variant == "binary":
        rows["label"] = (rows["label"].astype(float) >= 5).astype(int)
        rows["truth"] = (rows["truth"].astype(float) >= 2).astype(int)
    return PublishedTables(rows[LABELS], truth_of(rows), items=pairs.to_frame(name="text"))


def affect(files: Files, variant: str) -> PublishedTables:
    """Parse headlines rated for one feeling, which is the variant."""
    rows = rows_of(files, f"{variant}.standardized.tsv")
    items = read_table(files["affect.tsv"], sep="\t", quoting=QUOTE_NONE)
    items = items.set_axis(["task", "text"], axis=1).set_index("task")
    return PublishedTables(
        rows[LABELS], truth_of(rows), items=items[items.index.isin(rows["task"])]
    )


def rows_of(files: Files, file: str) -> pd.DataFrame:
    """Return the columns task, worker, label and truth."""
    return read_table(files[file], sep="\t").rename(columns=COLUMNS)
