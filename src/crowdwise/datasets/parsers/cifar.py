"""Human labels of CIFAR-10: counts for the test images, three labels for the training images."""

from pathlib import Path
from pickletools import genops
from zipfile import ZipFile

import numpy as np
import pandas as pd

from crowdwise.datasets.tables import Files, PublishedTables, by_task
from crowdwise.typing import Ints

LONG = 1000  # characters; names and formats are shorter, arrays are longer


def counts(files: Files) -> PublishedTables:
    """CIFAR-10H: how often each class was chosen; one anonymous worker, counts as weights."""
    table = np.load(files["cifar10h-counts.npy"])
    task, label = np.nonzero(table)
    rows = {"task": task, "worker": "crowd", "label": label, "weight": table[task, label]}
    numbers = pd.read_csv(files["human_model_truth_cifar10h.csv"], header=None, usecols=[20])
    truth = numbers[20].to_numpy() - 1  # published as 1 to 10
    return PublishedTables(pd.DataFrame(rows), by_task(np.arange(len(truth)), truth, "truth"))


def slots(files: Files) -> PublishedTables:
    """CIFAR-10N: three labels of each training image, by people without ids."""
    found = arrays_in(files["CIFAR-10_human.pt"])
    labels = np.stack([found[f"random_label{k}"] for k in (1, 2, 3)], axis=1)
    tasks = np.arange(len(labels))
    rows = {
        "task": np.repeat(tasks, 3),
        "worker": np.tile(["v1", "v2", "v3"], len(labels)),
        "label": labels.reshape(-1),
    }
    return PublishedTables(
        pd.DataFrame(rows),
        by_task(tasks, found["clean_label"], "truth"),
        extra={
            "aggregate": by_task(tasks, found["aggre_label"], "aggregate"),
            "worst": by_task(tasks, found["worse_label"], "worst"),
        },
    )


def arrays_in(path: Path) -> dict[str, Ints]:
    """Read the arrays of a PyTorch file from its opcodes; nothing in it is executed.

    Every array is a pickled string of its bytes; its name is the last word with ``_label``
    before it.
    """
    with ZipFile(path) as archive:
        codes = genops(archive.read("archive/data.pkl"))
    words = [str(arg) for code, arg, _ in codes if code.name == "BINUNICODE"]
    found, name = {}, ""
    for word in words:
        if "_label" in word:
            name = word
        elif len(word) > LONG:
            found[name] = np.frombuffer(word.encode("latin1"), dtype="<i8")
    return found
