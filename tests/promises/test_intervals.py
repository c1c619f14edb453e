"""Promises about intervals: they hold as often as they say."""

import numpy as np
import pytest

from crowdbench.tables.coverage import simulate
from crowdwise.aggregate import BayesBag
from crowdwise.evaluate import worker_quality

FEW_BAGS = BayesBag(n_bags=20)


@pytest.fixture(scope="module", autouse=True)
def quick():
    """Not here: intervals from as many draws as users have."""


def coverage(seeds, **settings):
    """Share of the simulated workers whose interval holds their accuracy."""
    inside = []
    for seed in seeds:
        crowd = simulate(seed, **settings)
        found = worker_quality(crowd.annotations, FEW_BAGS, random_state=seed)
        low, high = found["accuracy_low"], found["accuracy_high"]
        inside += [*((low <= crowd.accuracy) & (crowd.accuracy <= high))]
    return np.mean(inside)


@pytest.mark.parametrize(
    "settings",
    [
        {"n_workers": 80, "per_task": 2},
        {"n_workers": 80, "per_task": 4, "n_classes": 3},
        {"n_workers": 80, "per_task": 5, "traps": 0.05},
        {"n_workers": 80, "per_task": 5, "traps": 0.15},
        {"n_workers": 80, "per_task": 5, "spread": 1.0},
    ],
    ids=["two labels", "three classes", "traps", "many traps", "uneven tasks"],
)
def test_promise_12_worker_intervals_cover_the_truth(settings):
    # 160 workers: the share may be off by two standard errors, 0.035.
    assert 0.93 - 0.035 <= coverage(range(2), **settings) <= 0.97 + 0.035


def test_promise_12_doubt_about_truths_widens_intervals():
    crowd = simulate(0, n_workers=40, per_task=2)
    certain = dict(enumerate(crowd.annotations.classes[crowd.truth]))
    plain, known = (worker_quality(crowd.annotations, FEW_BAGS, gold) for gold in (None, certain))
    width = [(one["accuracy_high"] - one["accuracy_low"]).mean() for one in (plain, known)]
    assert width[0] > 1.3 * width[1]
    assert known["accuracy"].sub(crowd.accuracy).abs().mean() < 0.06
