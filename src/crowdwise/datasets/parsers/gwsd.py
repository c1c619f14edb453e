"""Stance on global warming, with workers' answers about themselves."""

import pandas as pd

from crowdwise.datasets.tables import Files, PublishedTables, read_table

LABELS = {"0": "disagrees", "1": "neutral", "2": "agrees"}


def parse(files: Files) -> PublishedTables:
    """Parse labels, sentences, the authors' consensus model, and the workers' attributes."""
    rows = read_table(files["all_responses_updated.tsv"], sep="\t")
    people = read_table(files["worker_attributes.tsv"], sep="\t", index_col=0)
    # A person may have done several batches; the batch id is not the person's id.
    person = people.set_index("unique_id")["mturk_id"]
    table = read_table(files["GWSD.tsv"], sep="\t", index_col=0).set_index("guid")
    table = table.loc[rows["guid"].unique()].rename_axis("task")
    consensus = table[["disagree", "neutral", "agree"]].astype(float)
    held_out = table["in_held_out_test"] == "True"
    return PublishedTables(
        pd.DataFrame(
            {
                "task": rows["guid"],
                "worker": rows["worker_unique_ids"].map(person),
                "label": rows["ratings"].map(LABELS),
            }
        ),
        items=table[["sentence"]].set_axis(["text"], axis=1),
        split=held_out.map({True: "test", False: "train"}).rename("split"),
        workers=people.drop(columns="unique_id").drop_duplicates("mturk_id").set_index("mturk_id"),
        extra={"consensus_model": consensus},
    )
