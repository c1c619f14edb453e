from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from crowdwise.aggregate.families import (
    LEAST,
    Families,
    find_families,
    fit_families,
    gain_of,
    group_workers,
    measure_families,
    tail,
)
from crowdwise.aggregate.shared_errors import Fitted, fit_independent
from crowdwise.annotations import Annotations
from crowdwise.inference import MemoryEngine, fingerprint

RIGHT = np.array([0.75, 0.7, 0.65, 0.8, 0.6, 0.7, 0.75, 0.65, 0.7])


def crowd(seed, members=(), copied=0.6, n_tasks=500, hard=0.0, n_classes=3):
    """Nine workers of every task, some of whom often give one answer of theirs."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_classes, size=n_tasks)
    ease = np.exp(-hard * rng.normal(size=n_tasks))[:, None]
    chance = 1 / (1 + np.exp(-ease * np.log(RIGHT / (1 - RIGHT))))
    other = (truth[:, None] + rng.integers(1, n_classes, (n_tasks, 9))) % n_classes
    label = np.where(rng.random((n_tasks, 9)) < chance, truth[:, None], other)
    copies = rng.random((n_tasks, 9)) < copied
    for w in members[1:]:
        label[:, w] = np.where(copies[:, w], label[:, members[0]], label[:, w])
    task, worker = np.indices(label.shape)
    return Annotations.from_codes(task.ravel(), worker.ravel(), label.ravel()), truth


def test_workers_who_copy_one_another_are_a_family():
    votes, _ = crowd(0, (1, 4, 6))
    found = find_families(votes)
    assert len(found) == 1
    assert_array_equal(found.members()[0], [1, 4, 6])
    assert found.p_value < 0.01
    assert (found.strength[[1, 4, 6]] > 0.4).all()
    assert_array_equal(np.delete(found.strength, [1, 4, 6]), 0.0)


@pytest.mark.parametrize("hard", [0.0, 1.0])
def test_workers_who_err_alone_or_all_on_hard_tasks_are_none(hard):
    assert sum(len(find_families(crowd(seed, hard=hard)[0])) for seed in range(8)) <= 1


def test_two_families_are_told_apart():
    votes, _ = crowd(1, (0, 1, 2), 0.8)
    twice, _ = crowd(2, (5, 6, 7), 0.8)
    label = votes.label.reshape(-1, 9).copy()
    own = (twice.label - crowd(2, (5, 6, 7), 0.8)[1][twice.task]) % 3  # errors of another crowd
    truth = crowd(1, (0, 1, 2), 0.8)[1]
    label[:, 3:] = ((own.reshape(-1, 9) + truth[:, None]) % 3)[:, 3:]
    found = find_families(Annotations.from_codes(votes.task, votes.worker, label.ravel()))
    assert sorted(tuple(m) for m in found.members()) == [(0, 1, 2), (5, 6, 7)]


def test_neither_names_nor_the_order_of_rows_matter():
    votes, _ = crowd(0, (1, 4, 6))
    rng = np.random.default_rng(0)
    rows, task, worker = rng.permutation(len(votes.task)), rng.permutation(500), rng.permutation(9)
    other = Annotations.from_codes(
        task[votes.task[rows]], worker[votes.worker[rows]], (votes.label[rows] + 1) % 3
    )
    found, again = (
        measure_families(engine, fingerprint(engine))
        for engine in (MemoryEngine(votes), MemoryEngine(other))
    )
    assert len(found) == 1
    assert_array_equal(found.number, again.number[worker])
    assert_allclose(found.strength, again.strength[worker], rtol=1e-6)


def test_nothing_is_found_where_nothing_can_be():
    votes = Annotations.from_codes(np.arange(40), np.arange(40) % 4, np.arange(40) % 2)
    engine = MemoryEngine(votes)
    found = measure_families(engine, fingerprint(engine))
    assert len(found) == 0
    assert np.isnan(found.p_value)
    assert_array_equal(found.number, np.full(4, -1))


def test_none_are_looked_for_among_very_many_classes():
    votes = crowd(0, (1, 4, 6))[0]
    wide = Annotations.from_codes(votes.task, votes.worker, votes.label, classes=np.arange(106))
    engine = MemoryEngine(wide)
    assert np.isnan(measure_families(engine, fingerprint(engine)).p_value)


def test_worth_counts_pairs_within_a_family():
    families = Families(np.array([0, 0, 1, 1, -1]), np.array([0.5, 0.8, 0.9, 1.0, 0.0]), 0.0)
    task = np.array([0, 0, 0, 0, 0, 1, 1, 2, 2, 4])
    worker = np.array([0, 1, 2, 3, 4, 2, 3, 0, 2, 1])
    worth = families.worth(task, worker, 5)
    five = 25 / (5 + 2 * (0.5 * 0.8 + 0.9 * 1.0))
    assert_allclose(worth, [five, 4 / (2 + 2 * 0.9), 2.0, 0.0, 1.0])
    assert_array_equal(Families.none(5).worth(task, worker, 5), [5, 2, 2, 0, 1])


def test_likelihood_and_strength_against_loops(monkeypatch):
    """One step of EM, written out over truths, answers and who gives the answer."""
    votes, _ = crowd(3, (0, 1), n_tasks=12)
    votes = votes[np.arange(12)]
    kept = votes.worker < 4
    votes = Annotations.from_codes(votes.task[kept], votes.worker[kept], votes.label[kept])
    gold = np.where(np.arange(12) < 3, np.arange(12) % 3, -1)
    rng = np.random.default_rng(0)
    table, prior = rng.dirichlet(np.full(3, 3.0), (4, 3)), np.array([0.5, 0.3, 0.2])
    model = Fitted(np.full((12, 3), 1 / 3), prior, table)
    monkeypatch.setattr("crowdwise.aggregate.families.STEPS", 1)
    found = fit_families(votes, gold, model, np.array([0, 0, -1, -1]))
    answers, label = table.mean(axis=0), votes.label.reshape(12, 4)
    total, copied, posterior = 0.0, np.zeros(2), np.zeros((12, 3))
    for i in range(12):
        chance, copies = np.zeros(3), np.zeros((3, 2))
        for k, a, c in product(range(3), range(3), product((0, 1), repeat=2)):
            if gold[i] >= 0 and k != gold[i]:
                continue
            p = prior[k] * answers[k, a] * table[2, k, label[i, 2]] * table[3, k, label[i, 3]]
            for w in range(2):
                p *= 0.5 * (label[i, w] == a) if c[w] else 0.5 * table[w, k, label[i, w]]
            chance[k] += p
            copies[k] += p * np.array(c)
        total += np.log(chance.sum())
        copied += copies.sum(axis=0) / chance.sum()
        posterior[i] = chance / chance.sum()
    assert_allclose(found.log_likelihood, total)
    assert_allclose(found.posterior, posterior)
    assert_allclose(found.strength, [*((copied + 1) / 14), 0, 0])


def test_strength_is_that_of_the_copies():
    votes, truth = crowd(5, (2, 3, 7), 0.5, n_tasks=3000)
    model = fit_independent(votes, None)
    number = np.where(np.isin(np.arange(9), [2, 3, 7]), 0, -1)
    found = fit_families(votes, None, model, number)
    pairs = np.outer(found.strength, found.strength)
    assert_allclose([pairs[2, 3], pairs[2, 7]], 0.5, atol=0.1)  # who is copied is not known
    assert_allclose(pairs[3, 7], 0.25, atol=0.1)
    right = found.posterior.argmax(axis=1) == truth
    assert right.mean() > (model.posterior.argmax(axis=1) == truth).mean()
    assert (found.strength[number < 0] < LEAST).all()


def test_groups_grow_while_they_gain():
    excess = np.full((5, 5), -1.0)
    for group in ([0, 2, 3], [1, 4]):
        excess[np.ix_(group, group)] = 2.0
    np.fill_diagonal(excess, 0.0)
    variance = np.where(np.eye(5, dtype=bool), 0.0, 4.0)
    first, second = group_workers(excess, variance)
    assert_array_equal(first.members, [0, 2, 3])
    assert_array_equal(second.members, [1, 4])
    assert_allclose([first.gain, second.gain], [6.0**2 / 24, 2.0**2 / 8])
    assert gain_of(-1.0, 1.0) == 0.0


def test_the_tail_is_small_for_a_clear_group():
    chance = np.array([1.0, 2.0, 1.5, 2.5, 1.2, 1.8])
    assert tail(1.5, chance) > 0.4
    assert tail(12.0, chance) < 0.01
    assert tail(3.0, np.full(6, 1.5)) > 0.05  # however alike the simulated ones
