"""What is recorded of BayesBag holds what is promised of the default."""

import json
from pathlib import Path

import pytest

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"


@pytest.fixture(scope="module")
def found():
    """Metric, then method, then set."""
    table = {}
    for line in json.loads((RESULTS / "calibration.json").read_text())["summary"]:
        by_set = table.setdefault(line["metric"], {}).setdefault(line["row"], {})
        by_set[line["column"]] = line["mean"]
    return table


def mean(by_set):
    assert len(by_set) == 20
    return sum(by_set.values()) / 20


def test_as_accurate_as_the_best_on_average_and_on_every_set(found):
    accuracy = found["accuracy"]
    assert mean(accuracy["BayesBag"]) >= 0.858
    for other in ("IBCC", "DawidSkene", "EBCC", "MajorityVote"):
        assert mean(accuracy["BayesBag"]) > mean(accuracy[other])
    for name, ours in accuracy["BayesBag"].items():
        assert ours >= max(accuracy["IBCC"][name], accuracy["DawidSkene"][name]) - 0.015, name


def test_probabilities_mean_what_they_say(found):
    assert mean(found["log loss"]["BayesBag"]) <= 0.5
    for name, ours in found["log loss"]["BayesBag"].items():
        assert ours < found["log loss"]["IBCC"][name], name
    assert mean(found["ECE"]["BayesBag"]) <= 0.066
    assert mean(found["Brier"]["BayesBag"]) <= 0.22
