"""NeuCrowd's published sets: features, and how many of seven workers said yes."""

import numpy as np
import pandas as pd

from crowdwise.datasets.tables import Files, PublishedTables, by_task
from crowdwise.typing import Array, Ints

WORKERS = 7


def hotel(files: Files) -> PublishedTables:
    """Train, valid and test; the label column is the majority vote, in every part."""
    return _tables(files, ("train", "valid", "test"), truth="mv_fluency")


def synthetic(files: Files) -> PublishedTables:
    """Parse the validation part of Syn1, whose truth is known because it was drawn."""
    return _tables(files, ("valid",), truth="ground_truth")


def _tables(files: Files, parts: tuple[str, ...], truth: str) -> PublishedTables:
    frames = {part: pd.read_csv(files[f"{part}.csv"], skipinitialspace=True) for part in parts}
    table = pd.concat(frames.values())
    tasks = np.array([f"{part}-{i:04d}" for part in parts for i in range(len(frames[part]))])
    split = np.repeat(list(frames), [len(frame) for frame in frames.values()])
    votes = table["votes"].to_numpy().astype(int)
    known = {"mv_fluency", "label", "ground_truth", "votes"}
    X = table[[column for column in table if column not in known]].to_numpy(np.float32)
    return PublishedTables(
        deal(tasks, votes, WORKERS),
        by_task(tasks, table[truth].to_numpy(), "truth"),
        X=X,
        X_tasks=tasks,
        split=by_task(tasks, split, "split"),
    )


def deal(tasks: Array, n_positive: Ints, n_workers: int) -> pd.DataFrame:
    """Deal each task's positive labels to slots at random, but reproducibly."""
    ordered = (np.arange(n_workers) < n_positive[:, None]).astype(int)
    dealt = np.random.default_rng(0).permuted(ordered, axis=1)
    slots = [f"v{k + 1}" for k in range(n_workers)]
    return pd.DataFrame(
        {
            "task": np.repeat(tasks, n_workers),
            "worker": np.tile(slots, len(tasks)),
            "label": dealt.reshape(-1),
        }
    )
