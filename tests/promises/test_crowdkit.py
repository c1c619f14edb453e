"""What docs/coming-from-crowd-kit.md says about differing results.

crowdkit/votes.csv is a simulated crowd with few labels for its classes; the other files there
are what crowd-kit 1.4.2 gave for it, 20 steps or as many as it takes by default (0):

PYTHON benchmarks/crowdkit_once.py DawidSkene votes.csv dawid-skene-20-steps.csv 20

The functions below are its updates in plain numpy, and they give the same.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import expit, log_expit, softmax

import crowdwise
from crowdwise.aggregate import GLAD, DawidSkene

RECORDED = Path(__file__).parent / "crowdkit"
FLOOR = 1e-10


@pytest.fixture(scope="module")
def votes():
    return crowdwise.read(RECORDED / "votes.csv")


@pytest.fixture(scope="module")
def theirs(votes):
    def read(name):
        table = pd.read_csv(RECORDED / f"{name}.csv", index_col="task")
        return table.reindex(index=votes.tasks, columns=votes.classes).to_numpy()

    return read


def gap(found, expected):
    return np.abs(found - expected).max()


# -- Dawid-Skene -------------------------------------------------------------------------------


def estimate(votes, posterior, *, clips, used_only):
    """The M-step: log prior, and log P(label | truth) of every annotation."""
    counts = np.zeros((votes.n_workers, votes.n_classes, votes.n_classes))  # worker, label, truth
    np.add.at(counts, (votes.worker, votes.label), posterior[votes.task])
    totals = posterior.sum(axis=0)
    if clips:
        counts, prior = np.maximum(counts, FLOOR), np.maximum(totals / len(posterior), FLOOR)
    else:
        counts, prior = counts + FLOOR, (totals + FLOOR) / (totals + FLOOR).sum()
    if used_only:
        used = np.zeros(counts.shape[:2], dtype=bool)
        used[votes.worker, votes.label] = True
        counts = np.where(used[:, :, None], counts, 0.0)
    errors = counts / counts.sum(axis=1, keepdims=True)
    return np.log(prior), np.log(errors[votes.worker, votes.label])


def em(votes, n_steps, *, clips, used_only):
    posterior = votes.shares()
    for _ in range(n_steps):
        log_prior, log_error = estimate(votes, posterior, clips=clips, used_only=used_only)
        joint = np.tile(log_prior, (votes.n_tasks, 1))
        np.add.at(joint, votes.task, log_error)
        posterior = softmax(joint, axis=1)
    return np.maximum(posterior, FLOOR) if clips else posterior


def test_promise_11_dawid_skene_differs_by_two_rules_only(votes, theirs):
    ours = DawidSkene(smoothing=FLOOR, max_iter=20, tol=0.0).fit(votes).posterior_
    crowdkits = theirs("dawid-skene-20-steps")
    assert_allclose(em(votes, 20, clips=True, used_only=True), crowdkits, atol=1e-9)
    assert_allclose(em(votes, 20, clips=False, used_only=False), ours, atol=1e-9)
    assert gap(ours, crowdkits) > 0.1  # few labels for many classes
    for one_rule in ({"clips": True, "used_only": False}, {"clips": False, "used_only": True}):
        assert gap(em(votes, 20, **one_rule), crowdkits) > 1e-3


def test_promise_11_dawid_skene_stops_earlier_there(votes, theirs):
    stopped = theirs("dawid-skene")
    found = [gap(em(votes, n, clips=True, used_only=True), stopped) for n in range(1, 31)]
    assert int(np.argmin(found)) + 1 == 7
    assert min(found) < 1e-9
    assert gap(stopped, theirs("dawid-skene-20-steps")) > 0.1


# -- GLAD --------------------------------------------------------------------------------------


def expect(votes, skill, log_ease):
    lift = skill[votes.worker] * np.exp(log_ease[votes.task]) + np.log(votes.n_classes - 1)
    joint = np.zeros((votes.n_tasks, votes.n_classes))
    np.add.at(joint, (votes.task, votes.label), lift)
    return softmax(joint, axis=1)


def objective(votes, point, right):
    """Expected log-posterior of the parameters, and its gradient."""
    skill, log_ease = np.split(point, [votes.n_workers])
    ease = np.exp(log_ease)[votes.task]
    odds, others = skill[votes.worker] * ease, np.log(votes.n_classes - 1)
    value = (right * log_expit(odds) + (1.0 - right) * (log_expit(-odds) - others)).sum()
    value -= ((point - 1.0) ** 2).sum() / 2 + len(point) * np.log(2 * np.pi) / 2
    slope = (right - expit(odds)) * ease
    by_worker = np.bincount(votes.worker, slope, votes.n_workers)
    by_task = np.bincount(votes.task, slope * skill[votes.worker], votes.n_tasks)
    return value, np.concatenate([by_worker, by_task]) - (point - 1.0)


def conjugate_gradients(votes, n_steps, *, stop=-np.inf, slack=1e-2, at_most=25):
    """GLAD as crowd-kit fits it: the posterior before the last M-step, and its losses."""
    point = np.ones(votes.n_workers + votes.n_tasks)
    posterior = expect(votes, *np.split(point, [votes.n_workers]))
    values = [objective(votes, point, posterior[votes.task, votes.label])[0]]
    for _ in range(n_steps):
        posterior = expect(votes, *np.split(point, [votes.n_workers]))
        right = posterior[votes.task, votes.label]
        point = minimize(
            lambda x, right=right: -objective(votes, x, right)[0],
            point,
            jac=lambda x, right=right: -objective(votes, x, right)[1],
            method="CG",
            tol=slack,
            options={"maxiter": at_most},
        ).x
        n_rows = votes.n_annotations * votes.n_classes
        values.append(objective(votes, point, right)[0] / n_rows)
        if values[-1] - values[-2] < stop:
            break
    return posterior, values[1:]


def test_promise_11_glad_stops_after_two_steps_there(votes, theirs):
    posterior, losses = conjugate_gradients(votes, 100, stop=1e-5)
    assert len(losses) == 2
    assert losses[1] < losses[0]  # what it compares is not what EM raises
    assert_allclose(posterior, theirs("glad"), atol=1e-6)
    converged = GLAD(max_iter=2000, tol=1e-13).fit(votes).posterior_
    assert gap(theirs("glad"), converged) > 0.7


def test_promise_11_glad_is_the_same_once_both_have_converged(votes, theirs):
    loose, _ = conjugate_gradients(votes, 20)
    assert_allclose(loose, theirs("glad-20-steps"), atol=1e-3)
    tight, _ = conjugate_gradients(votes, 150, slack=1e-8, at_most=1000)
    assert_allclose(GLAD(max_iter=2000, tol=1e-13).fit(votes).posterior_, tight, atol=1e-5)
