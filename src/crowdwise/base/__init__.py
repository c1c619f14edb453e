"""Base classes of aggregators, learners and embedders; their traits and parameter checks."""

from crowdwise.base.aggregator import Aggregator, by_worker
from crowdwise.base.confusion_model import ConfusionModel, PairModel
from crowdwise.base.embedder import Embedder
from crowdwise.base.learner import Learner
from crowdwise.base.live import LiveUpdates
from crowdwise.base.params import (
    DEVICES,
    THREADS,
    at_least,
    between,
    checks_params,
    more_than,
    one_of,
)
from crowdwise.base.traits import LearnerTraits, Traits
from crowdwise.base.weighted_vote import RepeatedVote, WeightedVote

__all__ = [
    "DEVICES",
    "THREADS",
    "Aggregator",
    "ConfusionModel",
    "Embedder",
    "Learner",
    "LearnerTraits",
    "LiveUpdates",
    "PairModel",
    "RepeatedVote",
    "Traits",
    "WeightedVote",
    "at_least",
    "between",
    "by_worker",
    "checks_params",
    "more_than",
    "one_of",
]
