"""The best of several random starts."""

import warnings

import pytest

from crowdwise.inference.restarts import Run, best_of


def starts(*ends):
    queue = iter(ends)

    def run():
        name, objective = next(queue)
        warnings.warn(f"{name} is slow", UserWarning, stacklevel=1)
        return Run(name, objective)

    return run


def test_the_highest_last_objective_wins_and_only_it_is_heard():
    with pytest.warns(UserWarning, match="is slow") as heard:
        best = best_of(3, starts(("a", [9.0, 1.0]), ("b", [0.0, 3.0]), ("c", [0.0, 2.0])))
    assert (best.end, best.objective) == ("b", [0.0, 3.0])
    assert [str(warning.message) for warning in heard] == ["b is slow"]


def test_the_first_of_equals_wins():
    with pytest.warns(UserWarning, match="a is slow"):
        assert best_of(2, starts(("a", [1.0]), ("b", [1.0]))).end == "a"


def test_one_start_is_run_once():
    with pytest.warns(UserWarning, match="a is slow"):
        assert best_of(1, starts(("a", [1.0]))).end == "a"
