"""Zero-based skill: weights that start at chance and learn how workers agree with the vote."""

import numpy as np

from crowdwise import progress
from crowdwise.base import DEVICES, WeightedVote, at_least, between
from crowdwise.base.weighted_vote import agreement_rate, count_agreement, have_settled
from crowdwise.inference import Engine, Posterior


class ZeroBasedSkill(WeightedVote):
    """Infer truths by votes in which workers count by a skill that is learned step by step.

    All skills start at chance. After each vote a skill takes a step toward the share of the
    worker's labels that agree with it, which is a gradient step on their squared difference.

    Parameters
    ----------
    learning_rate : float, default=1.0
        Fraction of the way covered by a step; 1 is all of it.
    decay : float, default=0.5
        Factor by which the learning rate is multiplied every ``decay_every`` steps. With a
        learning rate of 1, skills are usually stable before the first decay.
    decay_every : int, default=20
        Steps between two decays.
    max_iter : int, default=100
        Maximum number of steps; they end once the skills are stable, usually within ten.
    device : str, optional
        "cuda" or "cuda:1" to sweep on a GPU (needs PyTorch), "cpu" for the same code without
        one; by default in compiled code on this machine's cores.

    Attributes
    ----------
    weights_ : ndarray of shape (n_workers,)
        Weight of each worker.
    skills_ : Series
        ``weights_`` by worker: the share of labels that agree with the votes, or with gold,
        averaged over steps. A label that is one of ``m`` tied for the lead agrees by
        ``1 / m``.
    n_iter_ : int
        Number of steps.

    Notes
    -----
    The maths::

        skill[w] moves by learning_rate * (agreement[w] - skill[w])
        agreement[w] = share of w's labels that agree with the vote
        truth[i] = argmax over k of sum over w of skill[w] * [w gave i the label k]

    Works when Wawa does; repeating the vote gives good workers a little more weight.

    Fails when there are many spammers, who keep the weight of chance; and when the majority is
    wrong about a class.

    References
    ----------
    Ustalov, Pavlichenko and Tseitlin (2024). Learning from crowds with Crowd-Kit. Journal of
    Open Source Software 9(96). doi:10.21105/joss.06227

    Examples
    --------
    >>> labels = [[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, -1, 0]]  # tasks x workers
    >>> ZeroBasedSkill().fit_predict(labels).tolist()
    [0, 1, 0, 1]
    """

    _parameter_constraints = {
        "learning_rate": [between(0.0, 1.0)],
        "decay": [between(0.0, 1.0)],
        "decay_every": [at_least(1)],
        "max_iter": [at_least(1)],
        "device": DEVICES,
    }

    def __init__(
        self,
        *,
        learning_rate: float = 1.0,
        decay: float = 0.5,
        decay_every: int = 20,
        max_iter: int = 100,
        device: str | None = None,
    ) -> None:
        self.learning_rate = learning_rate
        self.decay = decay
        self.decay_every = decay_every
        self.max_iter = max_iter
        self.device = device

    def _fit(self, engine: Engine) -> Posterior:
        skill = np.full(engine.n_workers, 1.0 / engine.n_classes)
        steps = range(1, self.max_iter + 1)
        for number in progress.track(steps, "ZeroBasedSkill, at most"):
            rate = self.learning_rate * self.decay ** (number // self.decay_every)
            before = skill
            skill = before + rate * (agreement_rate(*count_agreement(engine, before)) - before)
            if have_settled(before, skill):
                break
        self.n_iter_ = number
        self.weights_ = self.agreement_ = skill
        return self._posterior(engine)
