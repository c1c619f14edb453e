"""Ordinal minimax conditional entropy: confusions between neighbors on a scale."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from crowdwise.aggregate.minimax_entropy import MinimaxEntropy
from crowdwise.inference.conditional_entropy import TINY, Basis
from crowdwise.typing import Floats, Ints


class OrdinalMinimaxEntropy(MinimaxEntropy):
    """Infer truths on a scale, with what workers and tasks confuse between its two sides.

    As :class:`MinimaxEntropy`, but the classes have an order, that of ``classes_``: a
    worker's or task's matrix is a sum over thresholds of the scale, and at each threshold
    depends only on which side the truth is, and on which side the label is. That leaves 4
    (n_classes - 1) parameters instead of n_classes ** 2, and makes confusions between
    neighbors likelier than between the ends. With two classes both methods are the same.

    Parameters and attributes are those of :class:`MinimaxEntropy`; ``worker_effect_`` and
    ``task_effect_`` are the whole matrices, and the penalty is on the parameters they are made
    of: ``"scaled"`` makes alpha ``n_classes - 1``. Classes are sorted by name when annotations
    are made: where that is not the scale, say ``classes=["low", "medium", "high"]`` there.

    Notes
    -----
    The maths::

        worker_effect[w, k, l]
            = sum over thresholds s of effect[w, s, side of k, side of l]; likewise for tasks

    Works when classes are steps of a scale and workers miss by a step or two: relevance,
    ratings, severity.

    Fails when the order of ``classes_`` is not that of the scale (names are sorted unless you
    say otherwise), and wherever MinimaxEntropy does.

    References
    ----------
    Zhou, Liu, Platt and Meek (2014). Aggregating ordinal labels from crowds by minimax
    conditional entropy. ICML, PMLR 32(2).

    Zhou, Liu, Platt, Meek and Shah (2015). Regularized minimax conditional entropy for
    crowdsourcing. doi:10.48550/arXiv.1503.07240

    Examples
    --------
    >>> labels = [[1, 1, 2], [3, 3, 2], [1, 1, 1], [2, 2, 3], [3, 3, 3]]  # tasks x workers
    >>> OrdinalMinimaxEntropy().fit_predict(labels * 8).tolist()[:5]
    [1, 3, 1, 2, 3]
    """

    traits = replace(MinimaxEntropy.traits, ordinal=True)

    def _basis(self, n_classes: int) -> Basis:
        return Thresholds(n_classes)


@dataclass(frozen=True)
class Thresholds:
    """A basis with four parameters for each threshold: truth above or below, label likewise."""

    n_classes: int

    @property
    def n_parameters(self) -> int:
        return 4 * (self.n_classes - 1)

    @property
    def fair_penalty(self) -> float:
        return max(self.n_classes - 1.0, 1.0)  # each is about half of the truths, on average

    @cached_property
    def matrices(self) -> Floats:
        """What each parameter multiplies, shape (parameter, truth, label)."""
        scale = np.arange(self.n_classes)
        above = scale >= np.arange(1, self.n_classes)[:, None]  # (threshold, class)
        sides = np.stack([above, ~above]).astype(np.float64)  # (side, threshold, class)
        products = np.einsum("ask,bsl->abskl", sides, sides)
        return products.reshape(-1, self.n_classes, self.n_classes)

    def effect(self, parameters: Floats) -> Floats:
        return np.tensordot(parameters, self.matrices, axes=1)

    def step(self, given: Floats, expected: Floats, parameters: Floats, penalty: float) -> Floats:
        """Solve ``(B (diag(c) - c c' / sum(c)) B' + penalty) step = gradient`` for each unit.

        With ``c`` the expected counts of a truth's labels, summed over truths, and ``B`` the
        basis, the bracket is no less than the curvature.
        """
        n_cells = self.n_classes**2
        flat = self.matrices.reshape(self.n_parameters, n_cells)
        surplus = (given - expected).reshape(-1, n_cells)
        gradient = surplus @ flat.T - penalty * parameters
        pairs = (flat[:, None] * flat).reshape(-1, n_cells)  # (two parameters, cell)
        second = expected.reshape(-1, n_cells) @ pairs.T
        first = np.einsum("pkl,ukl->upk", self.matrices, expected)
        first /= np.sqrt(np.maximum(expected.sum(axis=2), TINY))[:, None]
        square = (len(parameters), self.n_parameters, self.n_parameters)
        curvature = second.reshape(square) - first @ first.swapaxes(1, 2)
        bracket = curvature + penalty * np.eye(self.n_parameters)
        return np.linalg.solve(bracket, gradient[:, :, None])[:, :, 0]

    def orders(self, agreement: Floats) -> list[Ints]:
        scale = np.arange(self.n_classes)
        return [scale, scale[::-1]]
