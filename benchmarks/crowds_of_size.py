"""Simulated crowds of any size: power-law activity, one-coin workers with a little bias."""

import numpy as np

N_CLASSES = 4
PER_TASK = 5


def draw(n_annotations: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Integer columns of about ``n_annotations`` labels, five per task, and the truth.

    Workers' activity falls as a power of their rank; a tenth of them label at random, the
    others are right with a probability between 0.45 and 0.95 and err toward the next
    class twice as often as toward any other.
    """
    rng = np.random.default_rng(seed)
    n_tasks = n_annotations // PER_TASK
    n_workers = int(np.clip(np.sqrt(n_annotations) * 2, 50, 5000))
    activity = (1.0 + np.arange(n_workers)) ** -0.8
    skill = rng.uniform(0.45, 0.95, n_workers)
    skill[rng.random(n_workers) < 0.1] = 1 / N_CLASSES
    truth = rng.integers(0, N_CLASSES, n_tasks, dtype=np.int8)
    task = np.repeat(np.arange(n_tasks, dtype=np.int32), PER_TASK)
    edges = np.cumsum(activity / activity.sum())
    worker = np.searchsorted(edges, rng.random(len(task), dtype=np.float32)).astype(np.int32)
    np.minimum(worker, n_workers - 1, out=worker)
    right = rng.random(len(task), dtype=np.float32) < skill[worker]
    step = np.array([1, 1, 2, 3], dtype=np.int8)[rng.integers(0, 4, len(task), dtype=np.int8)]
    label = truth[task] + np.where(right, np.int8(0), step)
    return {"task": task, "worker": worker, "label": label % N_CLASSES, "truth": truth}
