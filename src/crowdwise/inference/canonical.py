"""The same crowd whatever its names and the order of its rows, for what is drawn from it."""

from dataclasses import replace

import numpy as np

from crowdwise.annotations import Annotations
from crowdwise.inference.fingerprints import Fingerprints
from crowdwise.typing import Array, Ints


def one_label_each(votes: Annotations) -> Annotations:
    """One label of each worker and task, all of equal weight.

    Where a worker has given a task different labels, none of them is kept.
    """
    counted = np.ones(votes.n_annotations, bool) if votes.weight is None else votes.weight > 0
    pair = votes.task.astype(np.int64) * votes.n_workers + votes.worker
    if votes.n_repeats:
        _, first, place = np.unique(pair[counted], return_index=True, return_inverse=True)
        label = votes.label[counted]
        other = label != label[first][place]
        clear = np.bincount(place, other, minlength=len(first)) == 0
        kept = np.zeros(votes.n_annotations, bool)
        kept[np.flatnonzero(counted)[first[clear]]] = True
        counted = kept
    some = votes if counted.all() else votes.filter(counted)
    return replace(some, weight=None, soft=None)


def in_one_order(
    votes: Annotations, gold: Ints | None, of: Fingerprints, rows: Ints
) -> tuple[Annotations, Ints | None]:
    """These tasks with all workers and classes, each in the order of the fingerprints."""
    rows = rows[np.argsort(of.tasks[rows], kind="stable")]
    task_at, worker_at = place_of(rows, votes.n_tasks), rank(of.workers)
    classes = np.argsort(of.classes, kind="stable")
    label_at = rank(of.classes)
    kept = task_at[votes.task] >= 0
    task, worker = task_at[votes.task[kept]], worker_at[votes.worker[kept]]
    label = label_at[votes.label[kept]]
    order = np.lexsort((worker, task))
    crowd = Annotations.from_codes(
        task[order],
        worker[order],
        label[order],
        tasks=np.arange(len(rows)),
        workers=np.arange(votes.n_workers),
        classes=np.arange(len(classes)),
    )
    if gold is None:
        return crowd, None
    known = gold[rows]
    return crowd, np.where(known >= 0, label_at[known], -1)


def rank(values: Array) -> Ints:
    """The place of each value in order; equal ones keep their order."""
    return place_of(np.argsort(values, kind="stable"), len(values))


def place_of(chosen: Ints, n: int) -> Ints:
    """Where each of ``n`` things is among those chosen, -1 if it is not."""
    place = np.full(n, -1, dtype=np.intp)
    place[chosen] = np.arange(len(chosen))
    return place
