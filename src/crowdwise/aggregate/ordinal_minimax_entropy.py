"""Ordinal minimax conditional entropy: confusions between neighbors on a scale."""

from dataclasses import replace

from crowdwise.aggregate.minimax_entropy import MinimaxEntropy
from crowdwise.inference.entropy_basis import Basis, Thresholds


class OrdinalMinimaxEntropy(MinimaxEntropy):
    """Infer truths on a scale, with confusions of workers and tasks between its two sides.

    Like :class:`MinimaxEntropy`, but the classes have an order, that of ``classes_``: a
    worker's or task's matrix is a sum over thresholds of the scale, and at each threshold it
    depends only on which side the truth is, and on which side the label is. That leaves 4
    (n_classes - 1) parameters instead of n_classes ** 2, and makes confusions between
    neighbors likelier than between the ends. With two classes, both methods are the same.

    Parameters and attributes are those of :class:`MinimaxEntropy`; ``worker_effect_`` and
    ``task_effect_`` are the whole matrices, and the penalty is on their parameters:
    ``"scaled"`` makes alpha ``n_classes - 1``. Classes are sorted by name when annotations are
    made: if that is not the scale, give it there, as in ``classes=["low", "medium", "high"]``.

    Notes
    -----
    The maths::

        worker_effect[w, k, l]
            = sum over thresholds s of effect[w, s, side of k, side of l]; likewise for tasks

    Works when classes are steps of a scale and workers miss by a step or two: relevance,
    ratings, severity.

    Fails when the order of ``classes_`` is not that of the scale (names are sorted unless you
    say otherwise), and wherever MinimaxEntropy fails.

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
