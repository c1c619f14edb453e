"""How often workers give labels, alone and in pairs."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from crowdwise.annotations import Annotations
from crowdwise.errors import ParameterError, explain
from crowdwise.typing import Floats, Ints

MOST_PAIRS = 20_000**2  # non-zero second moments that fit in a few gigabytes


@dataclass(frozen=True)
class Moments:
    """How often workers give labels, alone and in pairs."""

    label: Floats  # (worker, label): share of all tasks with that label
    pair: csr_array  # (worker and label, worker and label): the same; 0 within a worker


def moments_of(annotations: Annotations) -> Moments:
    """First and second moments of the labels, from the sparse cells."""
    n_classes, cells = annotations.n_classes, annotations.cells
    n_codes = annotations.n_workers * n_classes
    refuse_size(n_codes, np.diff(cells.indptr))
    given = cells.matrix(0, annotations.n_tasks, n_codes)
    pair = (given.T @ given).tocoo() / annotations.n_tasks
    apart = pair.row // n_classes != pair.col // n_classes
    places = pair.row[apart], pair.col[apart]
    label = given.sum(axis=0).reshape(-1, n_classes) / annotations.n_tasks
    return Moments(label, csr_array((pair.data[apart], places), shape=pair.shape))


def refuse_size(n_codes: int, per_task: Ints) -> None:
    """Stop before second moments that would not fit."""
    n_pairs = min(n_codes**2, int((per_task.astype(np.int64) ** 2).sum()))
    if n_pairs > MOST_PAIRS:
        raise ParameterError(
            explain(
                f"{n_codes:,} pairs of worker and label have {n_pairs:,} second moments.",
                expected=f"at most {MOST_PAIRS:,}",
                fix="choose a method that works from counts, such as DawidSkene",
            )
        )
