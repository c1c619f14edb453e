"""RLL: retrieve a task of the same class among others, weighted by confidence."""

from __future__ import annotations

import warnings

from sklearn.exceptions import ConvergenceWarning
from torch import Tensor
from torch.nn.functional import normalize

from crowdwise.embed.embedder import CrowdEmbedder
from crowdwise.embed.groups import GroupTasks
from crowdwise.embed.losses import CosineSoftmax
from crowdwise.embed.published import FixedGroups, OwnClassPrior
from crowdwise.nets.modules import Encoder, TwoTowers
from crowdwise.nets.training import Training

COLLAPSED = 0.999  # mean cosine between tasks above which they are indistinguishable


class RLL(CrowdEmbedder):
    """Learn a representation in which each task finds others of its class.

    A group is an anchor, another task of its class and some tasks of other classes. The anchor
    must pick its partner by cosine similarity; the confidence in the class of each candidate
    decides how much it counts. Assumes that the majority is mostly right, and more reliably so
    the larger it is. The paper's three variants are ``confidence=Certain()`` (RLL), ``MLE()``
    (RLL-MLE) and ``Bayesian()`` (RLL-Bayesian), which is the default.

    ``RLL.recipe("code")`` follows the published code where it differs from the paper: two towers,
    confidence as a multiplier, alpha = 3 pseudo-labels for a task's own class and beta = 2
    against it, whichever it is, and the same groups in every epoch. (Its early stopping, which
    looked at groups of negatives only, is not followed.) Losses are averaged and not summed over
    a batch, here as always.

    Parameters
    ----------
    groups : Groups, optional
        Which tasks are compared; ``RandomGroups(negatives=3)`` if not given. Its ``anchors`` say
        which classes have anchors: by default the last of two classes, and every class if there
        are more.
    anchor : Anchor, optional
        What they are compared with; ``Example()`` if not given.
    confidence : Confidence, optional
        How certain each task's class is; ``Bayesian(prior=5.0)`` if not given.
    loss : Loss, optional
        What training lowers; ``CosineSoftmax(eta=10.0)`` if not given.
    groups_per_epoch : int, optional
        By default the number of ordered pairs of tasks that can be anchors, at most 60,000.
    encoder : Encoder, torch.nn.Module or function, optional
        By default ``Encoder()``; or, with ``output="auto"``, one of ``RLL.encoders`` if labels
        of held-out tasks prefer it.
    aggregator, scale, refresh_every, output, training, random_state
        See :class:`CrowdEmbedder`.

    Notes
    -----
    The maths::

        P(j | anchor i) proportional to exp(eta * d_j * cos(z_i, z_j))
        loss = - log P(partner | anchor), d_j is the confidence in the class of candidate j

    Works when there are a few hundred tasks with many features, and the majority is mostly
    right.

    Fails when the majority is wrong on one kind of task: confidence from label counts cannot
    detect it. Use ``confidence=Bayesian(evidence="posterior")`` with an aggregator. It also
    fails when most tasks are of the anchor class: the Bayesian prior makes these so much more
    confident than the others that the loss is small before anything is learned, and all
    vectors become equal. Use an even prior, anchors of every class, or
    ``CosineSoftmax(form="multiplier")``. A linear classifier on good features is hard to
    beat; where it can be beaten, a plain network does as well.

    References
    ----------
    Xu, Ding, Tang, Yang, Huang and Liu (2019). Learning effective embeddings from crowdsourced
    labels: An educational case study. ICDE. doi:10.1109/ICDE.2019.00208

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from crowdwise.learn import Training
    >>> from crowdwise.simulate import label_by_crowd, one_coin_confusion
    >>> X, truth = make_classification(100, 8, random_state=0)
    >>> votes = label_by_crowd(truth, one_coin_confusion([0.9, 0.7, 0.6], 2), 3, random_state=0)
    >>> brief = Training(epochs=2, batch_size=256, learning_rate=1e-2)
    >>> RLL(training=brief, random_state=0).fit_transform(X, votes).shape
    (100, 32)
    """

    default_training = Training(learning_rate=1e-3, batch_size=256, epochs=5)
    encoders = {
        "wide": Encoder((128,)),
        "tanh": Encoder((128, 64), activation="tanh", dropout=0.5),
    }
    recipes = {
        "code": {
            "groups": FixedGroups(),
            "confidence": OwnClassPrior(),
            "loss": CosineSoftmax(form="multiplier"),
            "encoder": TwoTowers(),
        }
    }

    def _review(self, tasks: GroupTasks, settings: Training) -> None:
        if not isinstance(self.parts().loss, CosineSoftmax) or self._output == "features":
            return
        alike = mean_cosine(tasks.embedded(tasks.tasks))
        if alike > COLLAPSED:
            warnings.warn(
                f"All vectors point the same way: the mean cosine of two tasks is {alike:.4f}. "
                "This happens if a rare class has no anchors, and its prior makes confidence "
                "in it low. Try groups=RandomGroups(anchors=EveryClass()), or OneClass with the "
                "rarer class; an even prior, confidence=Bayesian((2.5, 2.5)); "
                "loss=CosineSoftmax(form='multiplier'); or less weight decay.",
                ConvergenceWarning,
                stacklevel=5,
            )


def mean_cosine(vectors: Tensor) -> float:
    """Return the mean cosine of two different rows."""
    direction, n = normalize(vectors.double(), dim=1), len(vectors)
    together = float(direction.sum(dim=0).square().sum())
    return (together - float(direction.square().sum())) / max(n * (n - 1), 1)
