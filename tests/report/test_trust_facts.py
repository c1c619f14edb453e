from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from crowdwise.aggregate import MajorityVote
from crowdwise.evaluate import Estimate, Independence
from crowdwise.report.facts.findings import _on_independence
from crowdwise.report.facts.methods import share_kept
from crowdwise.report.facts.trust import trust_facts
from crowdwise.report.page.figures import reliability


@pytest.fixture(scope="module")
def found(crowd, posterior):
    return trust_facts(crowd[0], posterior, crowd[1], 0)


def test_expected_accuracy_lies_in_its_interval(found, posterior, crowd):
    assert_allclose(found.accuracy.value, posterior[crowd[0].redundancy > 0].max(axis=1).mean())
    assert found.accuracy.low < found.accuracy.value <= found.accuracy.high  # the doubt is below
    assert (found.share_low < found.share_high).all()


def test_bins_count_right_labels(found, crowd, posterior):
    data, truth = crowd
    right = data.classes[posterior.argmax(axis=1)] == truth.to_numpy()
    assert sum(one.n_tasks for one in found.reliability) == 160
    total = sum(one.n_tasks * one.accuracy for one in found.reliability)
    assert_allclose(total, right.sum(), atol=1)
    assert all(one.low <= one.accuracy <= one.high for one in found.reliability)


def test_without_truths_there_are_no_bins(crowd, posterior):
    assert trust_facts(crowd[0], posterior, None, 0).reliability == ()
    assert trust_facts(crowd[0], posterior, pd.Series(dtype=object), 0).reliability == ()


@pytest.mark.parametrize(
    ("p", "worth", "tone", "says"),
    [
        (0.0001, 2.0, "act", "the 5.0 labels of a task are worth 2.0"),
        (0.0001, 4.0, "note", "to some degree (p < 0.001)"),
        (0.2, 2.0, None, "No clear sign that workers err together (p = 0.200)"),
        (np.nan, np.nan, None, "Not tested"),
    ],
    ids=["severe", "mild", "none", "untested"],
)
def test_dependence_is_reported_by_how_much_it_matters(p, worth, tone, says):
    independence = Independence(p, 0.1, 5.0, worth, 100, "Not tested: why.")

    class FactsLike:
        class trust:  # noqa: N801  stands for an attribute
            accuracy = Estimate(0.9)

    FactsLike.trust.independence = independence
    told = list(_on_independence(FactsLike))
    assert says in independence.describe()
    assert [one.tone for one in told] == ([tone] if tone else [])


def test_the_diagram_shows_every_bin_and_nothing_without_truths(found):
    figure = reliability(SimpleNamespace(trust=found))
    assert len(figure.rows) == len(found.reliability) > 1
    assert "as stated" in figure.picture
    gap = np.average(
        [abs(one.confidence - one.accuracy) for one in found.reliability],
        weights=[one.n_tasks for one in found.reliability],
    )
    assert f"differ by {gap:.1%}" in figure.reading
    assert reliability(SimpleNamespace(trust=replace(found, reliability=()))) is None


def test_labels_that_stay_are_counted(crowd):
    model = MajorityVote().fit(crowd[0])
    other = np.roll(model.posterior_, 1, axis=1)
    assert share_kept(model, crowd[0], model.posterior_) == 1.0
    assert share_kept(model, crowd[0], other) < 0.3
    assert np.isnan(share_kept(MajorityVote(), crowd[0], other))
