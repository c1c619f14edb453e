"""A simulated set as a folder of plain files."""

import logging
import os
from pathlib import Path

import numpy as np
import pandas as pd

from crowdwise.datasets.crowd import Crowd
from crowdwise.errors import FileError, explain
from crowdwise.io import write_annotations, write_labels
from crowdwise.io.atomic import replace_file, replace_files
from crowdwise.io.open import list_folder

logger = logging.getLogger("crowdwise.simulate")
NAMES = ("votes.csv", "truth.csv", "features.csv", "features.npz", "workers.csv", "split.csv")


def write_set(
    dataset: Crowd, folder: str | Path, *, npz: bool = False, replace: bool = False
) -> list[Path]:
    """Write a set into a folder; returns the paths of its files.

    ``votes.csv`` has the annotations, ``truth.csv`` a label for every task, ``features.csv`` a
    column for every feature (``features.npz``: the arrays ``X`` and ``ids``), ``workers.csv`` the
    workers' kinds, ``split.csv`` the part of every task. If files of these names, or others that
    would be read with them, exist already, it is an error unless ``replace`` is true: then files
    of these names are replaced and all others kept.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from crowdwise.simulate import classroom
    >>> with TemporaryDirectory() as folder:
    ...     [path.name for path in write_set(classroom(), folder)]
    ['votes.csv', 'truth.csv', 'features.csv', 'workers.csv', 'split.csv']
    """
    home = Path(folder).expanduser()
    old = [home / name for name in NAMES if os.path.lexists(home / name)]
    if not replace and (held := old or _list_others(home)):
        raise FileError(
            explain(
                f"{home} already holds {', '.join(path.name for path in held)}.",
                expected="an empty or a new folder",
                fix="choose another folder, or replace them: replace=True in Python, --force "
                "in a shell",
            )
        )
    make_folder(home)
    with replace_files(home) as beside:
        written = write_files(dataset, beside, npz=npz)
    for path in old:  # leftovers would be taken for parts of the new set
        if path.name not in written:
            path.unlink()
    if old:
        logger.warning("%s: replaced %s", home, ", ".join(path.name for path in old))
    return [home / name for name in written]


def _list_others(folder: Path) -> list[Path]:
    """List files in this folder that would be taken for a part of a set."""
    if not folder.is_dir():
        return []
    votes = folder / "votes.csv"
    return [path for path in list_folder(folder, votes) if path != votes]


def write_files(dataset: Crowd, folder: Path, *, npz: bool) -> list[str]:
    """Write the files of a set; returns their names."""
    tables = collect_tables(dataset)
    write_annotations(folder / "votes.csv", dataset.annotations)
    for name, table in tables.items():
        if name != "features.csv" or not npz:
            write_labels(folder / name, table, digits=None)  # as they were drawn
    if npz:
        write_arrays(folder / "features.npz", dataset)
    names = ["votes.csv", *tables]
    return [name.replace(".csv", ".npz") if npz and "features" in name else name for name in names]


def collect_tables(dataset: Crowd) -> dict[str, pd.DataFrame]:
    """Collect all tables except the annotations, by file name."""
    X = np.asarray(dataset.X)
    names = dataset.extra.get("feature_names") or [f"x_{k}" for k in range(X.shape[1])]
    features = pd.DataFrame(X, columns=names)
    features.insert(0, "task", np.asarray(dataset.X_tasks))
    tables: dict[str, pd.DataFrame | pd.Series | None] = {
        "truth.csv": dataset.truth,
        "features.csv": features,
        "workers.csv": dataset.workers,
        "split.csv": dataset.split,
    }
    if dataset.truth is not None:
        tables["truth.csv"] = dataset.truth.rename("label")
    return {
        name: table if name == "features.csv" else table.reset_index()
        for name, table in tables.items()
        if table is not None
    }


def write_arrays(path: Path, dataset: Crowd) -> None:
    """Write the features as the arrays ``X`` and ``ids``."""
    with replace_file(path, binary=True) as file:
        np.savez_compressed(
            file, X=np.asarray(dataset.X), ids=np.asarray(dataset.X_tasks).astype(str)
        )


def make_folder(folder: Path) -> None:
    """Make a folder and its parents, unless they exist."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(
            explain(
                f"The folder {folder} cannot be created.",
                first=error.strerror or str(error),
                fix="choose another folder",
            )
        ) from error
