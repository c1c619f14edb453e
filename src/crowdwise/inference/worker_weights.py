"""Random weights of workers that do not depend on names or row order."""

import numpy as np
from sklearn.utils import check_random_state

from crowdwise.annotations import Annotations
from crowdwise.inference.fingerprints import Hashes, fingerprint_workers, rank_equals, scramble
from crowdwise.typing import Floats, RandomState

ROUND = 10  # bags that together cover the distribution


def draw_weights(votes: Annotations, n_bags: int, random_state: RandomState) -> Floats:
    """Draw exponential weights, (bag, worker), that do not depend on names or order.

    In every round of bags, a worker has a weight from each tenth of the distribution, in random
    order: means over bags then vary less than with independent weights. Workers who labeled
    the same tasks in the same way as others differ only in rank.
    """
    return draw_weights_of(fingerprint_workers(votes), n_bags, random_state)


def draw_weights_of(color: Hashes, n_bags: int, random_state: RandomState) -> Floats:
    """Do the same with the fingerprints of the workers."""
    seed = check_random_state(random_state).randint(0, 1 << 62, dtype=np.int64)
    who = scramble(color ^ scramble(rank_equals(color).astype(np.uint64)))
    bag = scramble(np.uint64(seed) + np.arange(n_bags, dtype=np.uint64))
    number = scramble(bag[:, None] ^ who)
    within = (scramble(number) >> np.uint64(11)).astype(np.float64)
    level = (within + 0.5) / (1 << 53)
    for first in range(0, n_bags, ROUND):
        some = slice(first, first + ROUND)
        place = number[some].argsort(axis=0).argsort(axis=0)
        level[some] = (place + level[some]) / len(place)
    weights: Floats = -np.log(level)
    return weights
