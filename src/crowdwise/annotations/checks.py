"""Which annotations count, and what to say when none does."""

import numpy as np

from crowdwise.annotations.table import Annotations
from crowdwise.errors import AnnotationError, explain
from crowdwise.typing import Array


def refuse_nothing(data: Annotations, purpose: str = "learn from") -> None:
    """Refuse annotations of which none counts."""
    if not data.n_annotations or (data.weight is not None and not (data.weight > 0).any()):
        raise AnnotationError(
            explain(
                f"There are no annotations to {purpose}.",
                found=f"{data.n_annotations:,} of weight 0" if data.n_annotations else "",
                expected="at least one (task, worker, label) that counts",
            )
        )


def labeled(data: Annotations) -> Array:
    """Which tasks have a label that counts."""
    if data.weight is None:
        return data.redundancy > 0
    weight: Array = np.bincount(data.task, data.weight, minlength=data.n_tasks)
    return weight > 0
