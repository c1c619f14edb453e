"""Plots of models: what they learned, how training went, and whether to trust them.

Every function draws into the given axes, or into a new figure, and returns the axes; nothing
is displayed and no global state is touched. ``axes.figure.savefig("plot.png")`` saves a plot.
"""

from crowdwise.errors import MissingExtraError

try:
    import matplotlib  # noqa: F401  imported only to report early if it is missing
except ImportError as error:
    raise MissingExtraError.of("crowdwise.plot", "matplotlib", "plot") from error

from crowdwise.plot.agreement import plot_agreement
from crowdwise.plot.calibration import plot_calibration
from crowdwise.plot.confusions import plot_confusions
from crowdwise.plot.difficulty import plot_difficulty
from crowdwise.plot.embedding_map import plot_embedding_map
from crowdwise.plot.redundancy import plot_redundancy
from crowdwise.plot.training import plot_training
from crowdwise.plot.worker_map import plot_worker_map

__all__ = [
    "plot_agreement",
    "plot_calibration",
    "plot_confusions",
    "plot_difficulty",
    "plot_embedding_map",
    "plot_redundancy",
    "plot_training",
    "plot_worker_map",
]
