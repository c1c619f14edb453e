"""Sets included in or fetched by scikit-learn: features and truth, no crowd."""

import hashlib
from pathlib import Path

import numpy as np
from sklearn.datasets import fetch_openml, load_digits

from crowdwise.datasets.download import cache_folder, filling_cache
from crowdwise.datasets.tables import Files, PublishedTables, by_task
from crowdwise.errors import DownloadError, explain
from crowdwise.typing import Array

PER_CLASS = 3500
# sha256 of the pixels of mnist49
PIXELS = "4ca9f0aeff3d60c2a10fd08e16de190cf73688192b543efefb29d48ca1bd2f83"


def digits(_: Files) -> PublishedTables:
    """Load the digits that are part of scikit-learn."""
    X, y = load_digits(return_X_y=True)
    tasks = np.arange(len(y))
    return PublishedTables(truth=by_task(tasks, y, "truth"), X=X.astype(np.float32), X_tasks=tasks)


def mnist49(_: Files, download: bool) -> PublishedTables:
    """Load the first fours and nines of MNIST; a task is an index into its training set."""
    path = cache_folder() / "mnist49.npz"
    if not path.exists():
        _keep_mnist49(path, download)
    with np.load(path) as kept:
        X, y, row = kept["X"], kept["y"], kept["row"]
    tasks = np.array([f"mnist-train-{number}" for number in row])
    return PublishedTables(truth=by_task(tasks, y, "truth"), X=X, X_tasks=tasks)


def _keep_mnist49(path: Path, download: bool) -> None:
    """Fetch all of MNIST with scikit-learn, and keep what is needed."""
    if not download:
        raise DownloadError(
            explain("mnist49 is not in the cache, and download=False.", fix="allow the download")
        )
    try:
        pixels, names = fetch_openml(
            "mnist_784", version=1, as_frame=False, return_X_y=True, cache=False
        )
    except (OSError, ValueError) as error:  # URLError is an OSError
        raise DownloadError(
            explain(
                "MNIST could not be fetched from OpenML by scikit-learn.",
                first=str(error),
                fix="check the network and try again",
            )
        ) from error
    X, y, row = select_digits(pixels, names)
    if hashlib.sha256(X.tobytes()).hexdigest() != PIXELS:
        raise DownloadError(
            explain(
                "OpenML sent different pixels than expected; nothing was kept.",
                expected=f"the first {PER_CLASS:,} fours and nines with sha256 {PIXELS}",
                fix="try again later; if it persists, the set has changed there",
            )
        )
    with filling_cache(path) as handle:
        np.savez_compressed(handle, X=X, y=y, row=row)


def select_digits(pixels: Array, names: Array) -> tuple[Array, Array, Array]:
    """Return pixels, digit and row of the first of each in the training set, fours first."""
    train = np.asarray(names[:60_000]).astype(int)
    row = np.concatenate([np.flatnonzero(train == digit)[:PER_CLASS] for digit in (4, 9)])
    return pixels[row].astype(np.uint8), train[row], row
