"""LabelMe: scenes in eight classes, labels for the training part, VGG-16 features for all."""

import numpy as np
import pandas as pd

from crowdwise.datasets.tables import Files, PublishedTables, by_task

PARTS = ("train", "valid", "test")


def parse(files: Files) -> PublishedTables:
    """Parse labels in a matrix of images and workers, -1 for none."""
    names = {part: files[f"filenames_{part}.txt"].read_text().split() for part in PARTS}
    sizes = [len(names[part]) for part in PARTS]
    tasks = np.array([f"{part}_{i:04d}" for part in PARTS for i in range(len(names[part]))])
    truth = np.concatenate([np.loadtxt(files[f"labels_{part}.txt"], dtype=int) for part in PARTS])
    matrix = np.loadtxt(files["answers.txt"], dtype=int)  # (task, worker)
    task, worker = np.nonzero(matrix >= 0)
    labels = {"task": tasks[task], "worker": worker, "label": matrix[task, worker]}
    filename = np.concatenate([names[part] for part in PARTS])
    return PublishedTables(
        pd.DataFrame(labels),
        by_task(tasks, truth, "truth"),
        X=np.concatenate([np.load(files[f"LabelMe_VGG_avg_{part}.npy"]) for part in PARTS]),
        X_tasks=tasks,
        items=pd.DataFrame({"filename": filename}, index=pd.Index(tasks, name="task")),
        split=by_task(tasks, np.repeat(PARTS, sizes), "split"),
        extra={"class_names": class_names(files)},
    )


def class_names(files: Files) -> pd.Series:
    """Return the name of each class."""
    number = np.loadtxt(files["labels_train.txt"], dtype=int)
    words = files["labels_train_names.txt"].read_text().split()
    return pd.Series(words, index=number, name="name").groupby(level=0).first()
