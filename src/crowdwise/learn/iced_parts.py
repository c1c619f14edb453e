"""Parts of ICED: how the network warms up, and how new tasks get features."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from sklearn.base import BaseEstimator
from torch import Tensor

from crowdwise.annotations import Annotations
from crowdwise.base.params import Constraints, at_least, more_than
from crowdwise.inference.certainty import measure_certainty, rank_certainty
from crowdwise.learn.crowd_smote import NewTasks
from crowdwise.learn.embedding_net import EmbeddingNet
from crowdwise.typing import Array

N_LEVELS = 3  # of certainty, in the paper's warm-up


class WarmUp(BaseEstimator):
    """The part of ICED that says which tasks the network learns from first, and how long."""

    _parameter_constraints: ClassVar[Constraints] = {
        "epochs": [at_least(0)],
        "floor": [more_than(0.0)],
    }
    epochs: int

    @abstractmethod
    def stages(self, votes: Annotations, labeled: Array) -> list[Array]:
        """Which tasks each stage learns from, of those that are labeled."""


class StagedWarmUp(WarmUp):
    """Train on the tasks of the third-highest, the second-highest, then the highest certainty.

    Parameters
    ----------
    epochs : int, default=5
        Epochs of each stage.
    floor : float, default=0.05
        See :func:`crowdwise.evaluate.certainty`.
    """

    def __init__(self, epochs: int = 5, *, floor: float = 0.05) -> None:
        self.epochs = epochs
        self.floor = floor

    def stages(self, votes: Annotations, labeled: Array) -> list[Array]:
        level = rank_certainty(measure_certainty(votes, self.floor), N_LEVELS)
        return [(level == number) & labeled for number in range(N_LEVELS, 0, -1)]


class CertainWarmUp(WarmUp):
    """Train on the tasks of the three highest certainties at once (the paper's Trad-II).

    Parameters
    ----------
    epochs : int, default=15
        Epochs in all.
    floor : float, default=0.05
        See :func:`crowdwise.evaluate.certainty`.
    """

    def __init__(self, epochs: int = 15, *, floor: float = 0.05) -> None:
        self.epochs = epochs
        self.floor = floor

    def stages(self, votes: Annotations, labeled: Array) -> list[Array]:
        level = rank_certainty(measure_certainty(votes, self.floor), N_LEVELS)
        return [(level > 0) & labeled]


class FullWarmUp(WarmUp):
    """Train on all tasks (the paper's Trad-I).

    Parameters
    ----------
    epochs : int, default=15
        Epochs in all.
    """

    _parameter_constraints = {"epochs": [at_least(0)]}

    def __init__(self, epochs: int = 15) -> None:
        self.epochs = epochs

    def stages(self, votes: Annotations, labeled: Array) -> list[Array]:
        return [labeled]


class NoWarmUp(WarmUp):
    """Begin with the first round."""

    _parameter_constraints = {}
    epochs = 0

    def stages(self, votes: Annotations, labeled: Array) -> list[Array]:
        return []


class Decoder(BaseEstimator):
    """The part of ICED that turns new tasks into rows to learn from."""

    _parameter_constraints: ClassVar[Constraints] = {}

    def pretrain(self, net: EmbeddingNet, votes: Annotations) -> None:
        """Prepare the network before it warms up."""

    @abstractmethod
    def rows(self, net: EmbeddingNet, votes: Annotations, new: NewTasks) -> Tensor:
        """Rows for the real tasks and the new ones."""


class Autoencoder(Decoder):
    """Features of new tasks come from a decoder of the network's embedding.

    It is pre-trained with the network's body as its encoder.

    Parameters
    ----------
    epochs : int, default=10
        Epochs of the decoder each time.
    refit : bool, default=True
        Whether it is trained again in each round, to keep up with the network.
    """

    _parameter_constraints = {"epochs": [at_least(0)], "refit": ["boolean"]}

    def __init__(self, epochs: int = 10, *, refit: bool = True) -> None:
        self.epochs = epochs
        self.refit = refit

    def pretrain(self, net: EmbeddingNet, votes: Annotations) -> None:
        if len(net.body):
            net.reconstruct(votes, self.epochs, body=True)

    def rows(self, net: EmbeddingNet, votes: Annotations, new: NewTasks) -> Tensor:
        if self.refit and len(net.body):
            net.reconstruct(votes, self.epochs, body=False)
        return net.stack(net.decode(new.X))


class Interpolation(Decoder):
    """Features of a new task mix those of the two tasks that it lies between."""

    def rows(self, net: EmbeddingNet, votes: Annotations, new: NewTasks) -> Tensor:
        flat = net.x.flatten(1).cpu().numpy()
        return net.stack(net.x.new_tensor(new.between(flat)))


class LastLayerOnly(Decoder):
    """New tasks get no features: only the network's last layer learns from their embedding."""

    def rows(self, net: EmbeddingNet, votes: Annotations, new: NewTasks) -> Tensor:
        return net.stack(net.x.new_tensor(new.X), embedded=True)
