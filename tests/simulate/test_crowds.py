"""Whole crowds: what is missing, what is hard, what a seed promises."""

import numpy as np
import pytest

from crowdwise.errors import ParameterError
from crowdwise.simulate import (
    Drifter,
    OneCoinWorker,
    Spammer,
    confused_crowd,
    label_by_crowd,
    one_coin_confusion,
    simulate_crowd,
)

GOOD = 6 * [OneCoinWorker((0.7, 0.9))]


def rightness(crowd):
    return crowd.annotations.label == crowd.truth[crowd.annotations.task]


class TestShape:
    def test_the_default_crowd_is_like_a_real_one(self):
        crowd = simulate_crowd(400, 40, 3, 4, spammers=0.25, random_state=0)
        votes = crowd.annotations
        assert (votes.n_tasks, votes.n_workers, votes.n_classes) == (400, 40, 3)
        assert (votes.redundancy == 4).all()
        assert (crowd.kinds == "spammer").sum() == 10
        assert crowd.confusion[:10] == pytest.approx(np.full((10, 3, 3), 1 / 3))
        load = np.sort(np.bincount(votes.worker, minlength=40))
        assert load[-4:].sum() > 4 * load[:4].sum()

    def test_every_crowd_knows_its_truth_confusion_kinds_and_difficulty(self):
        confusion = one_coin_confusion([0.9, 0.6], 2)
        for crowd in (
            simulate_crowd(20, 5, random_state=0),
            simulate_crowd(20, n_classes=2, workers=GOOD, random_state=0),
            confused_crowd(confusion, 20, 2, random_state=0),
        ):
            n_workers = crowd.annotations.n_workers
            assert len(crowd.truth) == len(crowd.difficulty) == 20
            assert len(crowd.confusion) == len(crowd.kinds) == n_workers
            assert crowd.behavior.confusion == pytest.approx(crowd.confusion)

    def test_time_is_the_place_in_the_order_of_all(self):
        votes = simulate_crowd(30, n_classes=2, workers=GOOD, random_state=0).annotations
        assert sorted(votes.time.tolist()) == list(range(votes.n_annotations))
        assert label_by_crowd([0, 1], one_coin_confusion([0.9], 2), 1).time is None

    def test_no_worker_labels_a_task_twice(self):
        assert simulate_crowd(300, 12, 3, 6, random_state=0).annotations.n_repeats == 0
        confusion = one_coin_confusion([0.9, 0.8, 0.7], 2)
        uneven = confused_crowd(confusion, 100, 2, activity=[20, 1, 1], random_state=0)
        assert uneven.annotations.n_repeats == 0
        assert (uneven.annotations.redundancy == 2).all()

    def test_truth_can_be_given(self):
        truth = np.array([2, 0, 1, 1])
        crowd = simulate_crowd(n_classes=3, workers=[OneCoinWorker(1.0)], truth=truth)
        assert crowd.annotations.label.tolist() == truth.tolist()


