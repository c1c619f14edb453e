import warnings

import pytest
from sklearn.exceptions import ConvergenceWarning

from crowdwise.inference.stopping import Run, best_of, until_converged


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


def test_no_tolerance_takes_every_step_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(run([1.0, 1.0, 1.0, 1.0], max_iter=4, tol=0.0)) == 4


def starts(*ends):
    queue = iter(ends)

    def run():
        name, objective = next(queue)
        warnings.warn(f"{name} is slow", UserWarning, stacklevel=1)
        return Run(name, objective)

    return run


def test_the_highest_last_objective_wins_and_only_its_warnings_are_shown():
    with pytest.warns(UserWarning, match="is slow") as shown:
        best = best_of(3, starts(("a", [9.0, 1.0]), ("b", [0.0, 3.0]), ("c", [0.0, 2.0])))
    assert (best.end, best.objective) == ("b", [0.0, 3.0])
    assert [str(warning.message) for warning in shown] == ["b is slow"]


def test_the_first_of_equals_wins():
    with pytest.warns(UserWarning, match="a is slow"):
        assert best_of(2, starts(("a", [1.0]), ("b", [1.0]))).end == "a"


def test_one_start_is_run_once():
    with pytest.warns(UserWarning, match="a is slow"):
        assert best_of(1, starts(("a", [1.0]))).end == "a"
