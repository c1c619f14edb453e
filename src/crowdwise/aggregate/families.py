"""Families of workers who err together: who belongs to them, and how strongly."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.special import stdtr

from crowdwise.aggregate.shared_errors import (
    LEAST_TASKS,
    USUAL,
    Fitted,
    copy_errors,
    correlate_errors,
    draw_crowd,
    find_reason,
    fit_independent,
    most_annotations,
)
from crowdwise.annotations import Annotations
from crowdwise.inference import Engine, Fingerprints, normalize
from crowdwise.inference.canonical import count_shared, rank, sample_shared
from crowdwise.typing import Array, Floats, Ints

MOST_CELLS = 100_000  # in all confusion matrices together
MOST_WORKERS = 150  # that are compared, those with the most labels
N_CROWDS = 12  # simulated crowds without families, and those that tell how they err in common
LEVEL = 0.02  # of the test: its tail is rough, and .05 would be .1 in some crowds
ROUGH = 0.25  # least spread of the logarithm of gains
EVEN = 0.05  # added to P(label | truth), so that single agreements on rare labels do not decide
STEPS = 40  # of EM
CLEAR = 3.0  # gain in log likelihood that another family must bring
LEAST, MOST = 1e-3, 0.98  # bounds of a worker's strength
TINY = 1e-12


@dataclass(frozen=True, eq=False)
class Families:
    """Groups of workers whose labels agree more than those of others, given the truth.

    On each task a family has an answer; each member gives it with some probability (``strength``)
    and otherwise a label of its own.
    """

    number: Ints  # (worker,): which family, -1 for workers in none
    strength: Floats  # (worker,): probability of giving its answer, 0 for workers in none
    p_value: float  # of the clearest one, among workers who err alike in pairs; NaN if not tested

    @classmethod
    def none(cls, n_workers: int, p_value: float = np.nan) -> Families:
        return cls(np.full(n_workers, -1), np.zeros(n_workers), p_value)

    def __len__(self) -> int:
        return int(self.number.max(initial=-1)) + 1

    def members(self) -> list[Ints]:
        """Return the workers of each family."""
        return [np.flatnonzero(self.number == f) for f in range(len(self))]

    def worth(self, task: Ints, worker: Ints, n_tasks: int) -> Floats:
        """Return how many independent labels those of each task are worth.

        By Kish's formula: ``n`` labels are worth ``n ** 2`` divided by the sum of the
        correlations of all pairs, here the product of two strengths within a family.
        """
        n = np.bincount(task, minlength=n_tasks).astype(np.float64)
        own = self.number[worker] >= 0
        place = task[own] * max(len(self), 1) + self.number[worker[own]]
        some, place = np.unique(place, return_inverse=True)
        strength = self.strength[worker[own]]
        pairs = np.bincount(place, strength) ** 2 - np.bincount(place, strength**2)
        within = np.bincount(some // max(len(self), 1), pairs, minlength=n_tasks)
        return np.divide(n**2, n + within, out=np.zeros(n_tasks), where=n > 0)


def measure_families(engine: Engine, of: Fingerprints) -> Families:
    """Find families from the labels of an engine, whatever the names and the order of rows.

    With many tasks, a sample of them is used; with very many classes, none are looked for.
    """
    n_shared, n_labels = shared = count_shared(engine)
    if find_reason(engine, n_shared) or engine.n_workers * engine.n_classes**2 > MOST_CELLS:
        return Families.none(engine.n_workers)
    most = most_annotations(engine, n_labels / n_shared)
    some, known = sample_shared(engine, of, shared, most, LEAST_TASKS)
    found, place = find_families(some, known), rank(of.workers)
    return replace(found, number=found.number[place], strength=found.strength[place])


def find_families(
    data: Annotations, gold: Ints | None = None, rng: np.random.RandomState | None = None
) -> Families:
    """Find families, if there are any that are clearer than chance makes them.

    Under a model of independent workers, pairs agree by chance; what they agree beyond it, and
    beyond the average pair, is summed up over groups of workers that grow greedily. The clearest
    group is compared with those of crowds without families, drawn from the model with errors
    that all pairs have in common, as on hard or misleading tasks. Of the groups that pass, those
    are kept that make the labels more probable.

    Parameters
    ----------
    data : Annotations
        One label per worker and task.
    gold : ndarray of shape (n_tasks,), optional
        Class number of known truths, -1 for the others.
    rng : RandomState, optional
        Random numbers of the simulated crowds.
    """
    rng = np.random.RandomState(0) if rng is None else rng
    busy = np.argsort(-np.bincount(data.worker, minlength=data.n_workers), kind="stable")
    busy = np.sort(busy[:MOST_WORKERS])
    model = fit_independent(data, gold)
    groups = group_workers(*agree(data, model, busy))
    rate = common_rate(data, model, gold, rng)
    chance = []
    for _ in range(N_CROWDS):
        crowd, truth = draw_crowd(data, model, gold, rng)
        crowd = copy_errors(crowd, truth, model, rng, rate)
        others = group_workers(*agree(crowd, fit_independent(crowd, gold), busy))
        chance.append(max((group.gain for group in others), default=0.0))
    p_values = [tail(group.gain, np.array(chance)) for group in groups]
    clear = [busy[g.members] for g, p in zip(groups, p_values, strict=True) if p < LEVEL]
    found = keep_probable(data, gold, model, clear)
    return replace(found, p_value=min(p_values, default=1.0))


def tail(gain: float, chance: Floats) -> float:
    """P(the clearest group of a crowd without families reaches this gain), by Student's t."""
    logs = np.log(chance + 1.0)
    error = max(float(logs.std(ddof=1)), ROUGH) * np.sqrt(1.0 + 1.0 / len(logs))
    return float(stdtr(len(logs) - 1, -(np.log(gain + 1.0) - logs.mean()) / error))


