"""Places of tasks and workers."""

import numpy as np
import pandas as pd
import pytest

from crowdwise.annotations import Annotations
from crowdwise.errors import ParameterError
from crowdwise.report.facts import maps as module
from crowdwise.report.facts.maps import (
    align_rows,
    fan_out,
    project,
    standardize,
    task_map,
    worker_map,
)


def test_points_of_two_clusters_stay_apart(crowd, posterior):
    data, truth = crowd
    rng = np.random.RandomState(0)
    X = rng.standard_normal((160, 12)) + 6 * (truth == "dog").to_numpy()[:, None]
    found = task_map(data, posterior, X=X)
    dog = (truth[found.name] == "dog").to_numpy()
    assert found.source == "the features"
    low, high = sorted([found.x[dog], found.x[~dog]], key=np.mean)
    assert low.max() < high.min()
    assert found.shares[0] > found.shares[1] > 0
    assert 0 <= found.x.min() < found.x.max() <= 1
    assert 0 <= found.y.min() < found.y.max() <= 1


def test_an_embedding_goes_before_features(crowd, posterior):
    places = np.column_stack([np.arange(160.0), np.zeros(160)])
    found = task_map(crowd[0], posterior, X=np.ones((160, 2)), embedding=places)
    assert found.source == "the embedding"
    assert abs(np.corrcoef(found.x, np.arange(160))[0, 1]) == pytest.approx(1)


def test_without_features_tasks_lie_by_their_labels(crowd, posterior):
    found = task_map(crowd[0], posterior)
    assert "labels" in found.source
    assert found.group.tolist() == [
        posterior[crowd[0].tasks.tolist().index(name)].argmax() for name in found.name
    ]


def test_a_frame_is_found_by_task_and_the_rest_is_left_out(crowd, posterior):
    data, _ = crowd
    frame = pd.DataFrame({"a": [1.0, np.nan, 3.0]}, index=["clip 7", "clip 8", "clip 9"])
    rows, own = align_rows(frame, data, "X")
    assert rows[:, 0].tolist() == [1, 3]
    assert data.tasks[own].tolist() == ["clip 7", "clip 9"]
    assert task_map(data, posterior, X=frame) is None  # two points are no map


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (np.ones((3, 2)), "3 rows for 160 tasks"),
        (np.ones(160), "1 dimensions"),
        (pd.DataFrame({"a": [1.0]}, index=["nobody"]), "describes none of the tasks"),
    ],
)
def test_features_that_do_not_fit_are_refused(crowd, posterior, table, words):
    with pytest.raises(ParameterError, match=words):
        task_map(crowd[0], posterior, X=table)


def test_columns_are_put_on_one_scale():
    rows = np.array([[1.0, 5.0, 1000.0], [3.0, 5.0, 3000.0]])
    assert standardize(rows).tolist() == [[-1, 0, -1], [1, 0, 1]]


def test_points_at_one_place_fan_out():
    steps = fan_out(np.array([[0.5, 0.5], [0.5, 0.5], [0.1, 0.9], [0.5, 0.5]]))
    assert steps[0].tolist() == steps[2].tolist() == [0, 0]
    far = np.hypot(*steps.T)
    assert far[1] == pytest.approx(module.STEP)
    assert far[3] == pytest.approx(module.STEP * np.sqrt(2))
    x, y, _ = project(np.zeros((50, 2)), np.arange(50))
    assert len(set(zip(x.tolist(), y.tolist(), strict=True))) == 50


def test_workers_who_err_alike_lie_together(crowd, posterior):
    data, _ = crowd
    found = worker_map(data, posterior, np.arange(6), np.linspace(0.9, 0.1, 6))
    place = dict(zip(found.name, zip(found.x, found.y, strict=True), strict=True))

    def apart(one, other):
        return np.hypot(*np.subtract(place[one], place[other]))

    assert apart("ann", "dan") < apart("ann", "lazy")
    assert found.value.tolist() == pytest.approx(np.linspace(0.9, 0.1, 6))


def test_two_workers_are_no_map():
    data = Annotations.from_codes([0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 1])
    assert worker_map(data, np.eye(2), np.arange(2), np.ones(2)) is None


def test_many_points_are_sampled_which_is_reported(crowd, posterior, monkeypatch):
    monkeypatch.setattr(module, "MOST_POINTS", 20)
    found = task_map(crowd[0], posterior)
    assert len(found.name) == len(set(found.name)) == 20
    assert found.note.startswith("20 of ")
