"""Bluebirds: YAML of the plainest kind, ``{worker: {task: true}}``."""

import re

import pandas as pd

from crowdwise.datasets.tables import Files, PublishedTables, by_task

WORKER = re.compile(r"(\d+): \{([^}]*)\}")
LABEL = re.compile(r"(\d+): (true|false)")


def parse(files: Files) -> PublishedTables:
    """Parse the labels of each worker, and the truth."""
    rows = [
        (task, worker, int(label == "true"))
        for worker, labels in WORKER.findall(files["labels.yaml"].read_text())
        for task, label in LABEL.findall(labels)
    ]
    truth = dict(LABEL.findall(files["gt.yaml"].read_text()))
    return PublishedTables(
        pd.DataFrame(rows, columns=["task", "worker", "label"]),
        by_task(list(truth), [int(label == "true") for label in truth.values()], "truth"),
    )
