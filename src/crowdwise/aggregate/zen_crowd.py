"""ZenCrowd: one reliability per worker, all equal at the start."""

import numpy as np
from numpy.typing import ArrayLike

from crowdwise.aggregate.one_coin import OneCoin
from crowdwise.base import DEVICES, THREADS, at_least, between, more_than
from crowdwise.inference import Engine
from crowdwise.typing import Floats


class ZenCrowd(OneCoin):
    """Infer truths with one reliability per worker, all equal at the start.

    The model is that of :class:`OneCoin` with a uniform class prior. EM starts from an
    E-step with every worker at ``start``, so the first posteriors are sharper than shares
    of labels, and takes a fixed number of steps.

    Parameters
    ----------
    start : float, default=0.8
        Reliability of every worker in the first step, from 0.01 to 0.99. The higher it is, the
        more the first majority decides.
    smoothing : float or pair of floats, default=0.01
        Right and wrong labels added to each worker's (a Beta prior on the reliability), so
        that no worker is ever certain.
    max_iter : int, default=20
        Maximum number of EM steps.
    tol : float, default=0
        Stop once a step improves the objective by less than this fraction; 0 always takes
        ``max_iter`` steps.
    n_jobs : int, optional
        Threads to use: all cores that this process may use by default and with -1, all but one
        with -2. Results do not depend on it.
    device : str, optional
        "cuda" or "cuda:1" to sweep on a GPU (needs PyTorch), "cpu" for the same code without
        one; by default in compiled code on this machine's cores.

    Attributes
    ----------
    prior_ : ndarray of shape (n_classes,)
        P(truth), uniform.
    accuracy_ : ndarray of shape (n_workers,)
        Probability that each worker is right.
    confusion_ : ndarray of shape (n_workers, n_classes, n_classes)
        The same as P(label | truth); the axes are worker, truth, label.
    skills_ : Series
        ``accuracy_`` by worker.
    objective_ : list of float
        Log-posterior of ``accuracy_`` after each step, up to a constant. Never falls.
    n_iter_ : int
        Number of EM steps.

    Notes
    -----
    The maths::

        P(truth of i = k) proportional to prod over w of P(label of w on i | k),
            all workers right with ``start`` at first
        P(w gives l | truth k) = accuracy[w] if l = k, else (1 - accuracy[w]) / (K - 1)

    Works when OneCoin does: few labels per worker, unsystematic errors, classes of about
    equal size.

    Fails when the first majority is wrong on many tasks, because a sharp start decides them
    early; and wherever OneCoin does.

    References
    ----------
    Demartini, Difallah and Cudré-Mauroux (2012). ZenCrowd: leveraging probabilistic reasoning
    and crowdsourcing techniques for large-scale entity linking. WWW.
    doi:10.1145/2187836.2187900

    Examples
    --------
    >>> labels = [[0, 0, 1], [1, 1, 0], [0, 0, 1], [1, 1, 0]]  # tasks x workers
    >>> ZenCrowd().fit_predict(labels).tolist()
    [0, 1, 0, 1]
    """

    _parameter_constraints = {
        "start": [between(0.01, 0.99)],
        "smoothing": [more_than(0.0), "array-like"],
        "max_iter": [at_least(1)],
        "tol": [at_least(0.0)],
        "n_jobs": THREADS,
        "device": DEVICES,
    }
    class_prior = "uniform"

    def __init__(
        self,
        *,
        start: float = 0.8,
        smoothing: ArrayLike = 0.01,
        max_iter: int = 20,
        tol: float = 0.0,
        n_jobs: int | None = None,
        device: str | None = None,
    ) -> None:
        self.start = start
        self.smoothing = smoothing
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.device = device

    def _start(self, engine: Engine, pseudo: Floats) -> tuple[Floats, Floats]:
        return np.zeros(engine.n_classes), np.full(engine.n_workers, self.start)
