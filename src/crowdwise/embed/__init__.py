"""Representations learned from few, inconsistent labels.

An embedder is ``groups`` (which tasks are compared), an ``anchor`` (with what), a ``confidence``
(how certain their classes are) and a ``loss``. ``EMBEDDERS`` lists the published methods, each a
choice of the four; :class:`CrowdEmbedder` takes any other. The parts are described by parameters,
can be cloned and saved with a model, and can also be used in a training loop of your own.
"""

from crowdwise.errors import MissingExtraError

try:
    import torch  # noqa: F401  imported only to report early if it is missing
except ImportError as error:
    raise MissingExtraError.of("crowdwise.embed", "PyTorch", "torch") from error

from crowdwise.base.embedder import Embedder
from crowdwise.embed.balanced_tasks import BalancedTasks
from crowdwise.embed.center import Center, CenterLoss, TripletCenter
from crowdwise.embed.confidence import MLE, Assurance, Bayesian, Certain, Confidence
from crowdwise.embed.contrastive import Contrastive, ContrastiveLoss
from crowdwise.embed.crowd_labels import CrowdLabels
from crowdwise.embed.embedder import CrowdEmbedder
from crowdwise.embed.groups import (
    EveryClass,
    Groups,
    OneClass,
    Pool,
    RandomGroups,
    TupleSampler,
)
from crowdwise.embed.hard_groups import HardGroups, SafeGroups, find_groups, safe_tasks
from crowdwise.embed.lifted import LiftedStructure, LiftedStructureLoss
from crowdwise.embed.losses import (
    Anchor,
    CosineSoftmax,
    EuclideanSoftmax,
    Example,
    GroupSoftmax,
    Loss,
    PlainLoss,
    Robust,
    robust_anchor,
)
from crowdwise.embed.neucrowd import NeuCrowd
from crowdwise.embed.published import (
    FixedGroups,
    FlatHardGroups,
    FlippingShares,
    LenientSafeGroups,
    OwnClassPrior,
)
from crowdwise.embed.relation_net import Episodes, RelationLoss, RelationNet
from crowdwise.embed.rll import RLL
from crowdwise.embed.triplet import SemiHardTriplet, SemiHardTripletLoss, Triplet, TripletLoss
from crowdwise.nets.modules import Encoder, TwoTowers

EMBEDDERS = [
    "Center",
    "Contrastive",
    "LiftedStructure",
    "NeuCrowd",
    "RLL",
    "RelationNet",
    "SemiHardTriplet",
    "Triplet",
    "TripletCenter",
]

__all__ = [
    "EMBEDDERS",
    "MLE",
    "RLL",
    "Anchor",
    "Assurance",
    "BalancedTasks",
    "Bayesian",
    "Center",
    "CenterLoss",
    "Certain",
    "Confidence",
    "Contrastive",
    "ContrastiveLoss",
    "CosineSoftmax",
    "CrowdEmbedder",
    "CrowdLabels",
    "Embedder",
    "Encoder",
    "Episodes",
    "EuclideanSoftmax",
    "EveryClass",
    "Example",
    "FixedGroups",
    "FlatHardGroups",
    "FlippingShares",
    "GroupSoftmax",
    "Groups",
    "HardGroups",
    "LenientSafeGroups",
    "LiftedStructure",
    "LiftedStructureLoss",
    "Loss",
    "NeuCrowd",
    "OneClass",
    "OwnClassPrior",
    "PlainLoss",
    "Pool",
    "RandomGroups",
    "RelationLoss",
    "RelationNet",
    "Robust",
    "SafeGroups",
    "SemiHardTriplet",
    "SemiHardTripletLoss",
    "Triplet",
    "TripletCenter",
    "TripletLoss",
    "TupleSampler",
    "TwoTowers",
    "find_groups",
    "robust_anchor",
    "safe_tasks",
]
