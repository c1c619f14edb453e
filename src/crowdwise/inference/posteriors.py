"""What is asked of a posterior, whether it is an array or in compact form."""

import numpy as np

from crowdwise import memory
from crowdwise.annotations import TIE, tied
from crowdwise.inference.compact import CompactPosterior
from crowdwise.inference.engines.engine import Posterior
from crowdwise.inference.simplex import clamp, share_best
from crowdwise.typing import Floats, Ints


def settle(posterior: Posterior, gold: Ints | None = None) -> Posterior:
    """The posterior with gold kept, as an array wherever that is not too large."""
    if not isinstance(posterior, CompactPosterior):
        return clamp(posterior, gold)
    known = posterior.clamp(gold)
    small = 8 * len(known) * len(known.prior) <= memory.LARGE
    return known.toarray() if small else known


def as_array(posterior: Posterior) -> Floats:
    """The posterior as an array, whatever its size."""
    return posterior.toarray() if isinstance(posterior, CompactPosterior) else posterior


def choose(posterior: Posterior) -> Ints:
    """The best class of each task, the first of tied ones."""
    if isinstance(posterior, CompactPosterior):
        return posterior.argmax()
    return tied(posterior).argmax(axis=1)


def share_right(posterior: Posterior, truth: Ints) -> Floats:
    """Whether each task's best class is the true one; one over the number of tied ones."""
    if not isinstance(posterior, CompactPosterior):
        return share_best(posterior)[np.arange(len(truth)), truth]
    leads = posterior.at(truth) >= posterior.max() - TIE
    return leads / posterior.count_tied()
