"""The two steps, compiled and plain, against each other and against loops."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose

from crowdwise.annotations import Annotations, Pairs
from crowdwise.inference import MemoryEngine, Sweep
from crowdwise.inference.engines import blocks
from crowdwise.inference.engines.kernels import Block, sweep_block
from crowdwise.inference.engines.memory import count, cut_cells
from crowdwise.simulate import simulate_crowd


def crowd(n_tasks=300, n_classes=3, *, weighted=False, soft=False, seed=0):
    rng = np.random.default_rng(seed)
    votes = simulate_crowd(n_tasks, 12, n_classes, 4, random_state=seed).annotations
    return Annotations.from_codes(
        votes.task,
        votes.worker,
        votes.label,
        tasks=np.arange(n_tasks + 2),  # the last two have no labels
        workers=np.arange(12),
        classes=np.arange(n_classes),
        weight=rng.uniform(0.1, 2.0, votes.n_annotations) if weighted else None,
        soft=rng.dirichlet(np.ones(n_classes), votes.n_annotations) if soft else None,
    )


def tables(n_truths, n_labels, seed=1):
    rng = np.random.default_rng(seed)
    log_prior = np.log(rng.dirichlet(np.full(n_truths, 2.0)))
    return log_prior, np.log(rng.dirichlet(np.ones(n_labels), (12, n_truths)))


def sweep(annotations, log_prior, log_confusion, offset=None, *, hard=False):
    """The pass over all tasks as one block, with all there is to know."""
    pairs = Pairs.all_of(*log_confusion.shape[::2])
    table, truths = pairs.take(log_confusion), np.zeros(len(log_prior))
    posterior, counts = np.empty((annotations.n_tasks, len(truths))), np.zeros_like(table)
    block = Block(annotations.cells, pairs.label, None, pairs.n_classes)
    sums = truths, counts, posterior
    evidence = sweep_block(block, log_prior, table, offset, *sums, hard=hard)
    return Sweep(evidence, truths, pairs.spread(counts), posterior)


def slow_pass(annotations, log_prior, log_confusion, offset, hard):
    """The same pass, one annotation at a time."""
    evidence, posterior = 0.0, []
    counts, truths = np.zeros_like(log_confusion), np.zeros(len(log_prior))
    for task in range(annotations.n_tasks):
        rows = range(annotations.indptr[task], annotations.indptr[task + 1])
        joint = log_prior + (0 if offset is None else offset[task])
        given = []
        for row in rows:
            weight = 1.0 if annotations.weight is None else float(annotations.weight[row])
            label = annotations.label[row]
            share = np.eye(annotations.n_classes)[label]
            share = share if annotations.soft is None else annotations.soft[row].astype(float)
            share = weight * share
            joint = joint + log_confusion[annotations.worker[row]] @ share
            given.append((annotations.worker[row], share))
        if hard:
            best = joint == joint.max()
            row_posterior, gain = best / best.sum(), joint.max()
        else:
            gain = np.log(np.exp(joint - joint.max()).sum()) + joint.max()
            row_posterior = np.exp(joint - gain)
        evidence += gain
        truths += row_posterior
        posterior.append(row_posterior)
        for worker, share in given:
            counts[worker] += np.outer(row_posterior, share)
    return evidence, truths, counts, np.array(posterior)


@pytest.mark.usefixtures("either_loop")
@pytest.mark.parametrize("hard", [False, True], ids=["soft EM", "hard EM"])
@pytest.mark.parametrize("kind", ["plain", "weighted", "soft", "both"])
@pytest.mark.parametrize("n_classes", [2, 3, 7, 20])
def test_equals_the_plain_loops(n_classes, kind, hard):
    weighted, soft = kind in ("weighted", "both"), kind in ("soft", "both")
    annotations = crowd(90, n_classes, weighted=weighted, soft=soft)
    offset = np.random.default_rng(2).normal(size=(annotations.n_tasks, n_classes))
    offset[3, :-1] = -np.inf
    log_prior, log_confusion = tables(n_classes, n_classes)
    found = sweep(annotations, log_prior, log_confusion, offset, hard=hard)
    expected = slow_pass(annotations, log_prior, log_confusion, offset, hard)
    parts = found.evidence, found.truths, found.counts, found.posterior
    for ours, plain in zip(parts, expected, strict=True):
        assert_allclose(ours, plain, rtol=1e-9, atol=1e-12)


@pytest.mark.usefixtures("either_loop")
def test_there_may_be_more_truths_than_labels():
    annotations = crowd(50, 3)
    log_prior, log_confusion = tables(6, 3)
    found = sweep(annotations, log_prior, log_confusion)
    expected = slow_pass(annotations, log_prior, log_confusion, None, False)
    assert_allclose(found.counts, expected[2])
    assert_allclose(found.posterior, expected[3])


@pytest.mark.usefixtures("either_loop")
def test_counts_of_a_given_posterior():
    annotations = crowd(60, 3, weighted=True)
    posterior = np.random.default_rng(3).dirichlet(np.ones(3), annotations.n_tasks)
    expected = np.zeros((12, 3, 3))
    columns = (annotations.task, annotations.worker, annotations.label, annotations.weight)
    for task, worker, label, weight in zip(*columns, strict=True):
        expected[worker, :, label] += weight * posterior[task]
    assert_allclose(count(annotations.cells, posterior, 12, 3), expected)


@pytest.mark.usefixtures("either_loop")
def test_blocks_add_up_to_the_whole(monkeypatch):
    annotations = crowd(2000, 3)
    log_prior, log_confusion = tables(3, 3)
    whole = sweep(annotations, log_prior, log_confusion)
    halves = [
        sweep(annotations[part], log_prior, log_confusion)
        for part in (slice(0, 700), slice(700, None))
    ]
    assert_allclose(whole.evidence, sum(half.evidence for half in halves))
    assert_allclose(whole.counts, sum(half.counts for half in halves))
    monkeypatch.setattr(blocks, "CELLS_PER_BLOCK", 500)
    assert len(cut_cells(annotations.cells, 0)) > 4
    engine = MemoryEngine(annotations)
    threaded = engine.sweep(log_prior, log_confusion)
    assert_allclose(threaded.counts, whole.counts)
    assert_allclose(engine.posterior(log_prior, log_confusion), whole.posterior)
    assert_allclose(threaded.evidence, whole.evidence)


def test_blocks_cover_every_task_once(monkeypatch):
    monkeypatch.setattr(blocks, "CELLS_PER_BLOCK", 64)
    edges = cut_cells(crowd(777, 2).cells, 0)
    assert edges[0][0] == 0
    assert edges[-1][1] == 779
    assert all(stop == start for (_, stop), (start, _) in pairwise(edges))


@pytest.mark.usefixtures("either_loop")
def test_a_task_with_thousands_of_labels_does_not_underflow():
    rng = np.random.default_rng(0)
    votes = Annotations.from_codes(
        np.zeros(5000, dtype=int), rng.integers(0, 12, 5000), rng.integers(0, 2, 5000),
        workers=np.arange(12),
    )  # fmt: skip
    log_prior, log_confusion = tables(2, 2)
    found = sweep(votes, log_prior, log_confusion)
    assert np.isfinite(found.evidence)
    assert_allclose(found.posterior.sum(axis=1), 1)


def test_exponentials_are_exact_to_rounding():
    # One task per exponent: the posterior of two truths is 1 / (1 + exp(-gap)).
    gap = np.concatenate([np.linspace(0, 45, 5000), [300.0, 700.0, 707.9, 710.0, 5000.0]])
    offset = np.column_stack([np.zeros_like(gap), -gap])
    votes = Annotations.from_codes([0], [0], [0], tasks=np.arange(len(gap)), classes=[0, 1])
    found = sweep(votes, np.zeros(2), np.zeros((1, 2, 2)), offset)
    expected = np.exp(-gap) / (1 + np.exp(-gap))
    assert_allclose(found.posterior[:, 1], expected, rtol=1e-15 * 4, atol=1e-307)
