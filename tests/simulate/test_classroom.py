"""The simulated classroom: small, named, timed, and worth a demonstration."""

import numpy as np
import pytest

from crowdwise import datasets
from crowdwise.aggregate import DawidSkene, MajorityVote
from crowdwise.simulate import classroom


@pytest.fixture(scope="module")
def lessons():
    return classroom()


def test_is_what_load_gives(lessons):
    assert isinstance(lessons, datasets.Crowd)
    assert lessons.part("train").X.shape == (225, 8)
    assert lessons.truth.index.tolist() == lessons.annotations.tasks.tolist()
    assert lessons.info.license_stated
    assert "is real" in lessons.info.warnings[0]


def test_has_names(lessons):
    votes = lessons.annotations
    assert (votes.tasks[16], votes.workers[-1]) == ("clip-017", "teacher-9")
    assert votes.classes.tolist() == ["engaged", "listening", "off task"]
    assert len(lessons.extra["feature_names"]) == lessons.X.shape[1]
    assert lessons.items.loc["clip-001", "lesson"] == "lesson-01"
    assert lessons.items["lesson"].nunique() == 24


def test_features_spread_as_declared(lessons):
    names, truth = lessons.extra["feature_names"], lessons.truth.to_numpy()
    for name, spread in (("noise_decibels", 5.0), ("wait_seconds", 1.0)):  # rarely at a bound
        engaged = lessons.X[truth == "engaged", names.index(name)]
        assert engaged.std() == pytest.approx(spread, rel=0.15)


def test_is_imbalanced(lessons):
    shares = lessons.truth.value_counts(normalize=True)
    assert shares["engaged"] > 0.5
    assert 0.05 < shares["off task"] < 0.15


def test_times_are_dates_in_the_order_of_labels(lessons):
    time, order = lessons.annotations.time, lessons.extra["simulated"].annotations.time
    assert time.dtype.kind == "M"
    assert (order == time).all()
    assert (np.diff(np.sort(time)) >= np.timedelta64(0)).all()
    assert time.min() >= np.datetime64("2024-09-02T08:00:00")


def test_a_part_keeps_the_times(lessons):
    def times(votes):
        frame = votes.to_frame()
        return {(row.task, row.worker): row.time for row in frame.itertuples()}

    part, whole = times(lessons.part("test").annotations), times(lessons.annotations)
    assert len(part) == 375
    assert part.items() <= whole.items()


def test_teachers_differ(lessons):
    kinds = lessons.workers["kind"].value_counts()
    assert kinds["spammer"] == 2
    right = lessons.annotations.label == lessons.extra["simulated"].truth[lessons.annotations.task]
    by_teacher = [right[lessons.annotations.worker == j].mean() for j in range(9)]
    assert by_teacher[0] > 0.85
    assert by_teacher[7] < 0.45


def test_declared_accuracy_weighs_classes_by_their_share(lessons):
    shares = lessons.truth.value_counts(normalize=True)[list(lessons.annotations.classes)]
    lenient = shares.to_numpy() @ [0.95, 0.48, 0.20]
    assert lessons.workers["accuracy"]["teacher-5"] == pytest.approx(lenient, abs=1e-4)


def test_one_who_tires_gets_worse(lessons):
    votes, truth = lessons.annotations, lessons.extra["simulated"].truth
    own = np.flatnonzero(votes.worker == 5)
    own = own[np.argsort(votes.time[own])]
    right = votes.label[own] == truth[votes.task[own]]
    third = len(own) // 3
    assert right[:third].mean() > right[-third:].mean() + 0.15


def test_weighing_teachers_beats_the_majority(lessons):
    found = {
        method: (method().fit_predict(lessons.annotations) == lessons.truth).mean()
        for method in (MajorityVote, DawidSkene)
    }
    assert found[DawidSkene] > found[MajorityVote] + 0.02


def test_is_the_same_every_time(lessons):
    assert classroom().annotations.equals(lessons.annotations)
    assert not classroom(random_state=1).annotations.equals(lessons.annotations)
