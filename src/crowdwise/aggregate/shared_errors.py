"""How much workers err together: the correlation of their errors on the same task."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.special import stdtr

from crowdwise.aggregate.dawid_skene import DawidSkene
from crowdwise.annotations import Annotations
from crowdwise.inference import Engine, Fingerprints, MemoryEngine, normalize
from crowdwise.inference.canonical import count_shared, sample_shared
from crowdwise.inference.posteriors import as_array
from crowdwise.typing import Floats, Ints

NAN = float("nan")
ENOUGH = 30_000  # maximum annotations, and cells of tasks x classes times 100, to measure on
MOST_CELLS = 20_000_000  # in all confusion matrices together
LEAST_TASKS = 10
FEW, MOST, WORK = 10, 20, 100_000  # crowds drawn for a fit, and annotations times crowds
USUAL, SPREAD = 0.12, 0.06  # mean and spread of the correlation in real crowds, by their labels
SHOWN = 0.07  # how much of it is visible, on average
ROUGH = 0.1  # how far off the visible part may be, since errors are shared in many ways
LEFT = 0.7  # part of it that counts; bags that differ account for the rest
INDEPENDENT = 0.2  # crowds whose workers err independently: of 21 real ones, all are dependent


class SharedErrors(NamedTuple):
    """Mean correlation of two workers' errors on the same task, and its values under chance."""

    found: float
    drawn: Floats  # (crowd,): the same in crowds of independent workers
    together: Floats  # (crowd,): the same in the first of these, if errors correlate by USUAL

    @property
    def excess(self) -> float:
        """The correlation, minus that of crowds of independent workers."""
        return self.found - float(self.drawn.mean())

    @property
    def error(self) -> float:
        """Standard error of the excess."""
        return float(self.drawn.std(ddof=1)) * np.sqrt(1.0 + 1.0 / len(self.drawn))

    @property
    def visible(self) -> float:
        """The visible part of a correlation: inferred truths follow shared errors."""
        more = self.together - self.drawn[: len(self.together)]
        return max(float(more.mean()) / USUAL, 0.0)

    @property
    def p_value(self) -> float:
        """P(a crowd of independent workers reaches this value), by Student's t."""
        if not self.error > 0:
            return NAN
        return float(stdtr(len(self.drawn) - 1, -self.excess / self.error))


class Dependence(NamedTuple):
    """The belief about a crowd's dependence."""

    correlation: float  # expected, less what differing bags account for
    independent: float  # probability that workers err independently
    shown: float  # probability that they do not, by the visible correlation alone


def believe(shared: SharedErrors | None) -> Dependence:
    """Weigh independence against the dependence that real crowds have.

    Only a part of a correlation is visible, less with fewer labels: what is found is divided by
    that part, and counts the less the smaller it is. Without a measurement, the prior belief is
    returned.
    """
    if shared is None or not shared.error > 0:
        return Dependence(LEFT * (1.0 - INDEPENDENT) * USUAL, INDEPENDENT, 0.5)
    excess, error, visible = max(shared.excess, 0.0), shared.error, shared.visible
    rough = float(np.hypot(error, ROUGH * USUAL))
    spread = float(np.hypot(visible * SPREAD, rough))
    odds = weigh_independence(excess, error, visible * USUAL, spread)
    independent = 1.0 / (1.0 + odds * (1.0 - INDEPENDENT) / INDEPENDENT)
    mean = USUAL / SPREAD**2 + visible * excess / rough**2
    mean /= 1.0 / SPREAD**2 + (visible / rough) ** 2
    shown = weigh_independence(excess, error, SHOWN, float(np.hypot(SPREAD, error)))
    correlation = LEFT * (1.0 - independent) * min(mean, 1.0)
    return Dependence(correlation, independent, shown / (1.0 + shown))


def weigh_independence(excess: float, error: float, mean: float, spread: float) -> float:
    """Return how much likelier an excess is in a dependent crowd, by two normal densities."""
    apart = ((excess - mean) / spread) ** 2 - (excess / error) ** 2
    return float(error / spread * np.exp(np.clip(-apart / 2.0, -500, 500)))


def measure_dependence(engine: Engine, of: Fingerprints) -> Dependence:
    """Measure how much workers err together, whatever the names and the order of rows."""
    return believe(measure_shared_errors(engine, of))


