"""Classifiers learned directly from features and disagreeing labels.

A learner is a truth model, a noise model and an objective; each published method is a choice
of the three. ``LEARNERS`` lists the methods, and ``PARTS`` the components of these and of any
:class:`CrowdClassifier`.
"""

from crowdwise.errors import MissingExtraError

try:
    import torch  # noqa: F401  imported only to report early if it is missing
except ImportError as error:
    raise MissingExtraError.of("crowdwise.learn", "PyTorch", "torch") from error

from crowdwise.learn.annot_mix import AnnotMix, Mixup
from crowdwise.learn.auto_classifier import AutoClassifier
from crowdwise.learn.clustered_personal_classifier import ClusteredPersonalClassifier
from crowdwise.learn.committee import Committee
from crowdwise.learn.conal import CommonConfusion, CoNAL, DistanceBonus
from crowdwise.learn.crowd_ar import CrowdAR, Reliability, ReliableLayer
from crowdwise.learn.crowd_classifier import CrowdClassifier
from crowdwise.learn.crowd_lab import CrowdLab
from crowdwise.learn.crowd_layer import CrowdLayer, FreeLayer
from crowdwise.learn.crowd_smote import CrowdSMOTE, NewTasks
from crowdwise.learn.embedded import EmbeddedConfusion
from crowdwise.learn.geo_crowd_net import GeoCrowdNet, VolumeBonus
from crowdwise.learn.iced import ICED
from crowdwise.learn.iced_parts import (
    Autoencoder,
    CertainWarmUp,
    FullWarmUp,
    Interpolation,
    LastLayerOnly,
    NoWarmUp,
    StagedWarmUp,
    WarmUp,
)
from crowdwise.learn.lia import LIA, DifficultyTensors, DotTensors
from crowdwise.learn.lia_ml import LIAML
from crowdwise.learn.madl import EqualWeight, MaDL, SharedWeight
from crowdwise.learn.malr import MALR
from crowdwise.learn.max_mig import InformationGain, LabelEvidence, MaxMIG
from crowdwise.learn.mbem import MBEM, Bootstrap
from crowdwise.learn.net_classifier import NetClassifier
from crowdwise.learn.noise import CountedStart, NoNoise
from crowdwise.learn.objectives import ColumnEM, HardEM, LabelsOnlyEM, PerLabel, PerTask
from crowdwise.learn.parts import (
    EM,
    CountedConfusion,
    CrowdNet,
    CrowdObjective,
    Noise,
    NoisePart,
    ObjectivePart,
    PerAnnotation,
    WorkerConfusion,
    WorkerTable,
)
from crowdwise.learn.personal_classifier import PersonalClassifier
from crowdwise.learn.raykar import Raykar
from crowdwise.learn.response import ResponseModel
from crowdwise.learn.soft_prob import SoftProb
from crowdwise.learn.speelfc import SpeeLFC
from crowdwise.learn.speelfc_d import SkillByEase, SpeeLFCD
from crowdwise.learn.trace_reg import TracePenalty, TraceReg
from crowdwise.learn.two_stage import TwoStage
from crowdwise.learn.union_net import PerPair, UnionConfusion, UnionNet
from crowdwise.nets.batches import Batch, CrowdData
from crowdwise.nets.checkpoints import checkpoints
from crowdwise.nets.mapped import map_features
from crowdwise.nets.modules import MLP
from crowdwise.nets.training import Training

LEARNERS = [
    "AnnotMix",
    "AutoClassifier",
    "ClusteredPersonalClassifier",
    "CoNAL",
    "Committee",
    "CrowdAR",
    "CrowdClassifier",
    "CrowdLab",
    "CrowdLayer",
    "GeoCrowdNet",
    "ICED",
    "LIA",
    "MALR",
    "MBEM",
    "MaDL",
    "MaxMIG",
    "PersonalClassifier",
    "Raykar",
    "SoftProb",
    "SpeeLFC",
    "SpeeLFCD",
    "TraceReg",
    "TwoStage",
    "UnionNet",
]
MULTI_LABEL_LEARNERS = ["LIAML"]  # with annotations of several label names

PARTS = [  # possible parameters of learners, besides numbers and words
    "EM",
    "MLP",
    "Bootstrap",
    "ColumnEM",
    "CommonConfusion",
    "CountedConfusion",
    "CountedStart",
    "DifficultyTensors",
    "DistanceBonus",
    "DotTensors",
    "EmbeddedConfusion",
    "EqualWeight",
    "FreeLayer",
    "HardEM",
    "InformationGain",
    "LabelEvidence",
    "LabelsOnlyEM",
    "Mixup",
    "NetClassifier",
    "NoNoise",
    "PerAnnotation",
    "PerLabel",
    "PerPair",
    "PerTask",
    "Reliability",
    "ReliableLayer",
    "ResponseModel",
    "SharedWeight",
    "SkillByEase",
    "TracePenalty",
    "Training",
    "UnionConfusion",
    "VolumeBonus",
    "WorkerConfusion",
]

__all__ = [
    "EM",
    "ICED",
    "LEARNERS",
    "LIA",
    "LIAML",
    "MALR",
    "MBEM",
    "MLP",
    "MULTI_LABEL_LEARNERS",
    "PARTS",
    "AnnotMix",
    "AutoClassifier",
    "Autoencoder",
    "Batch",
    "Bootstrap",
    "CertainWarmUp",
    "ClusteredPersonalClassifier",
    "CoNAL",
    "ColumnEM",
    "Committee",
    "CommonConfusion",
    "CountedConfusion",
    "CountedStart",
    "CrowdAR",
    "CrowdClassifier",
    "CrowdData",
    "CrowdLab",
    "CrowdLayer",
    "CrowdNet",
    "CrowdObjective",
    "CrowdSMOTE",
    "DifficultyTensors",
    "DistanceBonus",
    "DotTensors",
    "EmbeddedConfusion",
    "EqualWeight",
    "FreeLayer",
    "FullWarmUp",
    "GeoCrowdNet",
    "HardEM",
    "InformationGain",
    "Interpolation",
    "LabelEvidence",
    "LabelsOnlyEM",
    "LastLayerOnly",
    "MaDL",
    "MaxMIG",
    "Mixup",
    "NetClassifier",
    "NewTasks",
    "NoNoise",
    "NoWarmUp",
    "Noise",
    "NoisePart",
    "ObjectivePart",
    "PerAnnotation",
    "PerLabel",
    "PerPair",
    "PerTask",
    "PersonalClassifier",
    "Raykar",
    "Reliability",
    "ReliableLayer",
    "ResponseModel",
    "SharedWeight",
    "SkillByEase",
    "SoftProb",
    "SpeeLFC",
    "SpeeLFCD",
    "StagedWarmUp",
    "TracePenalty",
    "TraceReg",
    "Training",
    "TwoStage",
    "UnionConfusion",
    "UnionNet",
    "VolumeBonus",
    "WarmUp",
    "WorkerConfusion",
    "WorkerTable",
    "checkpoints",
    "map_features",
]
