"""Every kind of worker labels as it says it does."""

import numpy as np
import pytest

from crowdwise.errors import ParameterError
from crowdwise.simulate import (
    Adversary,
    Colluder,
    ConfusedWorker,
    DirichletWorker,
    Drifter,
    ModelWorker,
    OneCoinWorker,
    Spammer,
    one_coin_confusion,
    simulate_crowd,
)

PRIOR = np.array([0.5, 0.3, 0.2])
# Lopsided on purpose: a symmetric matrix would hide swapped truth and label axes.
LOPSIDED = np.array([[0.7, 0.3, 0.0], [0.1, 0.5, 0.4], [0.05, 0.15, 0.8]])
KINDS = [
    OneCoinWorker(0.7),
    OneCoinWorker((0.6, 0.9)),
    ConfusedWorker(LOPSIDED),
    DirichletWorker(0.6, concentration=4.0),
    Spammer(),
    Spammer("one label", label=2),
    Spammer("prior"),
    Adversary(),
    Adversary(0.1),
    Drifter(0.9, 0.5),
]


def counted(crowd):
    """How often each worker gave each label for each truth, by plain loops."""
    table = np.zeros(crowd.confusion.shape)
    votes = crowd.annotations
    for task, worker, label in zip(votes.task, votes.worker, votes.label, strict=True):
        table[worker, crowd.truth[task], label] += 1
    return table


def test_labels_tend_to_the_declared_confusion():
    crowd = simulate_crowd(
        4000, n_classes=3, per_task=len(KINDS), workers=KINDS, prior=PRIOR, random_state=0
    )
    table = counted(crowd)
    total = table.sum(axis=2, keepdims=True)
    error = np.sqrt(crowd.confusion * (1 - crowd.confusion) / total)
    assert np.allclose(crowd.confusion.sum(axis=2), 1)
    assert (np.abs(table / total - crowd.confusion) <= 4.5 * error + 1e-12).all()
    assert crowd.kinds.tolist() == [worker.kind for worker in KINDS]


def declared(worker, prior=PRIOR, seed=0):
    return worker.draw(prior, np.random.RandomState(seed))


def test_a_one_coin_worker_errs_evenly():
    first, last = declared(OneCoinWorker(0.7))
    assert first is last
    assert first == pytest.approx(np.where(np.eye(3), 0.7, 0.15))


def test_a_range_is_drawn_anew_for_every_worker():
    crowd = simulate_crowd(
        10, n_classes=2, per_task=2, workers=200 * [OneCoinWorker((0.6, 0.9))], random_state=0
    )
    accuracy = crowd.confusion[:, 0, 0]
    assert accuracy.min() >= 0.6
    assert accuracy.max() <= 0.9
    assert np.quantile(accuracy, [0.1, 0.9]) == pytest.approx([0.63, 0.87], abs=0.02)


@pytest.mark.parametrize(("concentration", "spread"), [(2.0, 0.283), (50.0, 0.0686)])
def test_a_dirichlet_worker_has_the_mean_and_spread_it_should(concentration, spread):
    worker = DirichletWorker(0.6, concentration=concentration)
    drawn = np.array([declared(worker, seed=seed)[0] for seed in range(600)])
    assert drawn.mean(axis=0) == pytest.approx(np.where(np.eye(3), 0.6, 0.2), abs=0.03)
    # of a Dirichlet: mean (1 - mean) / (concentration + 1)
    assert drawn[:, 1, 1].std() == pytest.approx(spread, rel=0.12)


def test_a_dirichlet_worker_may_be_perfect():
    assert declared(DirichletWorker(1.0))[0] == pytest.approx(np.eye(3))


def test_spammers_ignore_the_truth():
    rows = {"random": [1 / 3] * 3, "one label": [0, 1, 0], "prior": PRIOR}
    for style, row in rows.items():
        assert declared(Spammer(style, label=1))[0] == pytest.approx(np.tile(row, (3, 1)))


