"""Cells of the map are the kappas of pairs, and those who agree are neighbors."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_allclose

from crowdwise import Annotations
from crowdwise.errors import AnnotationError, ParameterError
from crowdwise.plot import plot_agreement


def drawn(ax):
    """The kappas by the names that stand beside them."""
    table = np.ma.filled(ax.images[0].get_array(), np.nan)
    across = [text.get_text() for text in ax.get_xticklabels()]
    down = [text.get_text() for text in ax.get_yticklabels()]
    assert across == down
    return {
        (one, other): table[i, j] for i, one in enumerate(down) for j, other in enumerate(across)
    }


def slow_kappa(votes, one, other, min_overlap):
    """Cohen's kappa of two workers as loops; NaN where they share too few tasks."""
    labels = votes.to_dict()
    both = [(mine[one], mine[other]) for mine in labels.values() if {one, other} <= mine.keys()]
    if len(both) < min_overlap or one == other:
        return np.nan
    agree = sum(a == b for a, b in both) / len(both)
    chance = sum(
        sum(a == k for a, _ in both) * sum(b == k for _, b in both) / len(both) ** 2
        for k in votes.classes
    )
    return (agree - chance) / (1 - chance)


@pytest.mark.parametrize("min_overlap", [1, 100])
def test_cells_are_kappas(crowd, min_overlap):
    votes, _ = crowd
    found = drawn(plot_agreement(votes, min_overlap=min_overlap))
    expected = {pair: slow_kappa(votes, *pair, min_overlap) for pair in found}
    assert len(found) == 16
    assert_allclose(list(found.values()), list(expected.values()), atol=1e-12)
    blank = sum(np.isnan(value) for value in found.values())
    assert blank == {1: 4, 100: 10}[min_overlap]


def test_numbers_stand_in_the_cells_that_have_one(crowd):
    ax = plot_agreement(crowd[0], min_overlap=100)
    table = np.ma.filled(ax.images[0].get_array(), np.nan)
    expected = {(j, i): f"{v:.2f}" for (i, j), v in np.ndenumerate(table) if np.isfinite(v)}
    assert {text.get_position(): text.get_text() for text in ax.texts} == expected


def test_only_the_busiest_are_drawn(crowd):
    votes, _ = crowd
    ax = plot_agreement(votes, n_workers=3)
    found = drawn(ax)
    assert {one for one, _ in found} == {"bob", "cy", "di"}
    assert found["bob", "di"] == pytest.approx(slow_kappa(votes, "bob", "di", 1))
    assert ax.get_title() == "agreement of 3 of 4 workers"


def camps(n_tasks=60):
    """Six workers of two camps in turn; nobody of one camp agrees with the other."""
    rng = np.random.default_rng(0)
    believed = rng.integers(0, 3, (n_tasks, 2))
    slip = rng.random((n_tasks, 6)) < 0.1
    labels = np.where(slip, rng.integers(0, 3, (n_tasks, 6)), believed[:, [0, 1, 0, 1, 0, 1]])
    return Annotations.from_matrix(labels, workers=list("abcdef"))


def test_camps_stand_together():
    names = [text.get_text() for text in plot_agreement(camps()).get_yticklabels()]
    assert {"".join(sorted(names[:3])), "".join(sorted(names[3:]))} == {"ace", "bdf"}


def test_near_misses_may_count():
    votes = camps()
    plain, near = (drawn(plot_agreement(votes, weights=w)) for w in ("identity", "linear"))
    assert plain["a", "b"] != pytest.approx(near["a", "b"])


def test_two_workers_and_a_given_place(crowd):
    ax = Figure().add_subplot()
    assert plot_agreement(crowd[0], n_workers=2, ax=ax) is ax
    assert len(drawn(ax)) == 4


def test_mistakes_are_named(crowd):
    with pytest.raises(AnnotationError, match=r"(?s)No pair of the 4 workers.*lower min_overlap"):
        plot_agreement(crowd[0], min_overlap=1000)
    with pytest.raises(ParameterError, match="n_workers=1"):
        plot_agreement(crowd[0], n_workers=1)
