"""USPS digits: 16 x 16 gray values, the official training and test parts, no workers."""

import numpy as np
from scipy.io import loadmat

from crowdwise.datasets.tables import Files, PublishedTables, by_task


def parse(files: Files) -> PublishedTables:
    """Parse the columns of a Matlab file; label 10 is the digit 0."""
    found = loadmat(files["USPS.mat"])
    parts = {"train": (found["Train_DAT"], found["trainlabels"])}
    parts["test"] = (found["Test_DAT"], found["testlabels"])
    tasks = np.array(
        [f"{name}-{i:04d}" for name, (X, _) in parts.items() for i in range(X.shape[1])]
    )
    split = np.repeat(list(parts), [X.shape[1] for X, _ in parts.values()])
    y = np.concatenate([y[0] for _, y in parts.values()]).astype(int) % 10
    return PublishedTables(
        truth=by_task(tasks, y, "truth"),
        X=np.concatenate([X.T for X, _ in parts.values()]).astype(np.float32),
        X_tasks=tasks,
        split=by_task(tasks, split, "split"),
    )
