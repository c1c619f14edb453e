import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from crowdwise import Annotations
from crowdwise.inference import HiddenGold
from crowdwise.simulate import confused_crowd, one_coin_confusion


@pytest.fixture(scope="module")
def votes():
    crowd = confused_crowd(one_coin_confusion([0.9, 0.7, 0.6] * 4, 3), 60, 3, random_state=0)
    return crowd.annotations


def test_each_truth_is_hidden_from_one_fit_in_five(votes):
    gold = np.where(np.arange(60) < 33, np.arange(60) % 3, -1)
    hidden = HiddenGold.of(votes, gold)
    assert hidden.seen_by(0) is gold
    seen = np.array([hidden.seen_by(number) for number in range(1, 11)])
    assert_array_equal((seen[:5, :33] < 0).sum(axis=0), 1)
    assert_array_equal(seen[:5], seen[5:])
    assert set((seen[:5, :33] < 0).sum(axis=1)) == {6, 7}
    assert (seen[:, 33:] < 0).all()
    assert_array_equal(seen.max(axis=0)[:33], gold[:33])


def test_only_fits_that_have_not_seen_a_truth_tell_of_its_task(votes):
    gold = np.where(np.arange(60) < 33, 1, -1)
    hidden = HiddenGold.of(votes, gold)
    for number in range(9):
        hidden.add(number, np.full((60, 3), float(number)))
    task, mean = hidden.posteriors()
    assert_array_equal(np.sort(task), np.arange(33))
    fold = np.array(
        [np.flatnonzero([hidden.seen_by(b)[t] < 0 for b in range(1, 6)])[0] for t in task]
    )
    assert_allclose(mean[:, 0], np.where(fold < 3, fold + 3.5, fold + 1))


def test_few_truths_and_those_of_tasks_without_labels_are_never_hidden(votes):
    gold = np.where(np.arange(60) < 19, 1, -1)
    hidden = HiddenGold.of(votes, gold)
    assert hidden.seen_by(1) is gold
    assert not len(hidden.posteriors()[0])
    more = Annotations.from_codes(votes.task, votes.worker, votes.label, tasks=np.arange(61))
    gold = np.where(np.arange(61) < 40, 1, -1)
    gold[60] = 2
    hidden = HiddenGold.of(more, gold)
    assert all(hidden.seen_by(number)[60] == 2 for number in range(1, 6))
