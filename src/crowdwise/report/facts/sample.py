"""Fewer tasks, where all of them would take too long."""

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from crowdwise.annotations import Annotations


def sampled(data: Annotations, most: int, random_state: Any) -> tuple[Annotations, str]:
    """The labelled tasks, or random ones with about ``most`` annotations; and what to say."""
    data = data.nonempty()
    if data.n_annotations <= most:
        return data, ""
    n_tasks = max(int(data.n_tasks * most / data.n_annotations), 1)
    rows = check_random_state(random_state).permutation(data.n_tasks)[:n_tasks]
    return data[np.sort(rows)], f"From {n_tasks:,} of {data.n_tasks:,} tasks, drawn at random."
