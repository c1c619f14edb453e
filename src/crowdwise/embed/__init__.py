"""Representations from few, inconsistent labels.

An embedder is a group sampler, an anchor, a confidence and a loss; each published method and each
of its ablations is a choice of the four. ``EMBEDDERS`` lists the methods; the parts are plain
functions and torch modules for anybody's own loop: :mod:`~crowdwise.embed.losses`,
:mod:`~crowdwise.embed.groups`, :mod:`~crowdwise.embed.safety`, :mod:`~crowdwise.embed.anchors`,
:mod:`~crowdwise.embed.confidence` and :mod:`~crowdwise.embed.hardness`.
"""

from crowdwise.errors import MissingExtraError

try:
    import torch  # noqa: F401  only to say early that it is missing
except ImportError as error:
    raise MissingExtraError.of("crowdwise.embed", "PyTorch", "torch") from error

from crowdwise.embed._base import Embedder
from crowdwise.embed.anchors import robust_anchor
from crowdwise.embed.center import Center, TripletCenter
from crowdwise.embed.contrastive import Contrastive
from crowdwise.embed.crowd_labels import CrowdLabels
from crowdwise.embed.encoder import Encoder
from crowdwise.embed.groups import EpisodeSampler, Pool, TaskSampler, TupleSampler
from crowdwise.embed.hardness import HardnessNet, hardness_loss
from crowdwise.embed.lifted import LiftedStructure
from crowdwise.embed.losses import (
    ContrastiveLoss,
    GroupSoftmax,
    LiftedStructureLoss,
    RelationLoss,
    SemiHardTripletLoss,
    TripletCenterLoss,
    TripletLoss,
)
from crowdwise.embed.neucrowd import NeuCrowd
from crowdwise.embed.relation_net import RelationNet
from crowdwise.embed.rll import RLL
from crowdwise.embed.safety import safe_tasks
from crowdwise.embed.triplet import SemiHardTriplet, Triplet

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
    "RLL",
    "Center",
    "Contrastive",
    "ContrastiveLoss",
    "CrowdLabels",
    "Embedder",
    "Encoder",
    "EpisodeSampler",
    "GroupSoftmax",
    "HardnessNet",
    "LiftedStructure",
    "LiftedStructureLoss",
    "NeuCrowd",
    "Pool",
    "RelationLoss",
    "RelationNet",
    "SemiHardTriplet",
    "SemiHardTripletLoss",
    "TaskSampler",
    "Triplet",
    "TripletCenter",
    "TripletCenterLoss",
    "TripletLoss",
    "TupleSampler",
    "hardness_loss",
    "robust_anchor",
    "safe_tasks",
]
