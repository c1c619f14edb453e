"""Truth inference from labels alone, one method a file.

``__all__`` is the only list of methods: the command line, the laws, the documentation and the
benchmarks read it. ``DEFAULT`` is the method that commands and reports use by default.
"""

from crowdwise.aggregate.bayes_bag import BayesBag
from crowdwise.aggregate.catd import CATD
from crowdwise.aggregate.dawid_skene import DawidSkene
from crowdwise.aggregate.ebcc import EBCC
from crowdwise.aggregate.generative_model import GenerativeModel
from crowdwise.aggregate.glad import GLAD
from crowdwise.aggregate.hard_dawid_skene import HardDawidSkene
from crowdwise.aggregate.ibcc import IBCC
from crowdwise.aggregate.iwmv import IWMV
from crowdwise.aggregate.judge_panel import JudgePanel
from crowdwise.aggregate.kos import KOS
from crowdwise.aggregate.label_model import LabelModel
from crowdwise.aggregate.mace import MACE
from crowdwise.aggregate.majority_vote import MajorityVote
from crowdwise.aggregate.minimax_entropy import MinimaxEntropy
from crowdwise.aggregate.mmsr import MMSR
from crowdwise.aggregate.one_coin import OneCoin
from crowdwise.aggregate.ordinal_minimax_entropy import OrdinalMinimaxEntropy
from crowdwise.aggregate.pm import PM
from crowdwise.aggregate.wawa import Wawa
from crowdwise.aggregate.zen_crowd import ZenCrowd
from crowdwise.aggregate.zero_based_skill import ZeroBasedSkill

DEFAULT = BayesBag

__all__ = [
    "CATD",
    "EBCC",
    "GLAD",
    "IBCC",
    "IWMV",
    "KOS",
    "MACE",
    "MMSR",
    "PM",
    "BayesBag",
    "DawidSkene",
    "GenerativeModel",
    "HardDawidSkene",
    "JudgePanel",
    "LabelModel",
    "MajorityVote",
    "MinimaxEntropy",
    "OneCoin",
    "OrdinalMinimaxEntropy",
    "Wawa",
    "ZenCrowd",
    "ZeroBasedSkill",
]