def common_rate(
    data: Annotations, model: Fitted, gold: Ints | None, rng: np.random.RandomState
) -> float:
    """Return the correlation of errors that explains the mean one, if all pairs have it."""
    alone, together = np.empty(N_CROWDS), np.empty(N_CROWDS)
    for b in range(N_CROWDS):
        crowd, truth = draw_crowd(data, model, gold, rng)
        alone[b] = correlate_errors(crowd, fit_independent(crowd, gold))
        crowd = copy_errors(crowd, truth, model, rng)
        together[b] = correlate_errors(crowd, fit_independent(crowd, gold))
    visible = max(float((together - alone).mean()) / USUAL, 0.1)
    excess = correlate_errors(data, model) - float(alone.mean())
    return float(np.clip(excess / visible, 0.0, 0.9))


def agree(data: Annotations, model: Fitted, busy: Ints) -> tuple[Floats, Floats]:
    """Sum up how much pairs of these workers agree beyond chance, and its variance by chance.

    This is the slope of the log likelihood in the probability that both give one answer; less
    what the average pair has.
    """
    n, n_classes = len(busy), data.n_classes
    place = np.full(data.n_workers, -1)
    place[busy] = np.arange(n)
    kept = np.flatnonzero(place[data.worker] >= 0)
    task, worker, label = data.task[kept], place[data.worker[kept]], data.label[kept]
    excess, variance = np.zeros((n, n)), np.zeros((n, n))
    for k in range(n_classes):
        given = model.confusion[busy, k]  # (worker, label)
        root = np.sqrt(model.posterior[task, k])
        both = pair_sums(root, task, worker, (data.n_tasks, n))
        weight = root / np.sqrt(given[worker, label] + EVEN)
        seen = pair_sums(weight, task * n_classes + label, worker, (data.n_tasks * n_classes, n))
        scaled = given / np.sqrt(given + EVEN)
        expected = scaled @ scaled.T
        square = given / (given + EVEN)
        excess += seen - both * expected
        variance += both * np.maximum(square @ square.T - expected**2, 0.0)
    mean = excess.sum() / max(variance.sum(), TINY)
    return excess - mean * variance, variance


