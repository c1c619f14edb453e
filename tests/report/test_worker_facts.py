"""Workers, their pairs and their times, against plain loops."""

import numpy as np
import pandas as pd
import pytest

from crowdwise.annotations import Annotations
from crowdwise.evaluate import worker_quality
from crowdwise.report.facts import workers as module
from crowdwise.report.facts.pairs import WorkerPair, copies_of, pair_facts, worst_of
from crowdwise.report.facts.workers import (
    as_seconds,
    count_confusions,
    group_medians,
    pace_of,
    time_facts,
    worker_facts,
)


def test_workers_come_from_worker_quality_busiest_first(crowd, posterior):
    data, truth = crowd
    found = worker_facts(data, posterior, truth)
    frame = pd.DataFrame(posterior, index=data.tasks, columns=data.classes)
    quality = worker_quality(data, frame)
    assert (np.diff(found.n_labels) <= 0).all()
    for k, name in enumerate(found.name):
        assert found.accuracy[k] == pytest.approx(quality.loc[name, "accuracy"])
        assert found.low[k] == pytest.approx(quality.loc[name, "accuracy_low"])
        assert found.high[k] == pytest.approx(quality.loc[name, "accuracy_high"])
        assert found.skill[k] == pytest.approx(quality.loc[name, "skill"])
        assert found.flag[k] == quality.loc[name, "flag"]
    total = (quality["accuracy"] * quality["n_labels"]).sum() / quality["n_labels"].sum()
    assert found.mean_accuracy == pytest.approx(total)
    assert found.flags["always the same label"] == 1


def test_checked_accuracy_is_the_share_of_labels_that_equal_the_truth(crowd, posterior):
    data, truth = crowd
    found = worker_facts(data, posterior, truth.iloc[::3])
    rows = data.to_frame()
    rows = rows[rows["task"].isin(truth.index[::3])]
    for k, name in enumerate(found.name):
        own = rows[rows["worker"] == name]
        assert found.n_gold[k] == len(own)
        expected = np.mean([truth[t] == x for t, x in zip(own["task"], own["label"], strict=True)])
        assert found.gold_accuracy[k] == pytest.approx(expected)


def test_confusions_are_expected_counts_by_truth_and_label(crowd, posterior):
    data, _ = crowd
    number = np.array([4, 0, 2])
    expected = np.zeros((3, 3, 3))
    for task, worker, label in zip(data.task, data.worker, data.label, strict=True):
        if worker in number:
            expected[number.tolist().index(worker), :, label] += posterior[task]
    assert count_confusions(data, posterior, number) == pytest.approx(expected)


def test_confusions_stop_where_there_is_no_room(crowd, posterior, monkeypatch):
    monkeypatch.setattr(module, "MOST_CELLS", 2 * 9)
    found = count_confusions(crowd[0], posterior, np.array([4, 0, 2]))
    assert len(found) == 2


def test_too_many_workers_are_cut_which_is_reported(crowd, posterior, monkeypatch):
    monkeypatch.setattr(module, "MOST_WORKERS", 2)
    found = worker_facts(crowd[0], posterior, None)
    assert len(found.name) == 2
    assert found.note.startswith("The 2 busiest of 6 workers")
    assert found.gold_accuracy is None
    assert sum(found.flags.values()) >= 2  # of all workers, not only of those shown


class TestPairs:
    def test_kappa_of_every_pair_matches_a_plain_loop(self, crowd):
        data, _ = crowd
        found = pair_facts(data)
        labels = data.to_dict()
        for i, one in enumerate(found.name):
            for j, other in enumerate(found.name):
                both = [(w[one], w[other]) for w in labels.values() if one in w and other in w]
                if i == j:
                    continue
                assert found.n_shared[i, j] == len(both)
                same = np.mean([a == b for a, b in both])
                chance = sum(
                    np.mean([a == c for a, _ in both]) * np.mean([b == c for _, b in both])
                    for c in data.classes
                )
                if chance < 1:
                    assert found.kappa[i, j] == pytest.approx((same - chance) / (1 - chance))

    def test_those_who_agree_most_come_first_and_the_worst_pairs_are_listed(self, crowd):
        found = pair_facts(crowd[0])
        assert set(found.name[-2:]) == {"random", "lazy"}
        kappas = [pair.kappa for pair in found.worst]
        assert kappas == sorted(kappas)
        assert kappas[0] == pytest.approx(np.nanmin(found.kappa))

    def test_a_worker_with_one_label_counts_among_those_compared(self):
        task, worker = np.tile(np.arange(40), 2), np.repeat([0, 1], 40)
        labels = np.tile([0, 1], 40)
        data = Annotations.from_codes([*task, 0], [*worker, 2], [*labels, 0])
        assert pair_facts(data).note == ""

    def test_no_two_workers_on_a_task(self):
        data = Annotations.from_codes([0, 1, 2], [0, 1, 2], [0, 1, 0])
        assert pair_facts(data) is None

    def test_copies_agree_throughout_where_others_do_not(self):
        told = [
            WorkerPair("a", "b", 30, 1.0, 1.0),
            WorkerPair("a", "c", 30, 0.6, 0.1),
            WorkerPair("b", "c", 30, 0.5, 0.0),
        ]
        assert [(pair.one, pair.other) for pair in copies_of(told)] == [("a", "b")]
        agreeing = [
            WorkerPair("a", "b", 30, 1.0, 1.0),
            *[WorkerPair("c", str(k), 900, 0.999, 1.0) for k in range(9)],
        ]
        assert copies_of(agreeing) == ()  # 30 of 30 is nothing special there
        assert copies_of([WorkerPair("a", "b", 19, 1.0, 1.0), *told[1:]]) == ()


