"""Samplers against lists and loops with the same luck."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from crowdwise.embed.balanced_tasks import TaskSampler
from crowdwise.embed.groups import Pool, TupleSampler, distinct, refuse_too_few
from crowdwise.embed.relation_net import EpisodeSampler
from crowdwise.errors import AnnotationError

LABEL = torch.tensor([2, 0, 1, 0, -1, 2, 0, 1, 0, 0, 2, 1])  # task 4 has none
TASKS = torch.tensor([9, 1, 2, 3, 5, 6, 7, 8, 0, 11])  # task 10 stays out


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def pool():
    return Pool.of(TASKS, LABEL, 4)


def of_class(k):
    """The pool's tasks of a class, in the pool's order."""
    return [int(task) for task in TASKS if LABEL[task] == k]


def not_of_class(k):
    return [int(t) for other in range(4) for t in of_class(other) if other != k]


def test_a_pool_lists_tasks_by_class(pool):
    assert pool.order.tolist() == of_class(0) + of_class(1) + of_class(2)
    assert pool.size.tolist() == [5, 3, 2, 0]
    for k in range(3):
        kind = torch.full((5,), k)
        inside = pool.inside(kind[: len(of_class(k))], torch.arange(len(of_class(k))))
        assert inside.tolist() == of_class(k)
        place = torch.arange(len(not_of_class(k)))
        outside = pool.outside(torch.full_like(place, k), place)
        assert outside.tolist() == not_of_class(k)


def slow_distinct(size, luck):
    """Pull balls out of an urn."""
    urn = list(range(size))
    return [urn.pop(int(u * len(urn))) for u in luck]


def test_distinct_numbers_are_balls_from_an_urn():
    size = torch.tensor([3, 5, 9, 4, 7])
    luck = torch.rand(5, 3, generator=seeded(), dtype=torch.float64).tolist()
    expected = [slow_distinct(int(n), u) for n, u in zip(size, luck, strict=True)]
    assert distinct(size, 3, seeded()).tolist() == expected


def test_few_numbers_repeat():
    found = distinct(torch.tensor([2, 5]).repeat(50), 4, seeded())
    assert int(found[::2].max()) == 1
    assert all(len(set(row)) == 4 for row in found[1::2].tolist())
    repeats = distinct(torch.full((200,), 4), 3, seeded(), repeats=True)
    assert any(len(set(row)) < 3 for row in repeats.tolist())


@pytest.mark.parametrize("anchor", [None, 1], ids=["all", "one"])
@pytest.mark.parametrize("repeats", [False, True])
def test_tuples_equal_to_lists_in_the_same_draws(pool, anchor, repeats):
    found = TupleSampler(3, anchor, repeats=repeats).draw(pool, 40, seeded())
    generator = seeded()
    chances = [5.0, 3.0, 2.0, 0.0] if anchor is None else [0.0, 3.0, 0.0, 0.0]
    weight = torch.tensor(chances, dtype=torch.float64)
    kind = torch.multinomial(weight, 40, replacement=True, generator=generator).tolist()
    near = torch.rand(40, 2, generator=generator, dtype=torch.float64).tolist()
    far = torch.rand(40, 3, generator=generator, dtype=torch.float64).tolist()
    for row, k, one, other in zip(found.tolist(), kind, near, far, strict=True):
        own, rest = of_class(k), not_of_class(k)
        if repeats:
            places = [int(u * len(own)) for u in one], [int(u * len(rest)) for u in other]
        else:
            places = slow_distinct(len(own), one), slow_distinct(len(rest), other)
        assert row == [own[i] for i in places[0]] + [rest[i] for i in places[1]]


def test_every_tuple_is_drawn_as_often():
    label = torch.tensor([0, 0, 0, 1, 1, 1])
    pool = Pool.of(torch.arange(6), label, 2)
    found = TupleSampler(2, 1).draw(pool, 36_000, seeded())
    rows, counts = np.unique(found.numpy(), axis=0, return_counts=True)
    assert len(rows) == 6 * 6  # ordered pairs of positives, ordered pairs of negatives
    assert_allclose(counts, 1000, atol=5 * np.sqrt(1000))


def test_classes_of_one_task_do_not_anchor():
    label = torch.tensor([0, 1, 1, 2, 2, 2])
    pool = Pool.of(torch.arange(6), label, 3)
    found = TupleSampler(1).draw(pool, 300, seeded())
    assert set(label[found[:, 0]].tolist()) == {1, 2}
    assert (found[:, 0] != found[:, 1]).all()
    assert not TupleSampler(1, 0).allows(pool)
    with pytest.raises(AnnotationError, match="no pair"):
        refuse_too_few(pool, TupleSampler(1, 0))


def test_one_class_is_refused():
    pool = Pool.of(torch.arange(3), torch.zeros(3, dtype=torch.long), 2)
    for sampler in (TupleSampler(1), TaskSampler(), EpisodeSampler(2)):
        assert not sampler.allows(pool)
        with pytest.raises(AnnotationError, match="one class"):
            refuse_too_few(pool, sampler)


def test_tasks_come_from_all_classes_alike():
    label = torch.cat([torch.zeros(900), torch.ones(100)]).long()
    pool = Pool.of(torch.arange(1000), label, 2)
    found = TaskSampler().draw(pool, 60, seeded())[:, 0]
    assert len(set(found.tolist())) == len(found)
    share = label[found].double().mean()
    assert 0.35 < share < 0.65
    luck = torch.rand(60, 1, generator=seeded(), dtype=torch.float64)[:, 0].tolist()
    expected = {int(u * 900) if i % 2 == 0 else 900 + int(u * 100) for i, u in enumerate(luck)}
    assert_array_equal(found, sorted(expected))


def test_episodes_have_supports_and_queries_of_every_class(pool):
    found = EpisodeSampler(3).draw(pool, 30, seeded())
    luck = torch.rand(90, 3, generator=seeded(), dtype=torch.float64).reshape(30, 3, 3).tolist()
    for episode, chance in zip(found.tolist(), luck, strict=True):
        for k in range(3):
            own = of_class(k)
            if len(own) >= 3:
                expected = [own[i] for i in slow_distinct(len(own), chance[k])]
            else:
                expected = [own[int(u * len(own))] for u in chance[k]]
            assert episode[k] == expected
