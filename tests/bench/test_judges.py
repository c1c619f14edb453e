"""What is recorded of panels of judges holds what is promised of them."""

import json
from pathlib import Path

import pytest

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
SIZES = ("no", 20, 50, 100, 400)
LEAST_RIGHT = (0.725, 0.750, 0.756, 0.765, 0.773)
MOST_LOST = (0.53, 0.52, 0.505, 0.50, 0.482)
TARGETS = list(zip(SIZES, LEAST_RIGHT, MOST_LOST, strict=True))


@pytest.fixture(scope="module")
def found():
    """Metric, then method, then column."""
    table = {}
    for line in json.loads((RESULTS / "judges.json").read_text())["summary"]:
        by_column = table.setdefault(line["metric"], {}).setdefault(line["row"], {})
        by_column[line["column"]] = line["mean"]
    return table


@pytest.mark.parametrize(("size", "right", "lost"), TARGETS)
def test_scores_with_any_number_of_gold_labels(found, size, right, lost):
    column = f"civil comments, scores, {size} gold"
    assert found["accuracy"]["JudgePanel"][column] >= right
    assert found["log loss"]["JudgePanel"][column] <= lost


@pytest.mark.parametrize("what", ["scores", "labels"])
def test_level_with_a_regression_or_better_at_every_size(found, what):
    for size in SIZES[1:]:
        column = f"civil comments, {what}, {size} gold"
        ours, theirs = ("JudgePanel", "logistic regression")
        assert found["accuracy"][ours][column] >= found["accuracy"][theirs][column] - 0.002
        assert found["log loss"][ours][column] <= found["log loss"][theirs][column] + 0.002


@pytest.mark.parametrize("what", ["scores", "labels"])
def test_without_gold_never_surer_than_vote_shares_allow(found, what):
    column = f"civil comments, {what}, no gold"
    loss, accuracy = found["log loss"], found["accuracy"]
    assert loss["JudgePanel"][column] <= loss["vote shares"][column]
    assert accuracy["JudgePanel"][column] >= accuracy["vote shares"][column] - 0.01


def test_a_known_share_moves_the_threshold(found):
    column = "civil comments, scores, no gold"
    assert found["accuracy"]["JudgePanel, prior 0.5"][column] >= 0.750
    assert found["log loss"]["JudgePanel, prior 0.5"][column] <= 0.505


def test_estimates_cover_and_are_narrower_than_gold_alone(found):
    coverage, width = found["coverage"]["JudgePanel"], found["relative width"]["JudgePanel"]
    assert len(coverage) == 3
    assert min(coverage.values()) >= 0.93
    assert max(width.values()) <= 0.85


def test_ratings_go_with_those_of_people(found):
    by_row = {row: next(iter(line.values())) for row, line in found["correlation"].items()}
    assert by_row["JudgePanel"] > by_row["mean of standardized scores"] + 0.03


def test_intervals_of_the_effective_number_cover():
    rows = json.loads((RESULTS / "dependence-coverage.json").read_text())["rows"]
    assert len(rows) == 6
    for row in rows:
        assert min(row["coverage 50"], row["coverage 200"]) >= 0.92


def test_estimates_cover_in_simulated_panels():
    rows = json.loads((RESULTS / "estimate-coverage.json").read_text())["rows"]
    assert len(rows) == 16
    each = [row["coverage"] for row in rows]
    assert 0.93 <= sum(each) / len(each) <= 0.97
    assert min(each) >= 0.95 - 3 * (0.05 * 0.95 / rows[0]["repeats"]) ** 0.5
    assert max(row["widest"] for row in rows) <= 1.02


def test_a_million_tasks_take_less_than_half_a_minute_of_the_processor():
    rows = json.loads((RESULTS / "panel-speed.json").read_text())["rows"]
    assert [row["from"] for row in rows] == ["labels", "scores"]
    assert max(row["processor"] for row in rows) < 30