class TestTimes:
    def test_seconds_from_dates_and_from_numbers(self):
        dates = np.array(["2024-01-01T00:00:07", "NaT"], dtype="datetime64[s]")
        seconds, unit = as_seconds(dates)
        assert seconds[0] == 1704067207
        assert np.isnan(seconds[1])
        assert unit == "s"
        assert as_seconds(np.array([1.7e12]))[0].tolist() == [1.7e9]
        assert as_seconds(np.array([1.7e9])) == (pytest.approx([1.7e9]), "s")
        assert as_seconds(np.array([3, 9]))[1] == ""

    def test_medians_match_numpy(self):
        rng = np.random.RandomState(0)
        group, values = rng.randint(0, 5, 60), rng.random_sample(60)
        found = group_medians(group, values, 6)
        for k in range(5):
            assert found[k] == pytest.approx(np.median(values[group == k]))
        assert np.isnan(found[5])

    def test_pace_is_the_median_gap_of_a_worker(self):
        worker = np.array([0, 1, 0, 0, 1, 0])
        seconds = np.array([50.0, 3.0, 10.0, 20.0, 9.0, 13.0])
        found = pace_of(worker, seconds, 3)
        assert found[0] == 7  # gaps of 3, 7 and 30
        assert np.isnan(found[1:]).all()  # one gap is too few

    def test_a_worker_who_tires_is_found(self, posterior):
        n = 80
        truth = np.tile([0, 1, 1], 27)[:n]
        tired = truth.copy()
        tired[n // 2 :: 2] = 1 - tired[n // 2 :: 2]
        labels = np.column_stack([truth, truth, tired])
        order = np.random.RandomState(1).permutation(n)  # rows are not in the order of time
        data = Annotations.from_codes(
            np.repeat(np.arange(n), 3),
            np.tile(np.arange(3), n),
            labels[order].reshape(-1),
            time=np.repeat(order * 60.0, 3) + 1.7e9,
        )
        sure = np.eye(2)[truth[order]]
        found = time_facts(data, sure, np.array([0, 1, 2]))
        assert found.drift.tolist() == [0, 0, -1]
        assert found.early[2] == 1
        assert found.late[2] == 0.5
        assert found.pace.tolist() == [60, 60, 60]
        assert [period.accuracy for period in found.periods[:5]] == [1] * 5
        assert found.periods[-1].accuracy == pytest.approx(5 / 6)
        assert found.first == "2023-11-14 22:13:20"

    def test_halves_that_may_be_alike_are_no_drift(self):
        right = np.ones(20, dtype=int)
        right[[11, 15]] = 0  # 10 of 10, then 8 of 10
        data = Annotations.from_codes(
            np.arange(20), np.zeros(20, dtype=int), right, time=np.arange(20)
        )
        sure = np.eye(2)[np.ones(20, dtype=int)]
        found = time_facts(data, sure, np.array([0]))
        assert (found.early[0], found.late[0]) == (1, 0.8)
        assert found.drift.tolist() == [0]

    def test_hasty_workers_are_far_faster_than_most(self):
        worker = np.repeat([0, 1, 2], 30)
        seconds = np.concatenate([np.arange(30) * 10.0, np.arange(30) * 12.0, np.arange(30) * 2.0])
        data = Annotations.from_codes(np.tile(np.arange(30), 3), worker, worker % 2, time=seconds)
        found = time_facts(data, np.full((30, 2), 0.5), np.arange(3))
        assert found.n_hasty == 1
        assert found.unit == ""

    def test_no_times_no_facts(self, crowd, posterior):
        data = Annotations.from_codes([0, 1], [0, 0], [0, 1])
        assert time_facts(data, np.eye(2), np.array([0])) is None
        same = Annotations.from_codes([0, 1], [0, 0], [0, 1], time=[5.0, 5.0])
        assert time_facts(same, np.eye(2), np.array([0])) is None


def test_of_pairs_that_agree_as_little_the_one_with_more_tasks_comes_first():
    low, thin, good = (
        WorkerPair("a", name, n, 0.5, kappa)
        for name, n, kappa in (("b", 30, 0.1), ("c", 10, 0.1), ("d", 90, 0.8))
    )
    undefined = WorkerPair("a", "e", 50, 1.0, float("nan"))
    assert worst_of([good, thin, undefined, low]) == (low, thin, good)
