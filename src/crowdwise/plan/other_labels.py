"""What the other labels of a task imply about its truth, and so about each worker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_softmax, logit, logsumexp, softmax

from crowdwise.annotations import Annotations
from crowdwise.inference import normalize, pooled_confusion
from crowdwise.typing import Array, Floats, Ints

POOLING = 3.0  # labels of the crowd's confusion in the matrices for removing a label
TINY = 1e-12  # minimum probability
AT_ONCE = 1 << 20  # cells of labels and classes processed together
EDGE = 0.01  # minimum distance of an accuracy from 0 and 1
SHIFTS = np.linspace(-4.0, 4.0, 17)  # between the log-odds of a worker and of the crowd to be right
SPREADS = np.array([0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.4])  # that shifts may have
STEPS = 10  # of EM for the crowd's matrix
MOST_LABELS = 100_000  # that the crowd's matrix and the heat are estimated from
MOST_JUDGED = 1_000_000  # labels that workers are judged by
COOLEST, HOTTEST = 1.0, 8.0  # posteriors are only softened


def without_own(
    votes: Annotations, posterior: Floats, rows: Ints
) -> Iterator[tuple[Ints, Floats, Floats]]:
    """Yield labels, their tasks' log-posterior without them, and their log-likelihood.

    In blocks; the last two are tables (label, truth).
    """
    confusion = pooled_confusion(votes, posterior, POOLING)
    size = max(AT_ONCE // votes.n_classes, 1)
    for start in range(0, len(rows), size):
        some = rows[start : start + size]
        own = np.log(confusion[votes.worker[some], :, votes.label[some]])
        log_posterior = np.log(np.maximum(posterior[votes.task[some]], TINY))
        yield some, log_softmax(log_posterior - own, axis=1), own


def sample(votes: Annotations, rows: Ints, most: int) -> Ints:
    """Return the labels of a part of the tasks, if there are more than so many labels."""
    step = len(rows) // most + 1
    return rows[votes.task[rows] % step == 0]


def find_heat(others: Floats, own: Floats) -> float:
    """Return by how much to soften what the other labels say, so that it predicts labels best."""

    def loss(heat: float) -> float:
        return -float(np.log(np.exp(log_softmax(others / heat, axis=1) + own).sum(axis=1)).mean())

    return float(minimize_scalar(loss, bounds=(COOLEST, HOTTEST), method="bounded").x)


class Judged(NamedTuple):
    """What held-out labels say about the crowd, and about its workers."""

    crowd: Floats  # (truth, label): P(label | truth) of a label by anyone
    shifted: Floats  # (shift, truth, label): likewise of workers who are better, or worse
    right: Floats  # (shift,): probability that a label of such a worker is right
    belief: Floats  # (worker, shift): probability of each; the last row is for anyone

    @property
    def skills(self) -> Floats:
        """Probability that a label is right, by worker."""
        return np.asarray(self.belief[:-1] @ self.right)

    def confusion(self, workers: Ints) -> Floats:
        """Return the expected matrix of workers, (worker, truth, label); -1 is anyone."""
        return np.einsum("ws,skl->wkl", self.belief[workers], self.shifted)

    def draw(self, workers: Ints, rng: np.random.RandomState) -> Floats:
        """Return matrices that these workers may have, as probably as they have them."""
        below = self.belief[workers].cumsum(axis=1) < rng.random_sample(len(workers))[:, None]
        return self.shifted[np.minimum(below.sum(axis=1), len(SHIFTS) - 1)]


def judge_workers(votes: Annotations, posterior: Floats, known: Array) -> Judged:
    """Estimate the crowd's confusion matrix, and how far each worker is better or worse.

    Each label is judged by the other labels of its task, since it has pulled the posterior
    toward itself; a single label only if the truth is known. Truths stay uncertain: a label
    speaks for a worker by its probability, given what the others say. How far workers differ
    is inferred from all of them; if by no more than chance, all are nearly the same.
    """
    k = votes.n_classes
    rows = np.flatnonzero((votes.redundancy > 1)[votes.task] | known[votes.task])
    weight = np.ones(votes.n_annotations) if votes.weight is None else votes.weight
    some = sample(votes, rows, MOST_LABELS)
    parts = list(without_own(votes, posterior, some))
    others, own = (np.concatenate([np.zeros((0, k)), *(p[i] for p in parts)]) for i in (1, 2))
    heat = find_heat(others, own) if len(some) else COOLEST
    crowd = learn_crowd(softmax(others / heat, axis=1), votes.label[some], weight[some])
    share = normalize(softmax(others / heat, axis=1).sum(axis=0) + 1.0 / k)
    odds = logit(np.clip(np.diag(crowd), EDGE, 1.0 - EDGE))
    shifted = with_accuracy(
        np.broadcast_to(crowd, (len(SHIFTS), k, k)), expit(odds + SHIFTS[:, None])
    )
    likely = np.zeros((len(SHIFTS), votes.n_workers))
    for each, log_truth, _ in without_own(votes, posterior, sample(votes, rows, MOST_JUDGED)):
        truth, worker = softmax(log_truth / heat, axis=1), votes.worker[each]
        for label in range(k):
            at = votes.label[each] == label
            log_label = weight[each[at], None] * np.log(truth[at] @ shifted[:, :, label].T)
            for shift, column in enumerate(log_label.T):
                likely[shift] += np.bincount(worker[at], column, minlength=votes.n_workers)
    return Judged(crowd, shifted, np.einsum("skk,k->s", shifted, share), believe(likely.T))


def learn_crowd(truth: Floats, label: Ints, weight: Floats) -> Floats:
    """Find the crowd's confusion matrix, by EM from what the other labels say about the truth."""
    k = truth.shape[1]
    after = truth
    for _ in range(STEPS):
        sums = [np.bincount(label, weight * column, minlength=k) for column in after.T]
        crowd = normalize(np.eye(k) + 1.0 / k + np.stack(sums))
        after = normalize(truth * crowd[:, label].T)
    return crowd


def believe(likely: Floats) -> Floats:
    """Return P(shift) of each worker, and in the last row of anyone, (worker + 1, shift).

    ``likely`` has the log-likelihoods of each worker's labels, (worker, shift). Shifts are
    normal, with a spread that is uncertain.
    """
    prior = log_softmax(-0.5 * (SHIFTS / SPREADS[:, None]) ** 2, axis=1)
    all_likely = np.vstack([likely, np.zeros(len(SHIFTS))])
    evidence = [logsumexp(likely + log_prior, axis=1).sum() for log_prior in prior]
    weights = softmax(evidence)
    return np.asarray(
        sum(
            part * softmax(all_likely + log_prior, axis=1)
            for part, log_prior in zip(weights, prior, strict=True)
        )
    )


def with_accuracy(confusion: Floats, right: Floats) -> Floats:
    """Return confusion matrices, (pair, truth, label), with these shares of right labels.

    ``right`` has one for each pair, or for each pair and truth.
    """
    diagonal = np.eye(confusion.shape[-1], dtype=bool)
    wrong = np.where(diagonal, 0.0, confusion + TINY)
    wrong /= np.maximum(wrong.sum(axis=2, keepdims=True), TINY)
    share = (right if right.ndim > 1 else right[:, None])[:, :, None]
    return np.where(diagonal, share, (1.0 - share) * wrong)