def measure_shared_errors(engine: Engine, of: Fingerprints) -> SharedErrors | None:
    """Measure it from the labels, on a sample if there are many tasks."""
    n_shared, n_labels = shared = count_shared(engine)
    if find_reason(engine, n_shared):
        return None
    most = most_annotations(engine, n_labels / n_shared)
    some, known = sample_shared(engine, of, shared, most, LEAST_TASKS)
    n_crowds = int(np.clip(WORK // max(some.n_annotations, 1), FEW, MOST))
    rng = np.random.RandomState(0)
    return share_errors(some, known, n_crowds, rng, n_together=n_crowds // 2)


def most_annotations(data: Annotations | Engine, per_task: float) -> int:
    """Return how many annotations are enough."""
    return min(ENOUGH, max(int(100 * ENOUGH / data.n_classes * per_task), 1))


def find_reason(data: Annotations | Engine, n_shared: int) -> str:
    """Explain why nothing can be measured; empty if it can."""
    if n_shared < LEAST_TASKS:
        return f"Not tested: fewer than {LEAST_TASKS} tasks have two labels or more."
    if data.n_classes < 2:
        return "Not tested: there is only one class."
    if data.n_workers * data.n_classes**2 > MOST_CELLS:
        return "Not tested: there are too many workers and classes."
    return ""


def share_errors(
    data: Annotations,
    gold: Ints | None,
    n_crowds: int,
    rng: np.random.RandomState,
    n_together: int = 0,
) -> SharedErrors:
    """Measure the correlation of errors, here and in crowds of simulated independent workers.

    The model is fitted to each of them as to the labels, which removes the bias of
    inferred truths: a parametric bootstrap. To ``n_together`` of them it is fitted again, with
    errors that correlate by ``USUAL``, which shows how much of a correlation is to be seen.
    """
    fitted = fit_independent(data, gold)
    drawn, together = np.empty(n_crowds), np.empty(n_together)
    for b in range(n_crowds):
        crowd, truth = draw_crowd(data, fitted, gold, rng)
        drawn[b] = correlate_errors(crowd, fit_independent(crowd, gold))
        if b < n_together:
            crowd = copy_errors(crowd, truth, fitted, rng)
            together[b] = correlate_errors(crowd, fit_independent(crowd, gold))
    return SharedErrors(correlate_errors(data, fitted), drawn, together)


class Fitted(NamedTuple):
    """Dawid and Skene's model of a crowd."""

    posterior: Floats
    prior: Floats
    confusion: Floats


def fit_independent(data: Annotations, gold: Ints | None) -> Fitted:
    """Fit the model of independent workers, with matrices shrunk toward the crowd's."""
    model = DawidSkene(smoothing=(1.0, 0.25), pooling=3.0, max_iter=40, tol=1e-3)
    model.tasks_, model.workers_, model.classes_ = data.tasks, data.workers, data.classes
    posterior = as_array(model._fit(MemoryEngine(data, gold)))
    return Fitted(posterior, model.prior_, model.confusion_)


def correlate_errors(data: Annotations, model: Fitted) -> float:
    """Return the mean correlation of whether two workers of a task are right."""
    posterior, right = model.posterior, np.einsum("wkk->wk", model.confusion)
    ones = np.ones(data.n_annotations)
    who = csr_array((ones, (data.task, data.worker)), shape=data.shape)
    own = np.zeros_like(posterior)  # (task, class): sums of P(right) of those who gave it
    np.add.at(own, (data.task, data.label), right[data.worker, data.label])
    votes, variance = data.votes(), right * (1.0 - right)
    total = (votes - who @ right) ** 2  # all products of two errors, and the squares
    squares = votes - 2.0 * own + who @ right**2
    scale = (who @ np.sqrt(variance)) ** 2 - who @ variance
    return float((posterior * (total - squares)).sum() / max((posterior * scale).sum(), 1e-300))


def draw_crowd(
    data: Annotations, model: Fitted, gold: Ints | None, rng: np.random.RandomState
) -> tuple[Annotations, Ints]:
    """Draw labels that the fitted workers might have given to the same tasks, and truths."""
    truth = draw_classes(np.tile(model.prior, (data.n_tasks, 1)), rng)
    if gold is not None:
        truth = np.where(gold >= 0, gold, truth)
    label = draw_classes(model.confusion[data.worker, truth[data.task]], rng)
    return replace(data, label=label.astype(np.int32)), truth


def copy_errors(
    crowd: Annotations,
    truth: Ints,
    model: Fitted,
    rng: np.random.RandomState,
    correlation: float = USUAL,
) -> Annotations:
    """Make the crowd's errors correlate.

    Each task has an answer drawn from the crowd's confusion, and two of its workers both give
    it with that probability.
    """
    n_labels = np.bincount(crowd.worker, minlength=crowd.n_workers).astype(np.float64)
    common = normalize(np.tensordot(n_labels, model.confusion, axes=1))
    answer = draw_classes(common[truth], rng)[crowd.task]
    copies = rng.random_sample(crowd.n_annotations) < np.sqrt(correlation)
    return replace(crowd, label=np.where(copies, answer, crowd.label).astype(np.int32))


def draw_classes(proba: Floats, rng: np.random.RandomState) -> Ints:
    """Draw a class number from each row of probabilities."""
    level = np.cumsum(proba[:, :-1], axis=1)
    return (rng.random_sample(len(proba))[:, None] > level).sum(axis=1)
