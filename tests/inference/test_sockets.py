"""Ranks over sockets: a secret between them, the same bits, and a way back after a kill."""

import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from crowdwise import aggregate
from crowdwise.annotations import Cells
from crowdwise.inference import MemoryEngine
from crowdwise.inference.engines import sockets
from crowdwise.inference.engines.blocks import Run, add_up
from crowdwise.inference.engines.group import ALONE
from crowdwise.inference.engines.ranks import CrowdNames, RankEngine
from crowdwise.inference.engines.record import Record, Recorder
from crowdwise.inference.engines.sockets import GroupError, SocketGroup, find_neighbors


def meet(size, work, secrets=None):
    """``work`` of every rank, in threads that know each other's addresses."""
    texts, met = [""] * size, threading.Barrier(size, timeout=10)

    def one(rank):
        def tell(text):
            texts[rank] = text
            met.wait()
            return texts

        secret = b"secret" if secrets is None else secrets[rank]
        group = SocketGroup.meet(rank, size, "127.0.0.1", secret, tell)
        try:
            return work(group)
        finally:
            group.close()

    with ThreadPoolExecutor(size) as pool:
        return list(pool.map(one, range(size), timeout=30))


def parts(first, stop):
    return [
        (np.array([0.1 * 3.0 ** (i % 17)]), np.full((2, 3), 0.7**i)) for i in range(first, stop)
    ]


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_every_rank_gets_the_same_bits(size):
    expected = add_up(parts(0, 13))

    def work(group):
        first, stop = (13 * rank // size for rank in (group.rank, group.rank + 1))
        return [group.add(Run.of(parts(first, stop), first)) for _ in range(3)][-1]

    for found in meet(size, work):
        for one, other in zip(found, expected, strict=True):
            assert_array_equal(one, other)


def test_neighbors_know_each_other():
    for size in range(1, 20):
        calls = {(rank, low) for rank in range(size) for low in find_neighbors(rank, size)[0]}
        answers = {(high, rank) for rank in range(size) for high in find_neighbors(rank, size)[1]}
        assert calls == answers
        assert len(calls) == size - 1


def test_who_does_not_know_the_secret_is_turned_away(monkeypatch):
    monkeypatch.setattr(sockets, "PATIENCE", 1.0)
    with pytest.raises(GroupError, match=r"no rank|did not call|is gone") as caught:
        meet(2, lambda group: group.add(Run.of(parts(0, 1))), secrets=[b"one", b"other"])
    assert "one" not in str(caught.value).split()


def test_other_connections_do_not_keep_ranks_from_meeting():
    def tell_strangers(place):
        for message in (b"", b"GET / HTTP/1.0\r\n\r\n", (1 << 40).to_bytes(8, "little")):
            with socket.create_connection(place) as stranger:
                stranger.sendall(message)

    texts, met = [""] * 2, threading.Barrier(2, timeout=10)

    def one(rank):
        def tell(text):
            texts[rank] = text
            met.wait()
            if rank == 1:
                host, port = sockets.json.loads(texts[0])
                tell_strangers((host, port))
            return texts

        group = SocketGroup.meet(rank, 2, "127.0.0.1", b"secret", tell)
        total = group.add(Run.of(parts(rank, rank + 1), rank))
        group.close()
        return total

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(one, range(2), timeout=30)
    assert_array_equal(first[1], second[1])


def test_a_rank_that_leaves_is_an_error_for_the_rest():
    def work(group):
        if group.rank == 1:
            return None
        return group.add(Run.of(parts(0, 1)))

    with pytest.raises(GroupError, match=r"(?s)Rank 1, which rank 0 works with, is gone.*fix:"):
        meet(2, work)


@pytest.fixture
def rank_engine(voters):
    votes = voters.annotations
    whole, edges = votes.pair_cells, np.linspace(0, votes.n_tasks, 6).astype(int)
    crowd = CrowdNames(votes.workers, votes.classes, votes.pairs)
    cells = [
        Cells(whole.indptr[a : b + 1], whole.code, whole.value) for a, b in pairwise(edges.tolist())
    ]

    def make(recorder=None):
        return RankEngine(crowd, cells, recorder=recorder)

    return make


def test_a_rank_finds_what_memory_finds(rank_engine, voters):
    found = aggregate.DawidSkene()
    found.fit_engine(rank_engine(), voters.annotations.classes)
    expected = aggregate.DawidSkene()
    expected.fit_engine(MemoryEngine(voters.annotations), voters.annotations.classes)
    np.testing.assert_allclose(found.confusion_, expected.confusion_, rtol=1e-9)
    assert rank_engine().n_tasks == voters.annotations.n_tasks


def test_a_fit_goes_on_where_a_record_ends(rank_engine, voters, tmp_path, monkeypatch):
    path, classes = tmp_path / "run" / "sums.bin", voters.annotations.classes
    whole = aggregate.DawidSkene()
    whole.fit_engine(rank_engine(Recorder(ALONE, Record(path))), classes)
    assert len(Record(path)) == whole.n_iter_ + 1
    with path.open("r+b") as file:  # a kill in the middle of a write
        file.truncate(Record(path).starts[3] + 20)
    assert len(Record(path)) == 3
    loads, load = [], RankEngine._load
    monkeypatch.setattr(RankEngine, "_load", lambda own, e: (loads.append(e), load(own, e))[1])
    again = aggregate.DawidSkene()
    again.fit_engine(rank_engine(Recorder(ALONE, Record(path))), classes)
    assert again.objective_ == whole.objective_
    assert_array_equal(again.confusion_, whole.confusion_)
    assert len(loads) == 5 * (whole.n_iter_ + 1 - 3)  # no block was loaded for the first three
    assert len(Record(path)) == whole.n_iter_ + 1


def test_a_record_ends_at_its_limit(tmp_path):
    record = Record(tmp_path / "sums.bin", most_bytes=100)
    for number in range(5):
        record.append(np.full(10, float(number)))
    again = Record(tmp_path / "sums.bin")
    assert len(again) == 2
    assert_array_equal(again.read(1), np.ones(10))
