"""Crowd-Layer: an unconstrained layer per worker on top of the classifier."""

from typing import Any

from crowdwise.base.params import one_of
from crowdwise.learn._base import CrowdClassifier
from crowdwise.learn.noise import FreeLayer, FreeMatrix, FreeVector, Noise
from crowdwise.learn.objectives import CrowdNet, CrowdObjective, Direct
from crowdwise.nets.batches import CrowdData
from crowdwise.nets.modules import MLP
from crowdwise.nets.training import Training


class CrowdLayer(CrowdClassifier):
    """Learn a classifier under a layer of free weights per worker.

    The class probabilities of the truth model go through a layer of worker ``w``'s own and
    another softmax gives the chance of each label. The weights are not probabilities: entries may
    be negative. ``confusion_`` is what the layer makes of a task whose class is certain.
    With the identity start a worker is right with probability ``e / (e + n_classes - 1)``, only
    0.23 for ten classes, which is why it starts so badly there. Known truths (``gold``) have no
    place in such a layer; they train the classifier beside it, once for each label of their task.

    Parameters
    ----------
    truth : "linear", MLP, torch.nn.Module or function, default="linear"
        The classifier.
    layer : {"MW", "VW", "VB", "VW-B", "SW"}, default="MW"
        A matrix; a scale per class; a shift per class; both; one scale.
    scale : bool, default=True
        Whether to standardise features with the mean and deviation of the training rows.
    training : Training, optional
        How to train; ``CrowdLayer.default_training`` if not given. The loss is the mean over
        the annotations there are (the authors' code averages over all tasks x workers, so
        its learning rate shrinks with sparsity).
    random_state : int or RandomState, optional
        Decides starts, batches, dropout and held-out labels.

    Attributes
    ----------
    posterior_, confusion_, worker_accuracy_, history_, net_
        See :class:`crowdwise.learn.CrowdClassifier`. The posterior weighs the classifier by what
        ``confusion_`` says of the labels.

    Notes
    -----
    The maths::

        P(w gives i the label l)
            = softmax over l of (W[w] @ truth(x_i))[l], W[w] starts at the identity

    Works when workers are mostly right and labels are many; weights are free, so fitting is
    easy.

    Fails when classes are many, since the identity start hardly favours the right label; and
    when the matrices are to be read: they are no probabilities, and classes may be swapped in
    both parts.

    References
    ----------
    Rodrigues and Pereira (2018). Deep learning from crowds. AAAI.
    doi:10.1609/aaai.v32i1.11506

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from crowdwise.simulate import label_by_crowd, one_coin_confusion
    >>> X, truth = load_iris(return_X_y=True)
    >>> confusion = one_coin_confusion([0.9, 0.7, 0.6, 0.5], n_classes=3)
    >>> votes = label_by_crowd(truth, confusion, per_task=3, random_state=0)
    >>> bool(CrowdLayer(random_state=0).fit(X, votes).score(X, truth) > 0.9)
    True
    """

    _parameter_constraints = {
        **CrowdClassifier._parameter_constraints,
        "layer": [one_of("MW", "VW", "VB", "VW-B", "SW")],
    }
    recipes = {
        "labelme": {
            "truth": MLP(hidden=(128,), dropout=0.5),
            "training": Training(learning_rate=1e-3, batch_size=64, epochs=50),
        },
    }

    def __init__(
        self,
        *,
        truth: Any = "linear",
        layer: str = "MW",
        scale: bool = True,
        training: Training | None = None,
        random_state: Any = None,
    ) -> None:
        self.truth = truth
        self.layer = layer
        self.scale = scale
        self.training = training
        self.random_state = random_state

    def _noise(self, data: CrowdData, n_in: int | None) -> Noise:
        sizes = data.n_workers, data.n_classes
        layer = FreeMatrix(*sizes) if self.layer == "MW" else FreeVector(*sizes, self.layer)
        return FreeLayer(layer, data.n_classes)

    def _objective(self, net: CrowdNet, data: CrowdData) -> CrowdObjective:
        return Direct(net, data)
