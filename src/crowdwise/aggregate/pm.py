"""PM, also known as CRH: truths and weights that jointly minimize a loss."""

import numpy as np

from crowdwise.base import DEVICES, RepeatedVote, at_least, more_than, one_of
from crowdwise.typing import Floats


class PM(RepeatedVote):
    """Infer truths that disagree least with workers, most of all with reliable ones.

    Truths and weights alternate in minimizing the sum over workers of weight times loss,
    where the loss counts labels that disagree with the truths. Given the losses, a weight
    is minus the log of the worker's share of them. Also known as CRH.

    Parameters
    ----------
    loss : {"count", "rate"}, default="count"
        A worker's loss: the number of labels that disagree, which is what the method
        minimizes, or their share. The number penalizes workers with many labels.
    scale : {"max", "sum"}, default="max"
        What losses are relative to: the largest one, so that the worst worker counts for
        nothing, or the sum of all, which makes weights nearly equal in a large crowd.
    smoothing : float, default=0.5
        Labels that disagree (and, for a rate, that agree) added to each worker's, so that
        one who never disagreed has a finite weight.
    max_iter : int, default=100
        Maximum number of rounds of voting and weighing; they end once the weights are stable.
    device : str, optional
        "cuda" or "cuda:1" to sweep on a GPU (needs PyTorch), "cpu" for the same code without
        one; by default in compiled code on this machine's cores.

    Attributes
    ----------
    weights_ : ndarray of shape (n_workers,)
        Weight of each worker.
    skills_ : Series
        Share of each worker's labels that agree with the previous vote, or with gold. A label
        that is one of ``m`` tied for the lead agrees by ``1 / m``.
    n_iter_ : int
        Number of rounds.

    Notes
    -----
    The maths::

        weight[w]
            = log(largest loss of a worker / loss[w]), loss[w] = disagreements of w + smoothing
        truth[i] = argmax over k of sum over w of weight[w] * [w gave i the label k]

    Works when workers have similar numbers of labels, and errors are unsystematic.

    Fails when numbers of labels differ: the loss is a count, so workers with few labels
    look good (``loss="rate"`` divides by it). The worst worker has no weight at all.

    References
    ----------
    Li, Li, Gao, Zhao, Fan and Han (2014). Resolving conflicts in heterogeneous data by truth
    discovery and source reliability estimation. SIGMOD. doi:10.1145/2588555.2610509

    Aydin, Yilmaz, Li, Li, Gao and Demirbas (2014). Crowdsourcing for multiple-choice question
    answering. IAAI.

    Examples
    --------
    >>> labels = [[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, -1, 0]]  # tasks x workers
    >>> PM().fit_predict(labels).tolist()
    [0, 1, 0, 1]
    """

    _parameter_constraints = {
        "loss": [one_of("rate", "count")],
        "scale": [one_of("max", "sum")],
        "smoothing": [more_than(0.0)],
        "max_iter": [at_least(1)],
        "device": DEVICES,
    }

    def __init__(
        self,
        *,
        loss: str = "count",
        scale: str = "max",
        smoothing: float = 0.5,
        max_iter: int = 100,
        device: str | None = None,
    ) -> None:
        self.loss = loss
        self.scale = scale
        self.smoothing = smoothing
        self.max_iter = max_iter
        self.device = device

    def _weigh(self, agreed: Floats, given: Floats) -> Floats:
        loss = given - agreed + self.smoothing
        if self.loss == "rate":
            loss = loss / (given + 2.0 * self.smoothing)
        return log_parts(loss, loss.max() if self.scale == "max" else loss.sum())


def log_parts(loss: Floats, whole: float) -> Floats:
    """Return workers' weights (CRH, eq. 5): minus the log of their share of ``whole``."""
    return np.maximum(np.log(whole / loss), 0.0)  # rounding may leave a -0.0
