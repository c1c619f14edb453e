"""The parts of a panel: factors, correlations, curves and averaged regressions."""

import numpy as np
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import expit

from crowdwise.inference.averaged_logits import average_priors, fit_mode
from crowdwise.inference.factors import fit_factors, rotate_quartimax, weigh_judges
from crowdwise.inference.ratings import Correlations, Ratings, dense_blocks
from crowdwise.inference.steepness import Votes, match_mean, measure_overlap


def table_of(dense, seen):
    task, worker = np.nonzero(seen)
    shape = dense.shape
    return Ratings(task, worker, dense[task, worker][:, None], shape)


def test_repeats_are_averaged_by_weight():
    task, worker = np.array([0, 0, 1, 0]), np.array([0, 0, 0, 1])
    value, weight = np.array([[1.0], [4.0], [2.0], [9.0]]), np.array([2.0, 1.0, 1.0, 0.0])
    found = Ratings.average(task, worker, value, weight, (2, 2))
    assert found.table().toarray().tolist() == [[2.0, 0.0], [2.0, 0.0]]


def test_correlations_use_common_tasks_alone():
    rng = np.random.default_rng(0)
    dense = rng.normal(size=(50, 4))
    seen = rng.random((50, 4)) < 0.7
    found = Correlations.of(table_of(dense, seen))
    for i in range(4):
        for j in range(4):
            both = seen[:, i] & seen[:, j]
            a, b = dense[both, i], dense[both, j]
            expected = 1.0 if i == j else (a @ b) / np.sqrt((a @ a) * (b @ b))
            assert found.n_common[i, j] == both.sum()
            assert_allclose(found.value[i, j], expected)
    assert np.linalg.eigvalsh(found.shrink())[0] > 0


def test_blocks_hold_the_table_and_what_was_seen(monkeypatch):
    from crowdwise.inference import ratings

    rng = np.random.default_rng(1)
    dense, seen = rng.normal(size=(37, 5)), rng.random((37, 5)) < 0.5
    seen[10:20] = True
    monkeypatch.setattr(ratings, "CELLS_AT_ONCE", 20)
    blocks = list(dense_blocks(table_of(dense, seen).table()))
    assert len(blocks) == 10
    assert_allclose(np.concatenate([value for _, value, _ in blocks]), np.where(seen, dense, 0.0))
    assert_allclose(np.concatenate([there for _, _, there in blocks]), seen)
    assert np.concatenate([np.arange(37)[rows] for rows, _, _ in blocks]).tolist() == [*range(37)]


def test_factors_of_greatest_likelihood():
    rng = np.random.default_rng(2)
    loading = rng.uniform(0.3, 0.9, (8, 1))
    other = np.where(np.arange(8) < 4, 0.4, 0.0)[:, None]
    true = np.hstack([loading, other])
    noise = 1.0 - (true**2).sum(axis=1)
    assert noise.min() > 0.02
    found, left = fit_factors(true @ true.T + np.diag(noise), 2)
    assert_allclose(found @ found.T + np.diag(left), true @ true.T + np.diag(noise), atol=1e-4)


def test_quartimax_gathers_what_is_general():
    general = np.full((6, 1), 0.7)
    special = np.array([[0.4], [-0.4], [0.3], [-0.3], [0.0], [0.0]])
    angle = 0.6
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    found = rotate_quartimax(np.hstack([general, special]) @ turn)
    largest = np.abs(found[:, (found**2).sum(axis=0).argmax()])
    assert_allclose(largest, 0.7, atol=1e-3)


