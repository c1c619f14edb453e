"""Label model: workers' rates from how often pairs of them agree, by matrix completion."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment

from crowdwise import progress
from crowdwise.annotations import Annotations
from crowdwise.base import ConfusionModel, Traits, at_least, between, more_than, one_of
from crowdwise.errors import AnnotationError, ParameterError, explain
from crowdwise.inference import Engine, Trace, fixed_prior, log_of, normalize
from crowdwise.inference.moments import Moments, moments_of
from crowdwise.typing import Floats

MOST_RETRIES = 20


class LabelModel(ConfusionModel):
    """Infer truths from how often each pair of workers gives each pair of labels.

    Worker ``w`` gives label ``l`` to a task of true class ``k`` with probability
    ``rates_[w, k, l]``, and abstains otherwise. Workers are independent given the truth, so
    the rates of a pair of labels follow from their own; gradient descent fits the rates
    of all pairs. This is the model of MeTaL and of Snorkel since 0.9, made for labeling
    functions that cover most tasks. Second moments are stored sparsely: thousands of workers
    are fine.

    With more than two classes, pairs determine the rates only up to a rotation, and the one
    found depends on where the descent starts.

    For a sparse crowd this is a poor choice. A missing label counts as the worker's decision
    to abstain, rates are tiny, and the moments of a pair are based on the few tasks that both
    labeled: its accuracy is .32 on medical_causes, .72 on product and .77 on rte, where
    majority vote has .78, .90 and .90 (Snorkel 0.10 gives the same). Prefer
    :class:`DawidSkene` there.

    Parameters
    ----------
    class_prior : {"uniform", "estimate"} or array of shape (n_classes,), default="uniform"
        P(truth): uniform, the tasks' mean share of labels (gold labels counted in), or
        given.
    precision : float, default=0.7
        Initial probability that a label is right.
    start : float, default=0.5
        Rates start at this fraction of those implied by ``precision``; Snorkel draws it at random
        between 0 and 1. The closer to 0, the closer to chance workers with little overlap
        stay.
    penalty : float, default=0
        Strength of the pull of the rates toward those of ``precision``, as a factor of squares.
    learning_rate : float, default=0.01
        Size of a gradient step; it is divided by four until the steps do not diverge.
    momentum : float, default=0.9
        Share of a step that is carried over to the next.
    floor : float, optional
        Minimum distance of rates from 0 and 1. By default 0.01, or with more than 100 tasks one
        over the next power of ten of their number.
    max_iter : int, default=100
        Number of gradient steps.

    Attributes
    ----------
    rates_ : ndarray of shape (n_workers, n_classes, n_classes)
        P(worker gives this label | truth); the axes are worker, truth, label.
    confusion_ : ndarray of shape (n_workers, n_classes, n_classes)
        The same, given that the worker labels the task.
    prior_ : ndarray of shape (n_classes,)
        P(truth).
    skills_ : Series
        Probability that a worker's label is right.
    learning_rate_ : float
        Size of a gradient step that did not diverge.
    objective_ : list of float
        Minus the squared error of the moments, and the penalty, before each step. It may
        fall for a while, as momentum overshoots.
    n_iter_ : int
        Number of steps.

    Notes
    -----
    The maths::

        P(v gives a and w gives b)
            = sum over k of prior[k] * rates[v, k, a] * rates[w, k, b]   for all pairs v, w

    Works when a few labeling rules see most tasks, so that coincidences of pairs are well
    known; an abstention counts as evidence.

    Fails when a crowd is sparse: pairs that share few tasks say nothing, and not having been
    asked counts as abstaining. With more than two classes, the start decides.

    References
    ----------
    Ratner, Hancock, Dunnmon, Sala, Pandey and Ré (2019). Training complex models with
    multi-task weak supervision. AAAI 33. doi:10.1609/aaai.v33i01.33014763

    Examples
    --------
    >>> labels = [[0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 1, 0], [0, 0, -1]]  # tasks x workers
    >>> LabelModel().fit_predict(labels).tolist()
    [0, 1, 0, 1, 0]
    """

    _axes = {**ConfusionModel._axes, "rates_": ("workers_", "classes_", "classes_")}
    traits = Traits(abstention_counts=True, blockwise=False)  # moments are taken over all tasks
    _parameter_constraints = {
        "class_prior": [one_of("estimate", "uniform"), "array-like"],
        "precision": [between(0.0, 1.0)],
        "start": [more_than(0.0)],
        "penalty": [at_least(0.0)],
        "learning_rate": [more_than(0.0)],
        "momentum": [between(0.0, 1.0)],
        "floor": [between(0.0, 0.5), None],
        "max_iter": [at_least(1)],
    }

    def __init__(
        self,
        *,
        class_prior: ArrayLike = "uniform",
        precision: float = 0.7,
        start: float = 0.5,
        penalty: float = 0.0,
        learning_rate: float = 0.01,
        momentum: float = 0.9,
        floor: float | None = None,
        max_iter: int = 100,
    ) -> None:
        self.class_prior = class_prior
        self.precision = precision
        self.start = start
        self.penalty = penalty
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.floor = floor
        self.max_iter = max_iter

    def _fit(self, engine: Engine) -> Floats:
        annotations, _ = engine.collect()
        prior = fixed_prior(self.class_prior, annotations.n_classes)
        if prior is None:
            # One additional task of each class, so that none is ruled out.
            prior = normalize(engine.tally_votes().truths + 1.0)
        self.prior_ = prior
        moments = moments_of(annotations)
        guess = first_guess(moments.label, prior, self.precision)
        rates = self._descend(moments, guess)
        floor = smallest_rate(annotations.n_tasks) if self.floor is None else self.floor
        rates = match_truths(np.clip(rates, floor, 1.0 - floor), prior)
        self.rates_ = rates.swapaxes(1, 2)  # (worker, truth, label)
        self.confusion_ = normalize(self.rates_)
        return self._posterior(engine)

    def _posterior(self, engine: Engine) -> Floats:
        return engine.posterior(log_of(self.prior_), log_of(self.rates_))

    def _worker_rows(self) -> Mapping[str, Floats]:
        return {"rates_": self.rates_}

    def _refuse(self, data: Annotations) -> None:
        super()._refuse(data)
        n_workers = len(np.unique(data.worker))
        if n_workers < 3:
            raise AnnotationError(
                explain(
                    f"{type(self).__name__} compares pairs of workers; there are {n_workers}.",
                    expected="labels by at least three workers",
                    fix="choose a method for any crowd, such as DawidSkene or MajorityVote",
                )
            )

    def _descend(self, moments: Moments, guess: Floats) -> Floats:
        rate = self.learning_rate
        for _ in range(MOST_RETRIES):
            rates, velocity, trace = self.start * guess, np.zeros_like(guess), Trace()
            with np.errstate(over="ignore", invalid="ignore"):
                for _ in progress.track(range(self.max_iter), "LabelModel"):
                    error, slope = misfit(rates, self.prior_, moments, guess, self.penalty)
                    trace.record(-error)
                    velocity = self.momentum * velocity + slope
                    rates = rates - rate * velocity
            if np.isfinite(rates).all() and trace.objective[-1] >= trace.objective[0]:
                break
            rate /= 4
        if not np.isfinite(rates).all():
            raise ParameterError(
                explain(
                    f"LabelModel diverged at steps of every length down to {4 * rate:g}.",
                    expected="settings that keep its numbers finite",
                    fix="lower learning_rate, penalty or start",
                )
            )
        self.learning_rate_, self.objective_ = rate, trace.objective
        self.n_iter_ = len(trace.objective)
        return rates


def first_guess(label: Floats, prior: Floats, precision: float) -> Floats:
    """Return rates (worker, label, truth) for labels with this precision."""
    return np.eye(len(prior)) * np.minimum(label * precision / prior, 1.0)[:, :, None]


def misfit(
    rates: Floats, prior: Floats, moments: Moments, guess: Floats, penalty: float
) -> tuple[float, Floats]:
    """Return the squared error of all moments, and its gradient by the rates.

    Pairs are expected at ``rates P rates'``, a matrix too large to be computed: its
    squares are those of the small ``rates' rates``, minus the part within each worker.
    """
    joint = rates * prior  # P(label and truth)
    seen = (moments.pair @ joint.reshape(-1, len(prior))).reshape(rates.shape)
    own = rates.swapaxes(1, 2) @ rates  # (worker, truth, truth)
    total, weight = own.sum(axis=0), np.multiply.outer(prior, prior)
    pairs = (weight * total**2).sum() - (weight * own**2).sum() - 2.0 * (seen * rates).sum()
    surplus = joint.sum(axis=2) - moments.label  # (worker, label)
    pull = rates - guess
    error = (moments.pair.data**2).sum() + pairs + (surplus**2).sum() + penalty * (pull**2).sum()
    slope = 4.0 * (joint @ (total - own) * prior - seen) + 2.0 * surplus[:, :, None] * prior
    return float(error), slope + 2.0 * penalty * pull


def smallest_rate(n_tasks: int) -> float:
    """Return 0.01, or one over the next power of ten of many tasks."""
    return float(min(0.01, 10.0 ** -np.ceil(np.log10(n_tasks))))


def match_truths(rates: Floats, prior: Floats) -> Floats:
    """Swap truths that are equally likely so that labels are right most often.

    The moments cannot distinguish such truths.
    """
    right = (rates * prior).sum(axis=0)  # (label, truth)
    alike = np.round(prior, 3)
    right[alike[:, None] != alike] = -np.inf  # not to be swapped
    _, truth = linear_sum_assignment(right, maximize=True)
    return rates[:, :, truth]
