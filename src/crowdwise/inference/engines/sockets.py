"""Ranks that are processes, on one or several machines, with messages over sockets.

Both sides of a connection must know the secret that the ranks share. Messages
are not encrypted.
"""

from __future__ import annotations

import hmac
import json
import secrets
import socket
import time
from collections.abc import Callable, Sequence
from typing import Self

import numpy as np

from crowdwise.errors import CrowdwiseError, explain
from crowdwise.inference.engines.group import TreeGroup
from crowdwise.typing import Array

PATIENCE = 120.0  # seconds to wait for all ranks to find one another
GREETING = 10.0  # seconds for a connection to show that it knows the secret
NONCE = 32
MOST_AT_ONCE = 1 << 30

Tell = Callable[[str], Sequence[str]]  # sends a text to all ranks, and returns all texts


class GroupError(CrowdwiseError, ConnectionError):
    """Ranks that work together have lost contact."""


class SocketGroup(TreeGroup):
    """A group in which every rank is connected to those it adds sums with."""

    def __init__(self, rank: int, size: int, peers: dict[int, socket.socket]) -> None:
        self.rank, self.size, self.peers = rank, size, peers

    @classmethod
    def meet(cls, rank: int, size: int, host: str, secret: bytes, tell: Tell) -> Self:
        """Connect with the others; ``tell`` is used once, to exchange addresses."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.create_server((host, 0), family=family, backlog=size) as server:
            places = [json.loads(text) for text in tell(json.dumps(server.getsockname()[:2]))]
            lower, higher = find_neighbors(rank, size)
            peers = {other: _call(places[other], rank, secret) for other in lower}
            peers |= _answer(server, set(higher), secret)
        return cls(rank, size, peers)

    def send(self, to: int, arrays: Sequence[Array]) -> None:
        heads = [(array.dtype.str, array.shape) for array in arrays]
        try:
            _send(self.peers[to], json.dumps(heads).encode())
            for array in arrays:
                self.peers[to].sendall(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        except OSError as error:
            raise self._lose(to, error) from error

    def receive(self, source: int) -> list[Array]:
        try:
            heads = json.loads(_receive(self.peers[source]))
            return [_read_array(self.peers[source], *head) for head in heads]
        except OSError as error:
            raise self._lose(source, error) from error

    def close(self) -> None:
        """Leave; others that still wait for this one get an error."""
        for peer in self.peers.values():
            peer.close()

    def _lose(self, other: int, error: OSError) -> GroupError:
        self.close()
        return GroupError(
            explain(
                f"Rank {other}, which rank {self.rank} works with, is gone.",
                first=f"{type(error).__name__}: {error}",
                fix="find out why it ended; a Spark stage starts again by itself",
            )
        )


def find_neighbors(rank: int, size: int) -> tuple[list[int], list[int]]:
    """Return the ranks that a rank exchanges messages with in a tree, lower and higher ones."""
    higher, step = [], 1
    while step < size and rank % (2 * step) == 0:
        higher += [rank + step] * (rank + step < size)
        step *= 2
    return [rank - step] * (rank > 0), higher


def _call(place: Sequence[object], rank: int, secret: bytes) -> socket.socket:
    """Connect to a rank that is waiting."""
    peer = socket.create_connection((str(place[0]), int(str(place[1]))), timeout=PATIENCE)
    _prepare(peer)
    _send(peer, rank.to_bytes(8, "little"))
    if not _is_trusted(peer, secret, b"answers", b"calls"):
        peer.close()
        raise GroupError(explain("What answered at the address of a rank is not a rank."))
    peer.settimeout(None)
    return peer


def _answer(server: socket.socket, wanted: set[int], secret: bytes) -> dict[int, socket.socket]:
    """Accept connections from all ranks that call; those without the secret are refused."""
    peers: dict[int, socket.socket] = {}
    deadline = time.monotonic() + PATIENCE
    while wanted - peers.keys():
        server.settimeout(max(deadline - time.monotonic(), 0.01))
        try:
            peer, _ = server.accept()
        except TimeoutError as error:
            missing = ", ".join(map(str, sorted(wanted - peers.keys())))
            raise GroupError(explain(f"Rank {missing} did not call in time.")) from error
        peer.settimeout(GREETING)
        try:
            _prepare(peer)
            other = int.from_bytes(_receive(peer, 8), "little")
            if other in wanted - peers.keys() and _is_trusted(peer, secret, b"calls", b"answers"):
                peer.settimeout(None)
                peers[other] = peer
                continue
        except OSError:
            pass
        peer.close()
    return peers


def _is_trusted(peer: socket.socket, secret: bytes, theirs: bytes, own: bytes) -> bool:
    """Check that both sides know the secret, without revealing it."""
    nonce = secrets.token_bytes(NONCE)
    _send(peer, nonce)
    other = _receive(peer, NONCE)
    _send(peer, _sign(secret, own, other, nonce))
    return hmac.compare_digest(_receive(peer, NONCE), _sign(secret, theirs, nonce, other))


def _sign(secret: bytes, role: bytes, asked: bytes, own: bytes) -> bytes:
    return hmac.digest(secret, role + asked + own, "sha256")


def _prepare(peer: socket.socket) -> None:
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)


def _send(peer: socket.socket, message: bytes) -> None:
    peer.sendall(len(message).to_bytes(8, "little") + message)


def _receive(peer: socket.socket, most: int = 1 << 20) -> bytes:
    length = int.from_bytes(_read(peer, 8), "little")
    if length > most:
        raise ConnectionError(f"a message of {length:,} bytes")
    return bytes(_read(peer, length))


def _read_array(peer: socket.socket, kind: str, shape: list[int]) -> Array:
    empty = np.empty(shape, dtype=np.dtype(kind))
    _fill(peer, empty.reshape(-1).view(np.uint8).data)
    return empty


def _read(peer: socket.socket, length: int) -> bytearray:
    data = bytearray(length)
    _fill(peer, memoryview(data))
    return data


def _fill(peer: socket.socket, data: memoryview) -> None:
    start = 0
    while start < len(data):
        count = peer.recv_into(data[start : start + MOST_AT_ONCE])
        if not count:
            raise ConnectionError("the connection was closed")
        start += count