def test_an_adversary_is_below_chance():
    assert declared(Adversary())[0].diagonal() == pytest.approx([1 / 6] * 3)
    assert declared(Adversary(0.25))[0].diagonal() == pytest.approx([0.25] * 3)


def test_a_drifter_gets_worse_or_better_on_the_way():
    workers = [Drifter(0.95, 0.55), Drifter(0.5, 0.9), OneCoinWorker(0.7)]
    crowd = simulate_crowd(6000, n_classes=3, per_task=3, workers=workers, random_state=0)
    votes = crowd.annotations
    right = votes.label == crowd.truth[votes.task]
    for worker, ends in enumerate([(0.95, 0.55), (0.5, 0.9), (0.7, 0.7)]):
        own = np.flatnonzero(votes.worker == worker)
        own = own[np.argsort(votes.time[own])]
        for part in range(4):  # the middle of each quarter of its own sequence
            expected = ends[0] + (part + 0.5) / 4 * (ends[1] - ends[0])
            assert right[np.array_split(own, 4)[part]].mean() == pytest.approx(expected, abs=0.04)
    assert crowd.confusion[:, 0, 0] == pytest.approx([0.75, 0.7, 0.7])


@pytest.fixture(scope="module")
def crowd():
    workers = [
        ConfusedWorker(LOPSIDED),
        Colluder(0.4, leader=0, copying=0.8),
        Colluder(0.4, leader=0, copying=0.8),
        OneCoinWorker(0.7),
    ]
    return simulate_crowd(6000, n_classes=3, per_task=3, workers=workers, random_state=0)


class TestColluders:
    def agreement(self, crowd, one, other):
        matrix = crowd.annotations.to_snorkel()
        both = (matrix[:, one] >= 0) & (matrix[:, other] >= 0)
        return (matrix[both, one] == matrix[both, other]).mean()

    def test_agree_with_the_leader_as_often_as_they_copy(self, crowd):
        own = np.where(np.eye(3), 0.4, 0.3)
        similar = (LOPSIDED * own).sum(axis=1).mean()  # of two who label on their own
        assert self.agreement(crowd, 0, 1) == pytest.approx(0.8 + 0.2 * similar, abs=0.02)
        alone = (LOPSIDED * np.where(np.eye(3), 0.7, 0.15)).sum(axis=1).mean()
        assert self.agreement(crowd, 0, 3) == pytest.approx(alone, abs=0.03)

    def test_agree_with_each_other_where_the_leader_is_absent(self, crowd):
        matrix = crowd.annotations.to_snorkel()
        absent = (matrix[:, 0] < 0) & (matrix[:, 1] >= 0) & (matrix[:, 2] >= 0)
        own = np.where(np.eye(3), 0.4, 0.3)
        one_copies = (LOPSIDED * own).sum(axis=1).mean()
        none_copies = (own * own).sum(axis=1).mean()
        expected = 0.64 + 0.32 * one_copies + 0.04 * none_copies
        assert absent.sum() > 1000
        assert (matrix[absent, 1] == matrix[absent, 2]).mean() == pytest.approx(expected, abs=0.03)

    def test_declare_what_comes_out(self, crowd):
        expected = 0.8 * LOPSIDED + 0.2 * np.where(np.eye(3), 0.4, 0.3)
        assert crowd.confusion[1] == pytest.approx(expected)
        table = counted(crowd)
        assert table[1] / table[1].sum(axis=1, keepdims=True) == pytest.approx(expected, abs=0.03)

    def test_leave_the_leader_alone(self, crowd):
        table = counted(crowd)
        assert table[0] / table[0].sum(axis=1, keepdims=True) == pytest.approx(LOPSIDED, abs=0.03)


