"""Simulated sets by name and custom ones, in the form of loaded ones."""

import re
from pathlib import Path

import numpy as np
import pytest

from crowdwise import datasets
from crowdwise.errors import ParameterError
from crowdwise.simulate import SETS, OneCoinWorker, Spammer, make, simulate_dataset
from crowdwise.simulate.neucrowd import KAPPA
from crowdwise.simulate.neucrowd import WORKERS as WORKERS_OF
from crowdwise.simulate.stand_ins import STAND_INS

WORKERS = [*4 * [OneCoinWorker(0.8)], Spammer()]


def test_has_every_set():
    assert list(SETS) == ["classroom", "syn1", "syn2", "oral", "class", "pre_k", "oral_neucrowd"]


@pytest.mark.parametrize("name", ["classroom", "class"])
def test_makes_one_by_name(name):
    made = make(name, random_state=3)
    assert isinstance(made, datasets.Crowd)
    assert made.annotations.equals(SETS[name](random_state=3).annotations)
    assert made.workers["accuracy"].between(0, 1).all()


def test_makes_one_to_order():
    made = simulate_dataset(
        WORKERS, 800, n_classes=3, prior=[0.6, 0.3, 0.1], per_task=3, n_features=4, random_state=0
    )
    assert made.annotations.shape == (800, 5)
    assert made.X.shape == (800, 4)
    assert made.split is None
    assert made.truth.value_counts(normalize=True)[2] == pytest.approx(0.1, abs=0.03)
    assert made.annotations.tasks[6] == "task-007"
    assert made.workers["accuracy"].tolist() == pytest.approx([0.8] * 4 + [1 / 3], abs=1e-4)
    assert made.extra["simulated"].difficulty.tolist() == [1] * 800
    assert made.info.counts["features"] == 4


def test_options_go_through():
    easy = simulate_dataset(WORKERS, 500, separation=6.0, random_state=0)
    hard = simulate_dataset(WORKERS, 500, separation=6.0, difficulty=1.0, random_state=0)
    assert np.log(hard.extra["simulated"].difficulty).std() == pytest.approx(1.0)
    assert easy.truth.tolist() == hard.truth.tolist()
    near = simulate_dataset(WORKERS, 500, separation=1.0, random_state=0)
    near_apart, far_apart = (
        np.linalg.norm(np.diff([made.X[made.truth == k].mean(axis=0) for k in (0, 1)], axis=0))
        for made in (near, easy)
    )
    assert far_apart > 3 * near_apart
    gone = simulate_dataset(WORKERS, 500, abstention=0.5, random_state=0)
    assert gone.annotations.n_annotations < 0.6 * easy.annotations.n_annotations


def test_the_docs_have_the_right_numbers():
    page = Path(__file__).parents[2] / "docs" / "simulating.md"
    rows = re.findall(r"^\| `(\w+)` \|[^|]*\|(.*)\|$", page.read_text(), flags=re.M)
    shown = {name: [cell.strip() for cell in cells.split("|")] for name, cells in rows}
    assert list(shown) == [
        *("syn1", "syn2", "oral", "class", "pre_k", "oral_neucrowd"),
        "classroom",
    ]
    for name, about in STAND_INS.items():
        n_tasks, n_features, n_workers, kappa = shown[name]
        assert n_tasks == f"{sum(about.sizes.values()):,}"
        assert n_features == f"{about.n_features:,}" + " (assumed)" * bool(about.assumed)
        assert n_workers == str(about.n_workers)
        assert kappa.startswith(f"{about.kappa:.2f}")
    for name, kappa in KAPPA.items():
        expected = ["1,500", "1,200", str(WORKERS_OF[name]), f"varies; published {kappa}"]
        assert shown[name] == expected
    counts = make("classroom", random_state=0).info.counts
    assert shown["classroom"][0] == str(counts["tasks"])
    assert shown["classroom"][2] == str(counts["workers"])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: make("syn9"), "classroom, syn1"),
        (lambda: simulate_dataset(WORKERS, 0), "n_tasks=0"),
        (lambda: simulate_dataset(WORKERS, 9, n_classes=3, prior=[0.5, 0.5]), "3 numbers"),
    ],
)
def test_what_makes_no_sense_is_refused(call, message):
    with pytest.raises(ParameterError, match=message):
        call()
