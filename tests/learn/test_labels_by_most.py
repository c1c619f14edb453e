"""Two ways through the labels of personal classifiers give the same loss and slope."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array

from crowdwise.learn.personal_classifier import Labeled, LabeledByMost, collect_labels
from crowdwise.simulate import label_by_crowd


@pytest.fixture
def crowd():
    rng = np.random.default_rng(0)
    truth = rng.choice(3, size=30, p=[0.6, 0.3, 0.1])
    confusion = rng.dirichlet(np.ones(3), (5, 3))
    votes = label_by_crowd(truth, confusion, 4, random_state=0)
    gold = np.where(np.arange(30) % 4 == 0, truth, -1)
    return rng.normal(size=(30, 4)), votes, gold, rng.normal(size=(6, 4, 3))


@pytest.mark.parametrize("kind", [np.asarray, csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("known", [True, False], ids=["gold", "no gold"])
def test_both_ways_agree(crowd, kind, known):
    design, votes, gold, weights = crowd
    given = kind(design), votes, gold if known else None
    value, slope = Labeled.of(*given).loss(weights)
    other, other_slope = LabeledByMost.of(*given).loss(weights)
    assert_allclose(other, value, rtol=1e-12)
    assert_allclose(other_slope, slope, atol=1e-12)


def test_the_form_follows_how_much_workers_label(crowd):
    design, votes, _, _ = crowd
    assert isinstance(collect_labels(design, votes, None), LabeledByMost)
    few = votes.filter(np.arange(votes.n_annotations) % 3 == 0)
    assert isinstance(collect_labels(design, few, None), Labeled)
