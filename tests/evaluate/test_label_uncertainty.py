import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from crowdwise.aggregate import DawidSkene, MajorityVote
from crowdwise.errors import AnnotationError, ParameterError
from crowdwise.evaluate import uncertainty, worker_quality
from crowdwise.evaluate.label_uncertainty import assess_labels
from crowdwise.simulate import confused_crowd

GOOD = [[0.9, 0.1], [0.25, 0.75]]
POOR = [[0.6, 0.4], [0.4, 0.6]]


@pytest.fixture(scope="module")
def crowd():
    return confused_crowd(
        np.array([GOOD] * 5 + [POOR] * 2), 500, 5, prior=[0.7, 0.3], random_state=1
    )


@pytest.fixture(scope="module")
def found(crowd):
    return uncertainty(crowd.annotations, DawidSkene(), confusion=True)


def holds(table, truth):
    return ((table["low"] <= truth) & (truth <= table["high"])).mean()


def test_intervals_hold_what_is_true(crowd, found):
    right = np.mean(found_labels(crowd) == crowd.truth)
    assert found.accuracy.low <= right <= found.accuracy.high
    assert found.accuracy.n_tasks == 500
    assert holds(found.shares, [0.7, 0.3]) == 1.0
    assert holds(found.confusion, np.array([GOOD] * 5 + [POOR] * 2).reshape(-1)) > 0.75
    true = np.array([0.7 * m[0][0] + 0.3 * m[1][1] for m in [GOOD] * 5 + [POOR] * 2])
    assert holds(found.workers, true) > 0.8


def found_labels(crowd):
    return DawidSkene().fit(crowd.annotations).posterior_.argmax(axis=1)


def test_values_lie_between_their_bounds(crowd, found):
    for table in (found.shares, found.workers, found.confusion):
        assert (table["low"] <= table["value"]).all()
        assert (table["value"] <= table["high"]).all()
    model = DawidSkene().fit(crowd.annotations)
    assert_allclose(found.accuracy.value, model.posterior_.max(axis=1).mean())
    assert_allclose(found.shares["value"], model.posterior_.mean(axis=0))


def test_entries_go_by_worker_truth_and_label(found):
    assert found.confusion.index.names == ["worker", "truth", "label"]
    assert found.confusion.loc[(0, 0, 0), "value"] > 0.8
    assert found.confusion.loc[(0, 1, 0), "value"] < 0.4


def test_workers_are_those_of_worker_quality(crowd, found):
    model = DawidSkene().fit(crowd.annotations)
    quality = worker_quality(crowd.annotations, model)
    for own, theirs in (("value", ""), ("low", "_low"), ("high", "_high")):
        assert_allclose(found.workers[own], quality[f"accuracy{theirs}"], atol=1e-9)


def test_confusion_only_if_asked_for(crowd):
    assert uncertainty(crowd.annotations, MajorityVote()).confusion is None


def test_known_truths_narrow_the_interval(crowd):
    gold = pd.Series(crowd.truth[:250], index=crowd.annotations.tasks[:250])
    without, given = (uncertainty(crowd.annotations, DawidSkene(), g) for g in (None, gold))
    width = [one.accuracy.high - one.accuracy.low for one in (without, given)]
    assert width[1] < 0.9 * width[0]


def test_more_confidence_is_wider_and_one_seed_gives_one_result(crowd):
    wide, narrow, again = (
        uncertainty(crowd.annotations, MajorityVote(), confidence=c).accuracy
        for c in (0.99, 0.5, 0.5)
    )
    assert wide.high - wide.low > narrow.high - narrow.low
    assert narrow == again


def test_labels_of_many_tasks_are_judged_by_a_sample(crowd, monkeypatch):
    posterior = DawidSkene().fit(crowd.annotations).posterior_
    whole = assess_labels(crowd.annotations, posterior).accuracy
    monkeypatch.setattr("crowdwise.evaluate.label_uncertainty.ENOUGH", 500)
    some = assess_labels(crowd.annotations, posterior).accuracy
    assert some.value == whole.value
    assert some.n_tasks == 500
    assert some.high - some.low > whole.high - whole.low


def test_mistakes_show_in_the_figures(crowd):
    with pytest.raises(AnnotationError, match="no annotations"):
        uncertainty(crowd.annotations.filter(np.zeros(2500, dtype=bool)))
    with pytest.raises(ParameterError, match="confidence=2"):
        uncertainty([[0, 1], [1, 1]], confidence=2)


def test_too_many_matrices_are_refused(monkeypatch):
    monkeypatch.setattr("crowdwise.evaluate.label_uncertainty.MOST_CELLS", 100)
    with pytest.raises(ParameterError, match="8 entries"):
        uncertainty([[0, 1], [1, 1]], confusion=True)
