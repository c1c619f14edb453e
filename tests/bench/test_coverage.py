"""What is recorded of intervals and of the test of independence holds what is promised."""

import json
from pathlib import Path

import pytest

from crowdbench.tables.coverage import simulate
from crowdbench.tables.independence import ALONE, TOGETHER

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
UNREACHED = ("10 classes", "15 % traps", "clique")  # said in the docs


def read(name, metric):
    """Mean and standard error of a metric, by column."""
    lines = json.loads((RESULTS / f"{name}.json").read_text())["summary"]
    return {
        line["column"]: (line["mean"], line["error"]) for line in lines if line["metric"] == metric
    }


def test_workers_intervals_cover_as_often_as_they_say():
    found = read("coverage", "coverage")
    assert len(found) == 19
    for column, (mean, error) in found.items():
        if not column.endswith(UNREACHED):
            assert 0.93 - 2 * error <= mean <= 0.99, column  # wide where few tasks mislead


def test_independent_crowds_are_rarely_called_dependent():
    found = read("independence", "p below 0.05")
    size = [found[column][0] for column in ALONE]
    assert max(size) <= 0.08
    assert sum(size) / len(size) <= 0.05
    assert not any(read("independence", "severe")[column][0] for column in ALONE)


def test_judges_who_err_together_are_found():
    assert read("independence", "severe")["judges of civil comments"][0] == 1.0
    power = read("independence", "p below 0.05")
    for column in TOGETHER:
        if "15 labels" in column and "traps" not in column:
            assert power[column][0] > 0.4, column


@pytest.mark.parametrize("settings", [{}, {"traps": 0.2}, {"clique": 0.5}, {"spammers": 0.5}])
def test_simulated_workers_are_as_accurate_as_they_should_be(settings):
    crowd = simulate(0, n_workers=10, per_task=10, n_classes=3, **settings)
    votes = crowd.annotations
    right = (votes.label == crowd.truth[votes.task]).reshape(-1, 10).mean()
    assert right == pytest.approx(crowd.accuracy.mean(), abs=0.06)
    assert crowd.confusion.sum(axis=2) == pytest.approx(1.0)
    assert crowd.prior.sum() == pytest.approx(1.0)
