"""Ranks: several engines with some of the blocks each find what one of all blocks finds."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from crowdwise import aggregate
from crowdwise.errors import ParameterError
from crowdwise.inference.draws import draw_even_shares, draw_rows
from crowdwise.inference.engines import FileEngine, blocks, run_ranks
from crowdwise.inference.engines.blocks import Run, add_up
from crowdwise.laws.checks import fit_posterior, store_without_names
from crowdwise.laws.engines import fit_ranks

METHODS = [getattr(aggregate, name) for name in aggregate.__all__]
pytestmark = pytest.mark.usefixtures("few_draws")
BLOCKWISE = [method for method in METHODS if method.traits.blockwise]


def parts(n, start=0):
    return [(np.array([0.1 * 3.0 ** (i % 17)]), np.full((2, 3), 0.7**i)) for i in range(start, n)]


@pytest.mark.parametrize("n", [1, 5, 16, 23])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 7])
def test_runs_add_up_to_the_same_bits_wherever_they_are_cut(n, size):
    expected = add_up(parts(n))
    cuts = [n * rank // size for rank in range(size + 1)]

    def work(group):
        first, stop = cuts[group.rank], cuts[group.rank + 1]
        return group.add(Run.of(parts(stop, first), first))

    for found in run_ranks(size, work):
        for one, other in zip(found, expected, strict=True):
            assert_array_equal(one, other)


def test_a_rank_that_fails_ends_the_others():
    def work(group):
        if group.rank == 1:
            raise RuntimeError("no more")
        return group.add(Run.of(parts(2, 0), 0))

    with pytest.raises((RuntimeError, ConnectionError), match=r"no more|rank 1 has failed"):
        run_ranks(3, work)


@pytest.mark.parametrize("method", BLOCKWISE, ids=lambda method: method.__name__)
def test_ranks_find_the_same_bits(method, voters, tmp_path, monkeypatch):
    for name, value in {"CELLS_PER_BLOCK": 8, "CELLS_PER_SUM": 0, "MOST_BLOCKS": 16}.items():
        monkeypatch.setattr(blocks, name, value)
    votes = voters.annotations[:120]
    stored = store_without_names(votes, tmp_path)
    model = method()
    few = {"max_iter": 5, "n_restarts": 2, "n_subtypes": 1, "n_bags": 3, "random_state": 0}
    model.set_params(**{name: few[name] for name in few.keys() & model.get_params()})
    expected = fit_ranks(model, stored, 1)
    assert_array_equal(expected, fit_posterior(model, votes))
    for size in (2, 3, 4):  # a third begins in the middle of a pair of blocks
        assert_array_equal(fit_ranks(model, stored, size), expected)


def test_ranks_must_draw_the_same_random_numbers(voters, tmp_path):
    stored = store_without_names(voters.annotations, tmp_path)

    def work(group):
        return aggregate.MACE().fit_engine(FileEngine(stored, 1, group), stored.classes)

    with pytest.raises(ParameterError, match=r"(?s)random_state=None.*rank.*random_state=0"):
        run_ranks(2, work)


def test_blocks_are_shared_out_between_the_same_tasks(voters, tmp_path):
    stored = store_without_names(voters.annotations, tmp_path)

    def work(group):
        engine = FileEngine(stored, 1, group)
        cuts = [engine._cut(size) for size in (0, 10**9)]
        assert cuts[0][0][0] == cuts[1][0][0]
        return cuts[0][0][0], cuts[0][-1][1]

    found = run_ranks(3, work)
    assert [edges[0] for edges in found] == [0, *(edges[1] for edges in found[:-1])]
    assert found[-1][1] == stored.n_tasks


def test_random_numbers_belong_to_their_row():
    whole = draw_rows(7, 0, 50, 6)
    assert_array_equal(draw_rows(7, 20, 5, 6), whole[20:25])
    assert len(np.unique(whole)) == whole.size
    shares = draw_even_shares(7, 0, (4000, 2, 3))
    assert_array_equal(draw_even_shares(7, 3, (1, 2, 3)), shares[3:4])
    assert abs(shares.mean(axis=0) - 1 / 3).max() < 0.02
    assert abs(shares.var(axis=0) - 1 / 18).max() < 0.01  # of Dirichlet(1, 1, 1)
