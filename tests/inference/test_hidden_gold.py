import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from crowdwise import Annotations
from crowdwise.inference import HiddenGold, MemoryEngine, fingerprint
from crowdwise.inference.bag_sum import BagSum
from crowdwise.simulate import confused_crowd, one_coin_confusion


@pytest.fixture(scope="module")
def votes():
    crowd = confused_crowd(one_coin_confusion([0.9, 0.7, 0.6] * 4, 3), 60, 3, random_state=0)
    return crowd.annotations


def hide(votes, gold):
    engine = MemoryEngine(votes, gold)
    return engine, HiddenGold.of(engine, fingerprint(engine))


def seen_by(engine, hidden, number):
    """The gold classes that a fit sees, asked for in both ways."""
    (block,) = (engine._load(edges) for edges in engine._cut(0))
    seen = hidden.seen(block, number)
    unseen = hidden.task[hidden.is_hidden(number)]
    assert_array_equal(engine.reweighted(np.ones(engine.n_workers), unseen).gold, seen)
    return seen


def test_each_truth_is_hidden_from_one_fit_in_five(votes):
    gold = np.where(np.arange(60) < 33, np.arange(60) % 3, -1)
    engine, hidden = hide(votes, gold)
    assert_array_equal(hidden.label, gold[hidden.task])
    assert_array_equal(hidden.votes, votes.votes()[hidden.task])
    assert_array_equal(seen_by(engine, hidden, 0), gold)
    seen = np.array([seen_by(engine, hidden, number) for number in range(1, 11)])
    assert_array_equal((seen[:5, :33] < 0).sum(axis=0), 1)
    assert_array_equal(seen[:5], seen[5:])
    assert set((seen[:5, :33] < 0).sum(axis=1)) == {6, 7}
    assert (seen[:, 33:] < 0).all()
    assert_array_equal(seen.max(axis=0)[:33], gold[:33])


def test_only_fits_that_have_not_seen_a_truth_tell_of_its_task(votes):
    gold = np.where(np.arange(60) < 33, 1, -1)
    engine, hidden = hide(votes, gold)
    assert_array_equal(np.sort(hidden.task), np.arange(33))
    found = BagSum(hidden)
    for number in range(1, 9):
        found.add(number, np.full((60, 3), float(number)))
        if number == 3:
            few = found.find_unseen(engine)
    mean = found.find_unseen(engine)
    assert_allclose(
        mean[:, 0],
        np.where(
            (hidden.fold > 0) & (hidden.fold < 4),
            hidden.fold + 2.5,
            np.where(hidden.fold == 0, 5, 4),
        ),
    )
    assert_array_equal(np.isnan(few[:, 0]), (hidden.fold == 0) | (hidden.fold > 3))


def test_few_truths_and_those_of_tasks_without_labels_are_never_hidden(votes):
    gold = np.where(np.arange(60) < 19, 1, -1)
    engine, hidden = hide(votes, gold)
    assert_array_equal(seen_by(engine, hidden, 1), gold)
    assert not len(hidden.task)
    more = Annotations.from_codes(votes.task, votes.worker, votes.label, tasks=np.arange(61))
    gold = np.where(np.arange(61) < 40, 1, -1)
    gold[60] = 2
    engine, hidden = hide(more, gold)
    assert all(seen_by(engine, hidden, number)[60] == 2 for number in range(1, 6))