class TestLaws:
    def test_classes_are_as_frequent_as_the_prior_says(self):
        crowd = simulate_crowd(5000, n_classes=3, workers=GOOD, prior=[0.7, 0.2, 0.1])
        assert np.bincount(crowd.truth) / 5000 == pytest.approx([0.7, 0.2, 0.1], abs=0.03)

    def test_a_power_law_makes_few_workers_do_most(self):
        even = simulate_crowd(2000, 30, 2, 1, activity=0.0, random_state=0).annotations
        heavy = simulate_crowd(2000, 30, 2, 1, activity=2.0, random_state=0).annotations
        share = np.sort(np.bincount(heavy.worker, minlength=30))[::-1] / 2000
        rank = (1.0 + np.arange(30)) ** -2
        assert share[:3] == pytest.approx(rank[:3] / rank.sum(), abs=0.04)
        assert np.bincount(even.worker).max() / 2000 < 0.06

    def test_workers_say_how_active_they_are(self):
        workers = [OneCoinWorker(0.8, activity=3.0), OneCoinWorker(0.8)]
        crowd = simulate_crowd(3000, n_classes=2, per_task=1, workers=workers, random_state=0)
        assert (crowd.annotations.worker == 0).mean() == pytest.approx(0.75, abs=0.03)

    def test_difficulty_lowers_accuracy_to_what_glad_says(self):
        difficulty = np.repeat([0.5, 1.0, 2.0, 8.0], 2500)
        crowd = simulate_crowd(
            10_000, n_classes=2, per_task=1, workers=[OneCoinWorker(0.8)],
            difficulty=difficulty, random_state=0,
        )  # fmt: skip
        found = rightness(crowd).reshape(4, -1).mean(axis=1)
        expected = 1 / (1 + 4 ** -(1 / np.array([0.5, 1.0, 2.0, 8.0])))
        assert found == pytest.approx(expected, abs=0.03)
        assert crowd.difficulty is not None
        assert crowd.difficulty.tolist() == difficulty.tolist()

    def test_a_spread_of_difficulty_is_of_its_logarithm(self):
        crowd = simulate_crowd(4000, n_classes=2, workers=GOOD, difficulty=0.7, random_state=0)
        log = np.log(crowd.difficulty)
        assert (log.mean(), log.std()) == (pytest.approx(0, abs=0.04), pytest.approx(0.7, abs=0.03))

    def test_spammers_do_not_mind_difficulty(self):
        crowd = simulate_crowd(
            4000, n_classes=2, per_task=1, workers=[Spammer("prior")], prior=[0.9, 0.1],
            difficulty=np.full(4000, 50.0), random_state=0,
        )  # fmt: skip
        assert (crowd.annotations.label == 0).mean() == pytest.approx(0.9, abs=0.02)

    def test_labels_go_missing_because_of_the_truth(self):
        crowd = simulate_crowd(
            4000, n_classes=3, per_task=6, workers=GOOD, abstention=[0.0, 0.3, 0.8], random_state=0
        )
        given = [crowd.annotations.redundancy[crowd.truth == k].mean() / 6 for k in range(3)]
        assert given == pytest.approx([1.0, 0.7, 0.2], abs=0.02)

    def test_labels_go_missing_because_of_difficulty(self):
        difficulty = np.repeat([0.5, 1.0, 3.0], 1500)
        crowd = simulate_crowd(
            4500, n_classes=2, per_task=6, workers=GOOD, abstention=0.2, difficulty=difficulty,
            random_state=0,
        )  # fmt: skip
        given = crowd.annotations.redundancy.reshape(3, -1).mean(axis=1) / 6
        assert given == pytest.approx([0.8**0.5, 0.8, 0.8**3], abs=0.02)

    def test_drift_goes_along_the_sequence_of_each_worker(self):
        workers = 300 * [Drifter(1.0, 0.0)]
        crowd = simulate_crowd(300, n_classes=2, per_task=3, workers=workers, random_state=0)
        votes, right = crowd.annotations, rightness(crowd)
        for worker in range(300):
            own = np.flatnonzero(votes.worker == worker)
            own = own[np.argsort(votes.time[own])]
            if len(own) > 1:
                assert right[own[0]]
                assert not right[own[-1]]

    def test_drift_counts_only_labels_that_were_given(self):
        workers = [Drifter(1.0, 0.0, abstention=0.5)]
        crowd = simulate_crowd(1000, n_classes=2, per_task=1, workers=workers, random_state=0)
        votes = crowd.annotations
        order = np.argsort(votes.time)
        assert rightness(crowd)[order[0]]
        assert not rightness(crowd)[order[-1]]

    def test_soft_labels_are_surest_of_the_label_and_unbiased(self):
        crowd = simulate_crowd(
            6000, n_classes=3, per_task=1, workers=[OneCoinWorker(0.6)], soft_confidence=0.7,
            random_state=0,
        )  # fmt: skip
        votes = crowd.annotations
        assert votes.soft.sum(axis=1) == pytest.approx(np.ones(6000), abs=1e-6)
        assert (votes.soft.argmax(axis=1) == votes.label).all()
        mean = votes.soft[crowd.truth == 1].mean(axis=0)
        assert mean == pytest.approx([0.2, 0.6, 0.2], abs=0.03)


class TestSeeds:
    @pytest.mark.parametrize("options", [{}, {"workers": GOOD, "difficulty": 0.5}])
    def test_one_seed_one_crowd(self, options):
        one, same, other = (simulate_crowd(60, 6, random_state=s, **options) for s in (3, 3, 4))
        assert one.annotations.equals(same.annotations)
        assert one.truth.tolist() == same.truth.tolist()
        assert not one.annotations.equals(other.annotations)

    def test_a_generator_goes_on(self):
        rng = np.random.RandomState(0)
        one, other = (
            simulate_crowd(60, 6, random_state=rng),
            simulate_crowd(60, 6, random_state=rng),
        )
        assert not one.annotations.equals(other.annotations)

    def test_the_global_generator_is_untouched(self):
        before = np.random.get_state()[1].tolist()  # noqa: NPY002  # it is what we look at
        simulate_crowd(20, 5, random_state=0)
        assert np.random.get_state()[1].tolist() == before  # noqa: NPY002  # the same


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_tasks": 0}, "at least one task"),
        ({"n_classes": 1}, "2 or more"),
        ({"prior": [0.5, 0.4]}, "sum to 1"),
        ({"prior": [1.5, -0.5]}, "sum to 1"),
        ({"prior": [0.2, 0.3, 0.5]}, "2 numbers"),
        ({"truth": [0, 2]}, "from 0 to 1"),
        ({"truth": [0.0, 1.0]}, "float64"),
        ({"difficulty": -0.5}, "spread of 0 or more"),
        ({"difficulty": [1.0, 2.0]}, "does not match 30 tasks"),
        ({"difficulty": np.zeros(30)}, "above 0"),
        ({"abstention": 2.0}, "abstention=2.0"),
        ({"soft_confidence": 0.3}, "0.5 to 1"),
        ({"per_task": 0}, "per_task=0"),
        ({"activity": [1, 2]}, "6 finite numbers"),
        ({"workers": []}, "no workers"),
    ],
)
def test_what_makes_no_sense_is_refused(options, message):
    settings = {"n_tasks": 30, "n_classes": 2, "workers": GOOD, "random_state": 0, **options}
    with pytest.raises(ParameterError, match=message):
        simulate_crowd(**settings)


def test_a_crowd_is_shown_in_a_line():
    crowd = simulate_crowd(20, 5, per_task=3, random_state=0)
    assert repr(crowd) == "<SimulatedCrowd: 60 annotations of 20 tasks by 5 workers, 4 classes>"
