"""Models to draw, and a check that no plot touches pyplot."""

import sys
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest

from crowdwise.aggregate import DawidSkene
from crowdwise.simulate import confused_crowd

mpl.use("Agg")

# Lopsided on purpose: a symmetric matrix would hide swapped truth and label axes.
CONFUSION = np.array(
    [
        [[0.9, 0.1, 0.0], [0.3, 0.6, 0.1], [0.0, 0.2, 0.8]],
        [[0.6, 0.3, 0.1], [0.1, 0.9, 0.0], [0.3, 0.0, 0.7]],
        [[0.8, 0.0, 0.2], [0.0, 0.7, 0.3], [0.1, 0.0, 0.9]],
        [[0.4, 0.3, 0.3], [0.4, 0.3, 0.3], [0.4, 0.3, 0.3]],
    ]
)


@pytest.fixture(scope="package")
def crowd():
    """Annotations by ann (few), bob, cy and di (most), and the truths by task."""
    drawn = confused_crowd(
        CONFUSION, 200, 3, prior=[0.5, 0.3, 0.2], activity=[1, 2, 3, 4], random_state=0
    )
    classes = np.array(["cat", "dog", "hen"], dtype=object)
    workers = np.array(["ann", "bob", "cy", "di"], dtype=object)
    votes = replace(drawn.annotations, classes=classes, workers=workers)
    return votes, dict(zip(votes.tasks.tolist(), classes[drawn.truth], strict=True))


@pytest.fixture(scope="package")
def model(crowd):
    return DawidSkene().fit(crowd[0])


@pytest.fixture(autouse=True)
def pyplot_is_left_alone():
    yield
    pyplot = sys.modules.get("matplotlib.pyplot")
    assert pyplot is None or not pyplot.get_fignums()