def test_a_dominant_family_does_not_choose_the_truth():
    """Six judges of one family share an error of their own; three others do not."""
    rng = np.random.default_rng(3)
    truth, error = rng.normal(size=(2, 4000))
    inside = 0.6 * truth[:, None] + 0.7 * error[:, None] + 0.4 * rng.normal(size=(4000, 6))
    outside = 0.6 * truth[:, None] + 0.8 * rng.normal(size=(4000, 3))
    rating = np.hstack([inside, outside])
    rating /= rating.std(axis=0)
    family = np.array([0] * 6 + [1, 2, 3])
    correlation = np.corrcoef(rating.T)
    named = rating @ weigh_judges(correlation, family, 4000)
    alone = rating @ weigh_judges(correlation, np.arange(9), 4000)
    with_truth = [np.corrcoef(score, truth)[0, 1] for score in (named, alone)]
    assert with_truth[0] > with_truth[1] + 0.05


def test_curves_recover_their_slopes():
    rng = np.random.default_rng(4)
    score = rng.normal(size=6000)
    low, high = np.array([0.05, 0.2, 0.1]), np.array([0.95, 0.7, 0.9])
    rate = low + (high - low) * expit(3.0 * score - 0.5)[:, None]
    votes = (rng.random(rate.shape) < rate).astype(float)
    table = table_of(votes, np.ones_like(votes, dtype=bool)).table()
    scores = np.tile(score[:, None], 3)
    over = Votes.of(table, scores, np.arange(3))
    gentle, start = over.fit_slope()
    steep, intercept = over.fit_bounded(gentle, start)
    assert gentle < steep
    assert_allclose([steep, intercept], [3.0, -0.5], atol=0.35)


def test_overlap_tells_classes_from_a_continuum():
    rng = np.random.default_rng(5)
    family = np.arange(6)

    def overlap(latent, proba):
        votes = latent[:, None] + rng.normal(size=(20000, 6))
        votes -= votes.mean(axis=0)
        full = np.ones_like(votes, dtype=bool)
        return measure_overlap(table_of(votes, full).table(), proba, family)

    truth = (rng.random(20000) < 0.5).astype(float)
    assert overlap(2 * truth, truth) < 0.05
    smooth = rng.normal(size=20000)
    assert overlap(smooth, (smooth > 0).astype(float)) > 0.95


def test_logits_are_moved_to_a_mean():
    logit = np.random.default_rng(6).normal(size=100) * 5
    assert_allclose(expit(logit + match_mean(logit, 0.2)).mean(), 0.2, atol=1e-9)


def test_modes_are_where_the_posterior_is_highest():
    rng = np.random.default_rng(7)
    design = rng.normal(size=(40, 4))
    yes = (rng.random(40) < expit(design @ [0.3, 1.0, -0.5, 0.2])).astype(float)
    mean, precision = np.array([0.0, 1.0, 0.0, 0.0]), np.array([1.0, 4.0, 25.0, 100.0])

    def loss(coef, accuracy):
        p = expit(design @ coef)
        p = accuracy * p + (1 - accuracy) * (1 - p)
        fit = (yes * np.log(p) + (1 - yes) * np.log(1 - p)).sum()
        return -fit + 0.5 * (precision * (coef - mean) ** 2).sum()

    for accuracy in (1.0, 0.8):
        found = fit_mode(design, yes, mean, precision, accuracy)[0]
        best = minimize(loss, mean, args=(accuracy,), tol=1e-10).x
        assert_allclose(found, best, atol=1e-3)


def test_averages_are_less_sure_where_less_is_known():
    rng = np.random.default_rng(8)
    known = rng.normal(size=400) * 2
    design = np.column_stack([np.ones(400), known, rng.normal(size=(400, 4))])
    yes = (rng.random(400) < expit(known)).astype(float)
    few, many = (average_priors(design[:n], yes[:n], 1) for n in (10, 400))
    assert_allclose(few.share.sum(), 1)
    far = np.array([[1.0, 3.0, 2.0, 3.0, -3.0, 3.0]])
    one = few.share @ expit(few.coef @ far[0])
    assert abs(few.predict(far)[0] - 0.5) < abs(one - 0.5)
    mapped = many.turn(np.eye(6)[:, ::-1])
    assert_allclose(mapped.predict(design[:, ::-1]), many.predict(design))
