"""POPQUORN: how offensive a comment is, from 1 to 5, and who rated it."""

from crowdwise.datasets.tables import Files, PublishedTables, read_table

COLUMNS = {"instance_id": "task", "user_id": "worker", "offensiveness": "label"}
ABOUT = ["gender", "race", "age", "occupation", "education"]


def parse(files: Files) -> PublishedTables:
    """Parse one table; ratings are published as 1.0 to 5.0."""
    rows = read_table(files["raw_data.csv"]).rename(columns=COLUMNS)
    rows["label"] = rows["label"].astype(float).astype(int)
    return PublishedTables(
        rows[["task", "worker", "label"]],
        items=rows.drop_duplicates("task").set_index("task")[["text"]],
        workers=rows.drop_duplicates("worker").set_index("worker")[ABOUT],
    )
