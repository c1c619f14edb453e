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
from crowdwise.learn._train import Training
from crowdwise.learn.crowd_layer import CrowdLayer
from crowdwise.learn.lia import LIA
from crowdwise.learn.speelfc import SpeeLFC
from crowdwise.learn.speelfc_d import SpeeLFCD
from crowdwise.learn.truth import MLP

LEARNERS = ["CrowdLayer", "LIA", "SpeeLFC", "SpeeLFCD"]

__all__ = [
    "LEARNERS",
    "LIA",
    "MLP",
    "CrowdClassifier",
    "CrowdLayer",
    "SpeeLFC",
    "SpeeLFCD",
    "Training",
]
