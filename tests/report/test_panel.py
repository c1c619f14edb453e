"""The section on judges: shown where workers are judges, with what dependence says of them."""

import numpy as np
import pandas as pd
import pytest

from crowdwise.annotations import Annotations
from crowdwise.evaluate import dependence
from crowdwise.report.facts import gather
from crowdwise.report.facts.panel import panel_facts
from crowdwise.report.page import to_html


@pytest.fixture(scope="module")
def panel():
    """Six judges of two families who share errors, and a copy of the first."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 300)
    shared = rng.random((300, 2)) < 0.3
    family = np.array([0, 1, 0, 1, 0, 1])
    wrong = np.where(rng.random((300, 6)) < 0.7, shared[:, family], rng.random((300, 6)) < 0.3)
    labels = np.where(wrong, 1 - truth[:, None], truth[:, None])
    names = [f"judge <{k}>" for k in range(7)]
    votes = Annotations.from_matrix(np.column_stack([labels, labels[:, 0]]), workers=names)
    about = {"worker": names, "family": ["odd" if k % 2 else "even" for k in range(6)] + ["even"]}
    return votes.with_workers(about), pd.Series(truth)


def test_the_facts_are_those_of_dependence(panel):
    votes, truth = panel
    own, found = panel_facts(votes, truth), dependence(votes, truth)
    assert own.number == found.effective_number.value
    assert own.low < own.number < own.high
    names = [judge.name for judge in own.judges]
    pair = found.pairs.iloc[3]
    at = names.index(pair["first"]), names.index(pair["second"])
    assert own.correlation[at] == own.correlation[at[::-1]] == pair["correlation"]
    clusters = [judge.cluster for judge in own.judges]
    assert clusters == sorted(clusters)
    assert sum(judge.redundant for judge in own.judges) == found.judges["redundant"].sum()
    assert [one.name for one in own.families] == ["even", "odd", "a new family"]
    assert np.isnan(panel_facts(votes, None).low)


def test_a_crowd_has_no_such_section(panel):
    votes, _ = panel
    plain = Annotations.from_codes(votes.task, votes.worker, votes.label)
    assert panel_facts(plain, None) is None
    assert panel_facts(votes[:10], None) is None  # too few tasks
    sparse = votes.filter(np.arange(votes.n_annotations) % 4 == 0)
    assert panel_facts(sparse, None) is None
    many = Annotations.from_matrix(np.arange(420).reshape(60, 7) % 13).with_workers(
        {"worker": range(7), "family": list("aabbccd")}
    )
    assert panel_facts(many, None) is None


def test_the_page_has_a_map_of_judges(panel):
    votes, truth = panel
    page = to_html(gather(votes, truth=truth, method="MajorityVote", methods=()))
    assert '<section id="panel"' in page or 'id="panel"' in page
    assert 'href="#panel"' in page
    assert "who err independently" in page
    assert "judge &lt;0&gt;" in page
    assert "judge <0>" not in page.partition('<script type="application/json"')[0]
    alone = Annotations.from_codes(votes.task, votes.worker, votes.label)
    assert 'href="#panel"' not in to_html(gather(alone, method="MajorityVote", methods=()))