def pair_sums(weight: Floats, row: Ints, worker: Ints, shape: tuple[int, int]) -> Floats:
    """Sum products of the weights of two workers over common rows; 0 on the diagonal."""
    table = csr_array((weight, (row, worker)), shape=shape)
    sums = np.asarray((table.T @ table).toarray())
    np.fill_diagonal(sums, 0.0)
    return sums


class Group(NamedTuple):
    """Workers who agree more than others."""

    gain: float  # approximate gain in log likelihood
    members: Ints


def group_workers(excess: Floats, variance: Floats) -> list[Group]:
    """Join the two groups that gain most by it, again and again; the clearest group first."""
    n = len(excess)
    excess, variance = excess.copy(), variance.copy()
    own, spread = np.zeros(n), np.zeros(n)  # sums over the pairs within each group
    groups, rows = [[w] for w in range(n)], np.arange(n)
    gain = np.array([gain_of_joining(w, own, spread, excess, variance) for w in range(n)])
    while n > 1:
        first, second = sorted(divmod(int(gain.argmax()), n))
        if not gain[first, second] > 0.0:
            break
        own[first] += own[second] + excess[first, second]
        spread[first] += spread[second] + variance[first, second]
        for sums in (excess, variance):
            sums[first] += sums[second]
            sums[:, first] = sums[first]
            sums[first, first] = 0.0
        groups[first] += groups[second]
        groups[second] = []
        own[second] = spread[second] = 0.0
        gain[second] = gain[:, second] = -np.inf
        row = gain_of_joining(first, own, spread, excess, variance)
        row[[not group for group in groups]] = -np.inf
        gain[first] = gain[:, first] = row
    gains = gain_of(own, spread)
    found = [Group(float(gains[w]), np.array(sorted(groups[w]))) for w in rows if own[w] > 0.0]
    return sorted(found, key=lambda group: -group.gain)


def gain_of(excess: Array, variance: Array) -> Floats:
    return np.maximum(excess, 0.0) ** 2 / (2.0 * variance + TINY)


def gain_of_joining(
    w: int, own: Floats, spread: Floats, excess: Floats, variance: Floats
) -> Floats:
    """Return the gain if a group joins each of the others; none with itself."""
    joined = gain_of(own[w] + own + excess[w], spread[w] + spread + variance[w])
    more = joined - gain_of(own[w], spread[w]) - gain_of(own, spread)
    more[w] = -np.inf
    return more


def keep_probable(
    data: Annotations, gold: Ints | None, model: Fitted, groups: list[Ints]
) -> Families:
    """Return the families that make labels more probable, the most helpful first.

    If half of the workers copy one another, the others also agree more than the model of
    independent workers expects; the likelihood tells which half it is.
    """
    number, best = np.full(data.n_workers, -1), fit_families(data, gold, model, None)
    while groups:
        tried = []
        for group in groups:
            more = number.copy()
            more[group] = number.max() + 1
            tried.append((fit_families(data, gold, model, more), more))
        place = int(np.argmax([found.log_likelihood for found, _ in tried]))
        if not tried[place][0].log_likelihood > best.log_likelihood + CLEAR:
            break
        best, number = tried[place]
        groups = groups[:place] + groups[place + 1 :]
    return Families(number, best.strength, np.nan)


class FittedFamilies(NamedTuple):
    """Dawid and Skene's model in which families have an answer of their own."""

    posterior: Floats
    strength: Floats  # (worker,)
    log_likelihood: float


