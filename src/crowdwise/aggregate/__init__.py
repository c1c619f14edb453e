"""Truth inference from labels alone, one method a file.

``__all__`` is the one list of methods: the command line, the laws, the documentation and the
benchmarks read it.
"""

from crowdwise.aggregate.dawid_skene import DawidSkene
from crowdwise.aggregate.majority_vote import MajorityVote

__all__ = [
    "DawidSkene",
    "MajorityVote",
]
