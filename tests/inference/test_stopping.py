import warnings

import pytest
from sklearn.exceptions import ConvergenceWarning

from crowdwise.inference.stopping import until_converged


def run(values, max_iter=10, tol=0.01):
    values = iter(values)
    for trace in until_converged(max_iter, tol):
        trace.record(next(values))
    return trace.objective


def test_stops_once_a_step_lifts_the_objective_too_little():
    assert run([-100.0, -50.0, -49.9, -10.0]) == [-100.0, -50.0, -49.9]


def test_a_fall_is_a_change_too():
    assert run([-50.0, -100.0, -100.0, 0.0]) == [-50.0, -100.0, -100.0]


def test_small_objectives_are_compared_absolutely():
    assert run([1e-6, 2e-6, 5.0], tol=1e-3) == [1e-6, 2e-6]


def test_warns_when_it_runs_out():
    with pytest.warns(ConvergenceWarning, match=r"max_iter=3 .*changed by 5.0e-01.*Raise max_iter"):
        run([-4.0, -2.0, -1.0], max_iter=3)


def test_no_tolerance_takes_every_step_silently():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(run([1.0, 1.0, 1.0, 1.0], max_iter=4, tol=0.0)) == 4