def fit_families(
    data: Annotations, gold: Ints | None, model: Fitted, number: Ints | None
) -> FittedFamilies:
    """Fit strengths and matrices by EM.

    The model::

        P(labels of a family | truth) =
            sum over a of P(answer a | truth) prod over members of
                (strength * [label is a] + (1 - strength) * confusion[truth, label])
    """
    number = np.full(data.n_workers, -1) if number is None else number
    n_classes, n_families = data.n_classes, int(number.max(initial=-1)) + 1
    confusion, prior = model.confusion, model.prior
    member = number >= 0
    strength = np.where(member, 0.5, 0.0)
    answers = np.tile(normalize(confusion.mean(axis=0)), (n_families, 1, 1))
    family = number[data.worker]
    inside = [np.flatnonzero(family == f) for f in range(n_families)]
    ruled_out = np.full((data.n_tasks, n_classes), False)
    if gold is not None:
        ruled_out = (gold[:, None] >= 0) & (gold[:, None] != np.arange(n_classes))
    by_task = adder(data.task, data.n_tasks)
    by_pair = adder(data.worker * n_classes + data.label, data.n_workers * n_classes)
    n_labels = np.bincount(data.worker, minlength=data.n_workers)
    last = -np.inf
    for _ in range(STEPS):
        given = np.maximum(confusion[data.worker, :, data.label], TINY)  # (annotation, truth)
        copy = strength[data.worker][:, None]
        log = np.log(prior) + by_task @ np.log((1.0 - copy) * given)
        more = np.log1p(copy / ((1.0 - copy) * given))
        said = [say(data, rows, more[rows], answers[f]) for f, rows in enumerate(inside)]
        for part, _ in said:
            log += part
        log[ruled_out] = -np.inf
        peak = log.max(axis=1, keepdims=True)
        posterior = np.exp(log - peak)
        total = posterior.sum(axis=1, keepdims=True)
        posterior /= total
        likelihood = float((np.log(total) + peak).sum())
        own = posterior[data.task]  # P(truth, own label)
        for f, rows in enumerate(inside):
            joint = posterior[:, :, None] * said[f][1]  # (task, truth, answer)
            answers[f] = normalize(joint.sum(axis=0) + answers[f])
            fits = joint[data.task[rows], :, data.label[rows]]
            own[rows] -= fits * (copy / (copy + (1.0 - copy) * given))[rows]
        copied = n_labels - np.bincount(data.worker, own.sum(axis=1), minlength=data.n_workers)
        strength = np.where(member, np.clip((copied + 1.0) / (n_labels + 2.0), LEAST, MOST), 0.0)
        counts = (by_pair @ own).reshape(-1, n_classes, n_classes).swapaxes(1, 2)
        pooled = normalize(counts.sum(axis=0) + 1.0)
        confusion = normalize(counts + 3.0 * pooled + 0.25 + 0.75 * np.eye(n_classes))
        prior = normalize(posterior.sum(axis=0) + 1.0)
        if abs(likelihood - last) < 1e-2:
            break
        last = likelihood
    return FittedFamilies(posterior, strength, likelihood)


def say(data: Annotations, rows: Ints, more: Floats, answers: Floats) -> tuple[Floats, Floats]:
    """Return log P(labels of a family | truth), up to its members' own, and P(answer | both).

    ``more`` is the log of how much an annotation gains if it is the family's answer.
    """
    n_classes = data.n_classes
    place = data.task[rows] * n_classes + data.label[rows]
    sums = adder(place, data.n_tasks * n_classes) @ more
    log = sums.reshape(data.n_tasks, n_classes, n_classes).swapaxes(1, 2) + np.log(answers)
    peak = log.max(axis=2, keepdims=True)
    chance = np.exp(log - peak)
    total = chance.sum(axis=2, keepdims=True)
    return (np.log(total) + peak)[:, :, 0], chance / total


def adder(place: Ints, n_rows: int) -> csr_array:
    """Return a matrix that adds up annotations by their places."""
    return csr_array((np.ones(len(place)), (place, np.arange(len(place)))), (n_rows, len(place)))
