"""Small lopsided crowds for the tests of reports."""

import numpy as np
import pandas as pd
import pytest

from crowdwise.aggregate import DawidSkene
from crowdwise.annotations import Annotations
from crowdwise.simulate import confused_crowd

CONFUSION = [
    [[0.90, 0.08, 0.02], [0.20, 0.75, 0.05], [0.05, 0.15, 0.80]],
    [[0.70, 0.10, 0.20], [0.10, 0.85, 0.05], [0.25, 0.05, 0.70]],
    [[0.60, 0.30, 0.10], [0.05, 0.90, 0.05], [0.10, 0.40, 0.50]],
    [[0.85, 0.05, 0.10], [0.30, 0.60, 0.10], [0.02, 0.08, 0.90]],
    [[0.34, 0.33, 0.33], [0.34, 0.33, 0.33], [0.34, 0.33, 0.33]],
    [[1.00, 0.00, 0.00], [1.00, 0.00, 0.00], [0.98, 0.01, 0.01]],
]


@pytest.fixture(scope="session")
def crowd():
    """Six workers of very different kinds, three unequal classes, some labels missing."""
    found = confused_crowd(CONFUSION, 160, 5, prior=[0.6, 0.3, 0.1], random_state=3)
    keep = np.random.RandomState(0).random_sample(found.annotations.n_annotations) < 0.85
    data = found.annotations.filter(keep)
    names = Annotations.from_codes(
        data.task,
        data.worker,
        data.label,
        tasks=[f"clip {i}" for i in range(160)],
        workers=["ann", "bob", "cid", "dan", "random", "lazy"],
        classes=["cat", "dog", "eel"],
        time=np.datetime64("2024-05-01T08:00:00") + np.arange(data.n_annotations) * 7,
    )
    truth = pd.Series(names.classes[found.truth], index=names.tasks)
    return names, truth


@pytest.fixture(scope="session")
def posterior(crowd):
    return DawidSkene().fit(crowd[0]).posterior_


@pytest.fixture(scope="module", autouse=True)
def quick(quick_default):
    """Reports fit the default method again and again."""
