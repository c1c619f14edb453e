"""NeuCrowd: safe tasks, robust anchors and a network that picks hard groups."""

from __future__ import annotations

import numpy as np

from crowdwise.embed.confidence import Assurance
from crowdwise.embed.embedder import CrowdEmbedder
from crowdwise.embed.groups import GroupTasks, RandomGroups
from crowdwise.embed.hard_groups import HardGroups, SafeGroups, find_groups
from crowdwise.embed.losses import EuclideanSoftmax, Robust
from crowdwise.embed.published import FlatHardGroups, FlippingShares, LenientSafeGroups
from crowdwise.nets.modules import Encoder
from crowdwise.nets.training import Training
from crowdwise.typing import Array


class NeuCrowd(CrowdEmbedder):
    """Learn a representation from groups of safe tasks around robust anchors, hard ones first.

    As in :class:`RLL`, an anchor must pick its partner among tasks of other classes, here by
    distance. In addition, tasks whose neighbors in the current embedding support another class
    are mostly left out (:class:`SafeGroups`); the anchors of a batch are replaced by their mean,
    weighted by assurance (:class:`Robust`); and a second network learns to predict each group's
    loss and picks the hardest of several (:class:`HardGroups`). Each part can be disabled: -SA
    is ``groups=HardGroups()``, -RA ``anchor=Example()`` and -SN ``groups=SafeGroups()``.

    ``NeuCrowd.recipe("code")`` follows the published code where it differs from the paper:
    weights are shares of labels, and those of disputed tasks alternate between w and 1 - w
    from epoch to epoch; members of a group may repeat; a task is its own neighbor, there are
    the root of the number of tasks plus 1 neighbors, and a tie is safe; anchors are scaled by
    the batch; confidence multiplies; biases start at random; and the picking network, with
    dropout, learns the probability of the right candidate, but each prediction is compared with
    all of the batch, so that it learns their mean.

    Parameters
    ----------
    groups : Groups, optional
        Which tasks are compared; ``HardGroups(SafeGroups(RandomGroups()))`` if not given.
    anchor : Anchor, optional
        What they are compared with; ``Robust()`` if not given.
    confidence : Confidence, optional
        How certain each task's class is; ``Assurance()`` if not given.
    loss : Loss, optional
        What training lowers; ``EuclideanSoftmax(eta=10.0)`` if not given.
    groups_per_epoch : int, optional
        60,000 if not given. With few groups, safety is judged by an embedding that has learned
        almost nothing, and tasks are left out that it would have learned to place well.
    encoder, aggregator, scale, refresh_every, output, training, random_state
        See :class:`CrowdEmbedder`.

    Attributes
    ----------
    safe_ : ndarray of shape (n_tasks,)
        Whether each task's neighbors in the final embedding support its class.

    Notes
    -----
    The maths::

        P(j | anchor z) proportional to exp(eta * a_j * (offset - |z - z_j|))
        z = sum over i of a_i * z_i / sum over i of a_i, a_i is the assurance of task i

    Works when labels are inconsistent and there are many groups per epoch, so that safety is
    judged by a useful embedding.

    Fails when the truth is the majority itself, so that safety has no wrong class to find;
    when the encoder memorizes its training labels, since the neighbors of a mislabeled task
    then agree with it; and when there are few groups per epoch, since tasks that are excluded
    early are never learned. With many features, its sigmoid layers may do no better than a
    linear one.

    References
    ----------
    Hao, Ding and Liu (2022). NeuCrowd: Neural sampling network for representation learning with
    crowdsourced labels. Knowledge and Information Systems 64. doi:10.1007/s10115-021-01644-7

    Examples
    --------
    >>> import numpy as np
    >>> X, labels = np.eye(6), [[0, 0], [1, 1], [0, 0], [1, 1], [0, 1], [1, 1]]
    >>> model = NeuCrowd(groups_per_epoch=256, random_state=0).fit(X, labels)
    >>> model.transform(X).shape, model.safe_.shape
    ((6, 32), (6,))
    """

    default_groups = HardGroups(SafeGroups(RandomGroups()))
    default_anchor = Robust()
    default_confidence = Assurance()
    default_loss = EuclideanSoftmax()
    default_groups_per_epoch = 60_000
    default_training = Training(learning_rate=1e-3, batch_size=256, epochs=5)
    recipes = {
        "code": {
            "groups": FlatHardGroups(LenientSafeGroups(RandomGroups(repeats=True))),
            "anchor": Robust(scale="batch"),
            "confidence": FlippingShares(),
            "loss": EuclideanSoftmax(form="multiplier"),
            "encoder": Encoder(bias="normal"),
        }
    }
    safe_: Array

    def _review(self, tasks: GroupTasks, settings: Training) -> None:
        rule, pool = find_groups(self.parts().groups, SafeGroups) or SafeGroups(), tasks.pool()
        safe = rule.safe(tasks, pool, settings.batch_size)
        self.safe_ = np.zeros(len(tasks.label), dtype=bool)
        self.safe_[pool.order.numpy()] = safe.cpu().numpy()
