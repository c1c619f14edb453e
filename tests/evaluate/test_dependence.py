"""Dependence: what is planted in a simulated panel is found, and intervals cover it."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.special import ndtri

from crowdwise.annotations import Annotations
from crowdwise.errors import CrowdwiseError
from crowdwise.evaluate import dependence
from crowdwise.evaluate.judge_errors import widen

N_JUDGES = 8
CORRELATIONS = {  # of the errors, before they are cut into right and wrong
    "independent": np.eye(N_JUDGES),
    "block": np.where(np.add.outer(np.arange(8) // 4, -(np.arange(8) // 4)) == 0, 0.7, 0.0),
    "factor": np.outer(np.linspace(0.3, 0.9, 8), np.linspace(0.3, 0.9, 8)),
}
RATES = np.linspace(0.15, 0.4, N_JUDGES)


def simulate(kind, n_tasks, seed, scores=False):
    """Labels (task, judge) of two classes, or scores, and the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, n_tasks)
    matrix = CORRELATIONS[kind].copy()
    np.fill_diagonal(matrix, 1.0)
    z = rng.normal(size=(n_tasks, N_JUDGES)) @ np.linalg.cholesky(matrix).T
    if scores:
        return z + 1.5 * truth[:, None], truth
    wrong = z < ndtri(RATES)
    return np.where(wrong, 1 - truth[:, None], truth[:, None]), truth


def plain_number(labels, truth):
    """Kish's number from a loop over pairs of judges, and over classes."""
    product = np.zeros((labels.shape[1],) * 2)
    for k in (0, 1):
        rest = labels[truth == k] - labels[truth == k].mean(axis=0)
        product += rest.T @ rest
    scale = np.sqrt(np.diag(product))
    return labels.shape[1] ** 2 / (product / np.outer(scale, scale)).sum()


@pytest.mark.parametrize("kind", CORRELATIONS)
def test_the_number_is_that_of_plain_loops(kind):
    labels, truth = simulate(kind, 400, 0)
    found = dependence(labels, truth, n_resamples=0).effective_number
    assert_allclose(found.value, min(plain_number(labels, truth), N_JUDGES))
    assert np.isnan(found.low)


@pytest.mark.parametrize("scores", [False, True])
@pytest.mark.parametrize("kind", CORRELATIONS)
def test_intervals_cover(kind, scores):
    target = plain_number(*simulate(kind, 100_000, 99, scores))
    target = N_JUDGES if kind == "independent" else target
    inside = []
    for seed in range(40):
        labels, truth = simulate(kind, 150, seed, scores)
        votes = Annotations.from_matrix(labels)
        votes = votes.with_scores(0.75) if scores else votes
        found = dependence(votes, truth, n_resamples=200).effective_number
        inside.append(found.low <= target <= found.high)
    assert np.mean(inside) >= 0.9


def test_clusters_redundant_judges_and_families():
    """Two blocks of four judges, a copy of the first judge, and who they are."""
    labels, truth = simulate("block", 2000, 1)
    votes = Annotations.from_matrix(np.column_stack([labels, labels[:, 0]]))
    about = pd.DataFrame({"worker": range(9), "family": [*"aaaabbbb", "a"]})
    found = dependence(votes.with_workers(about), truth)
    cluster = found.judges["cluster"].tolist()
    assert cluster[0] != cluster[4]
    assert cluster == [cluster[0]] * 4 + [cluster[4]] * 4 + [cluster[0]]
    assert found.judges["redundant"].loc[[0, 8]].sum() == 1  # one of the two copies, not both
    assert found.judges["worth"].loc[[0, 8]].max() < 0.02
    assert found.families["n_judges"].tolist() == [5, 4, 0]
    adds = found.families["adds"]
    assert adds["a new family"] > adds["b"] > adds["a"]
    assert found.families["correlation"].iloc[:2].min() > 0.3


