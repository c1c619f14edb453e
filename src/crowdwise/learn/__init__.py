"""Classifiers straight from features and disagreeing labels.

A learner is a truth model, a noise model and an objective; each published method is a choice
of the three. ``__all__`` lists the learners and the parts that users build them from.
"""

from crowdwise.errors import MissingExtraError

try:
    import torch  # noqa: F401  only to say early that it is missing
except ImportError as error:
    raise MissingExtraError.of("crowdwise.learn", "PyTorch", "torch") from error

from crowdwise.learn._base import CrowdClassifier
from crowdwise.learn.annot_mix import AnnotMix
from crowdwise.learn.clustered_personal_classifier import ClusteredPersonalClassifier
from crowdwise.learn.committee import Committee
from crowdwise.learn.conal import CoNAL
from crowdwise.learn.crowd_ar import CrowdAR
from crowdwise.learn.crowd_lab import CrowdLab
from crowdwise.learn.crowd_layer import CrowdLayer
from crowdwise.learn.crowd_smote import CrowdSMOTE, NewTasks
from crowdwise.learn.geo_crowd_net import GeoCrowdNet
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
from crowdwise.learn.lia import LIA
from crowdwise.learn.lia_ml import LIAML
from crowdwise.learn.madl import MaDL
from crowdwise.learn.malr import MALR
from crowdwise.learn.max_mig import MaxMIG
from crowdwise.learn.mbem import MBEM
from crowdwise.learn.net_classifier import NetClassifier
from crowdwise.learn.personal_classifier import PersonalClassifier
from crowdwise.learn.raykar import Raykar
from crowdwise.learn.response import ResponseModel
from crowdwise.learn.soft_prob import SoftProb
from crowdwise.learn.speelfc import SpeeLFC
from crowdwise.learn.speelfc_d import SpeeLFCD
from crowdwise.learn.trace_reg import TraceReg
from crowdwise.learn.two_stage import TwoStage
from crowdwise.learn.union_net import UnionNet
from crowdwise.nets.modules import MLP
from crowdwise.nets.training import Training

LEARNERS = [
    "AnnotMix",
    "ClusteredPersonalClassifier",
    "CoNAL",
    "Committee",
    "CrowdAR",
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

__all__ = [
    "ICED",
    "LEARNERS",
    "LIA",
    "LIAML",
    "MALR",
    "MBEM",
    "MLP",
    "AnnotMix",
    "Autoencoder",
    "CertainWarmUp",
    "ClusteredPersonalClassifier",
    "CoNAL",
    "Committee",
    "CrowdAR",
    "CrowdClassifier",
    "CrowdLab",
    "CrowdLayer",
    "CrowdSMOTE",
    "FullWarmUp",
    "GeoCrowdNet",
    "Interpolation",
    "LastLayerOnly",
    "MaDL",
    "MaxMIG",
    "NetClassifier",
    "NewTasks",
    "NoWarmUp",
    "PersonalClassifier",
    "Raykar",
    "ResponseModel",
    "SoftProb",
    "SpeeLFC",
    "SpeeLFCD",
    "StagedWarmUp",
    "TraceReg",
    "Training",
    "TwoStage",
    "UnionNet",
    "WarmUp",
]
