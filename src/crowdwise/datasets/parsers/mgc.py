"""Music genres: labels from Mechanical Turk; truth and Marsyas features of all songs."""

import numpy as np
import pandas as pd

from crowdwise.datasets.tables import Files, PublishedTables, by_task, read_table

COLUMNS = {"Input.song": "task", "WorkerID": "worker", "Answer.pred_label": "label"}


def parse(files: Files) -> PublishedTables:
    """Parse three tables; songs are identified by file name."""
    rows = read_table(files["mturk_answers.csv"]).rename(columns=COLUMNS)
    parts = {
        "train": pd.read_csv(files["music_genre_gold.csv"]),
        "test": pd.read_csv(files["music_genre_test.csv"]),
    }
    songs = pd.concat(parts.values())
    tasks = songs["id"].to_numpy()
    split = np.repeat(list(parts), [len(part) for part in parts.values()])
    return PublishedTables(
        rows[["task", "worker", "label"]],
        by_task(tasks, songs["class"].to_numpy(), "truth"),
        X=songs.filter(like="feature").to_numpy(np.float32),
        X_tasks=tasks,
        split=by_task(tasks, split, "split"),
    )
