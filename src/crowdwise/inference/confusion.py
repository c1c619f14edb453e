"""Confusion matrices, ``confusion[worker, truth, label]``, from what is known of workers."""

from typing import Any

import numpy as np

from crowdwise.errors import ParameterError, explain, listing
from crowdwise.typing import Floats


def one_coin_confusion(accuracy: Any, n_classes: int) -> Floats:
    """Confusion matrices of workers who err evenly, ``(worker, truth, label)``.

    With one class there is nothing to err about.
    """
    right = np.atleast_1d(np.asarray(accuracy, dtype=np.float64))[:, None, None]
    if not ((right >= 0) & (right <= 1)).all():
        raise ParameterError(
            explain(
                f"accuracy={listing(right.ravel())} holds what is no probability.",
                expected="numbers from 0 to 1",
            )
        )
    if n_classes == 1:
        return np.ones_like(right)
    wrong = (1.0 - right) / (n_classes - 1)
    return np.where(np.eye(n_classes, dtype=bool), right, wrong)
