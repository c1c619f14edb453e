"""Crowds with known truth: many kinds of workers, sets from papers, stand-ins, a classroom."""

from crowdwise.inference.simplex import one_coin_confusion
from crowdwise.simulate.behavior import Behavior
from crowdwise.simulate.catalog import SETS, make, simulate_dataset
from crowdwise.simulate.classroom import classroom
from crowdwise.simulate.crowds import SimulatedCrowd, confused_crowd, label_by_crowd, simulate_crowd
from crowdwise.simulate.features import class_features, margin_difficulty
from crowdwise.simulate.files import write_set
from crowdwise.simulate.iced import ImbalancedCrowd, iced
from crowdwise.simulate.neucrowd import neucrowd
from crowdwise.simulate.replay import replay
from crowdwise.simulate.stand_ins import stand_in
from crowdwise.simulate.target_kappa import crowd_with_kappa
from crowdwise.simulate.workers import (
    Adversary,
    Colluder,
    ConfusedWorker,
    DirichletWorker,
    Drifter,
    ModelWorker,
    OneCoinWorker,
    Spammer,
    Worker,
)

__all__ = [
    "SETS",
    "Adversary",
    "Behavior",
    "Colluder",
    "ConfusedWorker",
    "DirichletWorker",
    "Drifter",
    "ImbalancedCrowd",
    "ModelWorker",
    "OneCoinWorker",
    "SimulatedCrowd",
    "Spammer",
    "Worker",
    "class_features",
    "classroom",
    "confused_crowd",
    "crowd_with_kappa",
    "iced",
    "label_by_crowd",
    "make",
    "margin_difficulty",
    "neucrowd",
    "one_coin_confusion",
    "replay",
    "simulate_crowd",
    "simulate_dataset",
    "stand_in",
    "write_set",
]