class TestModels:
    TRUTH = np.random.RandomState(0).choice(3, size=3000, p=PRIOR)
    PROBA = np.random.RandomState(1).dirichlet([1, 2, 3], size=3000)

    def crowd(self, *others, per_task=1, **options):
        workers = [ModelWorker(self.PROBA, self.TRUTH), *others]
        settings = {"workers": workers, "truth": self.TRUTH, "random_state": 0, **options}
        return simulate_crowd(n_classes=3, per_task=per_task, **settings)

    def test_labels_follow_the_probabilities_of_each_task(self):
        crowd = self.crowd(difficulty=np.full(3000, 9.0))  # which does not matter
        given = self.PROBA[np.arange(3000), crowd.annotations.label]
        # P of the label drawn, on average: the sum of squares, and not 1 / 3
        assert given.mean() == pytest.approx((self.PROBA**2).sum(axis=1).mean(), abs=0.015)

    def test_declare_what_comes_out(self):
        expected = [self.PROBA[k == self.TRUTH].mean(axis=0) for k in range(3)]
        assert self.crowd().confusion[0] == pytest.approx(np.array(expected))
        assert self.crowd().kinds.tolist() == ["model"]

    def test_can_be_copied(self):
        sure = ModelWorker(np.eye(3)[self.TRUTH[::-1]], self.TRUTH)
        workers = [sure, Colluder(0.5, leader=0, copying=1.0)]
        crowd = simulate_crowd(
            n_classes=3, per_task=1, workers=workers, truth=self.TRUTH, random_state=0
        )
        assert crowd.annotations.label.tolist() == self.TRUTH[::-1].tolist()

    def test_a_class_without_tasks_is_uniform(self):
        drawn = ModelWorker([[0.5, 0.25, 0.25]], [0]).draw(PRIOR, np.random.RandomState(0))[0]
        assert drawn == pytest.approx(np.array([[0.5, 0.25, 0.25], [1 / 3] * 3, [1 / 3] * 3]))

    def test_other_tasks_than_its_own_are_refused(self):
        with pytest.raises(ParameterError, match="knows 3,000 tasks"):
            self.crowd(truth=[0, 1, 2])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: OneCoinWorker(1.2), "accuracy=1.2"),
        (lambda: OneCoinWorker((0.9, 0.6)), "low, high"),
        (lambda: OneCoinWorker((0.5, 0.6, 0.7)), "not a probability"),
        (lambda: OneCoinWorker("good"), "not a probability"),
        (lambda: DirichletWorker(0.7, concentration=0.0), "more than 0"),
        (lambda: DirichletWorker(-0.1), "accuracy=-0.1"),
        (lambda: Spammer("rude"), "random, one label, prior"),
        (lambda: Adversary(-1), "accuracy=-1"),
        (lambda: Drifter(2, 0.5), "first=2"),
        (lambda: Drifter(0.5, 2), "last=2"),
        (lambda: Colluder(copying=3), "copying=3"),
        (lambda: declared(Spammer("one label", label=3)), "0 to 2"),
        (lambda: declared(Spammer("one label", label=-1)), "0 to 2"),
        (lambda: declared(Adversary(0.4)), "less than chance, 0.333"),
        (lambda: declared(ConfusedWorker(np.eye(2))), "3 rows of 3"),
        (lambda: declared(ConfusedWorker(np.ones((3, 3)))), "sum to"),
        (lambda: declared(ModelWorker([[0.5, 0.5]], [0])), "3 probabilities for each of 1 tasks"),
        (lambda: declared(ModelWorker([[0.5, 0.5, 0.5]], [0])), "3 probabilities"),
    ],
)
def test_what_makes_no_sense_is_refused(make, message):
    with pytest.raises(ParameterError, match=message):
        make()


def test_one_coin_matrices_are_distributions():
    assert one_coin_confusion([0.7], 1).tolist() == [[[1.0]]]
    assert one_coin_confusion(0.7, 3).shape == (1, 3, 3)
    for accuracy in ([1.2], [0.5, -0.1], [float("nan")]):
        with pytest.raises(ParameterError, match="probabilities"):
            one_coin_confusion(accuracy, 2)
