"""What the other labels of a task imply about its truth, and so about each worker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import betaln, expit, log_softmax, logit

from crowdwise.annotations import Annotations
from crowdwise.inference import normalize, pooled_confusion
from crowdwise.typing import Array, Floats, Ints

POOLING = 3.0  # labels of the crowd's confusion in the matrices for removing a label
TINY = 1e-12  # minimum probability
AT_ONCE = 1 << 20  # cells of labels and classes processed together
EDGE = 0.01  # minimum distance of an accuracy from 0 and 1
STRENGTHS = (3.0, 8.0, 20.0, 50.0, 120.0, 300.0, 1000.0)  # possible weights of the crowd, in labels


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


class Judged(NamedTuple):
    """What held-out labels say about the crowd, and about its workers."""

    crowd: Floats  # (truth, label): P(label | truth) of a label by anyone
    usual: float  # probability that a label is right
    skills: Floats  # (worker,): likewise by worker

    def confusion(self, workers: Ints) -> Floats:
        """Return the crowd's matrix, adjusted to workers' accuracies, (worker, truth, label).

        Workers are given by number; -1 is anyone. The log-odds of all classes change equally.
        """
        right = np.append(self.skills, self.usual)[workers]
        shift = logit(np.clip(right, EDGE, 1.0 - EDGE)) - logit(self.usual)
        odds = logit(np.clip(np.diag(self.crowd), EDGE, 1.0 - EDGE)) + shift[:, None]
        everyone = np.broadcast_to(self.crowd, (len(right), *self.crowd.shape))
        return with_accuracy(everyone, expit(odds))


def judge_workers(votes: Annotations, posterior: Floats, known: Array) -> Judged:
    """Estimate how often each worker is right, and the crowd's confusion matrix.

    Each label is judged by the other labels of its task, since it has pulled the posterior
    toward itself; a single label only if the truth is known. Workers are shrunk toward
    the crowd as much as makes their labels most probable: if they do not differ by more
    than chance, all are nearly the same.
    """
    k = votes.n_classes
    counts, right, total = np.eye(k) + 1.0 / k, np.zeros(votes.n_workers), np.zeros(votes.n_workers)
    weight = np.ones(votes.n_annotations) if votes.weight is None else votes.weight
    judged = np.flatnonzero((votes.redundancy > 1)[votes.task] | known[votes.task])
    for some, log_truth, _ in without_own(votes, posterior, judged):
        truth, worker, label = np.exp(log_truth), votes.worker[some], votes.label[some]
        truth *= weight[some, None]
        hit = truth[np.arange(len(some)), label]
        right += np.bincount(worker, hit, minlength=votes.n_workers)
        total += np.bincount(worker, weight[some], minlength=votes.n_workers)
        counts += np.stack([np.bincount(label, column, minlength=k) for column in truth.T])
    share = float(np.clip(np.trace(counts) / counts.sum(), EDGE, 1.0 - EDGE))
    strength = max(STRENGTHS, key=lambda n: evidence(right, total - right, n * share, n))
    return Judged(normalize(counts), share, (right + strength * share) / (total + strength))


def evidence(right: Floats, wrong: Floats, hits: float, strength: float) -> float:
    """Return the log-probability of workers' results if accuracies share one distribution."""
    prior = hits, strength - hits
    wrong = np.maximum(wrong, 0.0)  # rounding may give negative values
    return float((betaln(right + prior[0], wrong + prior[1]) - betaln(*prior)).sum())


def with_accuracy(confusion: Floats, right: Floats) -> Floats:
    """Return confusion matrices, (pair, truth, label), with these shares of right labels.

    ``right`` has one for each pair, or for each pair and truth.
    """
    diagonal = np.eye(confusion.shape[-1], dtype=bool)
    wrong = np.where(diagonal, 0.0, confusion + TINY)
    wrong /= np.maximum(wrong.sum(axis=2, keepdims=True), TINY)
    share = (right if right.ndim > 1 else right[:, None])[:, :, None]
    return np.where(diagonal, share, (1.0 - share) * wrong)
