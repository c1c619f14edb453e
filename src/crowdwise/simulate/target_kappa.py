"""Crowds with a given agreement between workers."""

from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from sklearn.utils import check_random_state

from crowdwise.errors import ParameterError, explain
from crowdwise.evaluate import fleiss_kappa
from crowdwise.simulate.crowds import CrowdOptions, SimulatedCrowd, simulate_crowd
from crowdwise.typing import RandomState

# Of the logarithm of the common factor of difficulty, from very easy to very hard.
LEVELS = (np.log(1e-2), np.log(1e2))


def crowd_with_kappa(
    kappa: float,
    *,
    truth: ArrayLike,
    difficulty: ArrayLike | None = None,
    random_state: RandomState = None,
    **options: Unpack[CrowdOptions],
) -> SimulatedCrowd:
    """Draw a crowd whose Fleiss' kappa is ``kappa``.

    All difficulties are multiplied by one number, which is solved for with everything else
    drawn the same way; kappa is met up to the change of a single label.

    Parameters
    ----------
    kappa : float
        The target for Fleiss' kappa, above 0 and below 1.
    truth : array of shape (n_tasks,)
        Class numbers of the tasks.
    difficulty : array of shape (n_tasks,), optional
        Relative difficulty of the tasks, equal by default.
    random_state : int or RandomState, optional
        Random seed.
    **options
        ``workers`` and other parameters of :func:`simulate_crowd`.

    Examples
    --------
    >>> from crowdwise.evaluate import fleiss_kappa
    >>> from crowdwise.simulate import OneCoinWorker
    >>> truth = np.arange(400) % 2
    >>> options = {"n_classes": 2, "workers": 7 * [OneCoinWorker((0.6, 0.9))]}
    >>> crowd = crowd_with_kappa(0.4, truth=truth, random_state=0, **options)
    >>> print(f"{float(fleiss_kappa(crowd.annotations)):.2f}")
    0.40
    """
    rng = check_random_state(random_state)
    seed = rng.randint(np.iinfo(np.int32).max)
    relative = np.ones(len(np.asarray(truth))) if difficulty is None else np.asarray(difficulty)

    def crowd_at(level: float) -> SimulatedCrowd:
        hard = relative * np.exp(level)
        return simulate_crowd(truth=truth, difficulty=hard, random_state=seed, **options)

    def excess(level: float) -> float:
        return float(fleiss_kappa(crowd_at(level).annotations)) - kappa

    ends = [excess(level) for level in LEVELS]
    if not ends[0] > 0 > ends[1]:
        raise ParameterError(
            explain(
                f"No difficulty gives these workers a kappa of {kappa}.",
                found=f"{ends[1] + kappa:.3f} on very hard to {ends[0] + kappa:.3f} on easy tasks",
                fix="choose a kappa in between, or other workers",
            )
        )
    return crowd_at(brentq(excess, *LEVELS, xtol=1e-6))