def test_clusters_stand_for_families_that_are_not_named(monkeypatch):
    labels, truth = simulate("block", 2000, 1)
    found = dependence(labels, truth)
    assert found.families.index.tolist() == ["cluster 1", "cluster 2", "a new family"]
    assert found.families["n_judges"].tolist() == [4, 4, 0]
    assert found.families["adds"].idxmax() == "a new family"
    monkeypatch.setattr("crowdwise.inference.ratings.CELLS_AT_ONCE", 100)  # blocks cut groups
    pieces = dependence(np.repeat(labels, 2, axis=0), np.repeat(truth, 2))
    assert_allclose(pieces.pairs["correlation"], found.pairs["correlation"])
    assert (pieces.pairs["n_tasks"] == 4000).all()


def test_pairs_have_the_correlation_planted_and_intervals_that_cover():
    pairs = dependence(*simulate("block", 1000, 2)).pairs.set_index(["first", "second"])
    wide = dependence(*simulate("block", 100_000, 3), n_resamples=0).pairs["correlation"]
    assert len(pairs) == 28
    inside = (pairs["low"] <= wide.to_numpy()) & (wide.to_numpy() <= pairs["high"])
    assert inside.mean() > 0.85
    assert pairs.loc[(0, 1), "low"] > 0.3
    assert pairs.loc[(0, 5), "high"] < 0.15
    assert (pairs["n_tasks"] == 1000).all()


def test_judges_of_some_tasks_count_on_those_they_share():
    labels, truth = simulate("block", 3000, 4)
    whole = dependence(labels, truth).effective_number
    seen = np.random.default_rng(5).random(labels.shape) < 0.6
    found = dependence(np.where(seen, labels, -1), truth)
    assert found.effective_number.value == pytest.approx(whole.value, rel=0.07)
    assert found.pairs["n_tasks"].iloc[0] == (seen[:, 0] & seen[:, 1]).sum()


def test_without_truth_there_is_a_point_and_words():
    labels, truth = simulate("factor", 1500, 6)
    found, known = dependence(labels), dependence(labels, truth)
    assert found.effective_number.value == pytest.approx(known.effective_number.value, rel=0.35)
    assert np.isnan(found.effective_number.low)
    assert found.pairs["low"].isna().all()
    assert "a mistake shared by most judges" in found.note
    copies = dependence(labels[:, [0, 0, 0, 1]])
    assert np.isnan(copies.effective_number.value)
    assert "three judges" in copies.effective_number.note


def test_too_little_to_say_is_refused():
    labels, truth = simulate("block", 50, 7)
    with pytest.raises(CrowdwiseError, match=r"3 tasks with a truth[\s\S]*truths of more tasks"):
        dependence(labels, dict(enumerate(truth[:3].tolist())))
    with pytest.raises(CrowdwiseError, match=r"1 judge[\s\S]*by more workers"):
        dependence(labels[:, :1], truth)
    with pytest.raises(CrowdwiseError, match=r"1 class[\s\S]*another label"):
        dependence(np.zeros_like(labels), truth)
    with pytest.raises(CrowdwiseError, match=r"201 judges[\s\S]*some of the judges"):
        dependence(np.tile(labels[:, :3], 67), truth)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_tasks_have_wide_intervals_not_an_error(n):
    assert 0.95 < widen(0.95, n) < 1.0
    labels = np.array([[0, 1, 0], [1, 1, 1], [0, 0, 1]])[:n]
    assert not dependence(labels, random_state=0).effective_number.value > 3.0


@pytest.mark.parametrize("known", [True, False])
def test_no_skill_is_beyond_what_so_many_tasks_can_show(known):
    labels, truth = simulate("independent", 30, 3)
    labels[:, 0] = truth
    judges = dependence(labels[:, [0, 1, 2]], truth if known else None).judges
    assert judges["skill"].max() <= np.sqrt(32) + 1e-9
    assert judges["redundant"].sum() < 2


def test_judges_who_never_err_say_nothing_of_errors():
    truth = np.arange(60) % 2
    found = dependence(np.repeat(truth[:, None], 4, axis=1), truth)
    assert np.isnan(found.effective_number.value)
    assert "their dependence is unknown" in found.effective_number.note
    assert found.families["adds"].notna().all()
