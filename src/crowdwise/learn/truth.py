"""Truth models: what the classes look like, as a network from features to logits."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from sklearn.base import BaseEstimator
from torch import Tensor, nn
from torch.nn.functional import log_softmax

from crowdwise.errors import ParameterError, explain

FEW = 64  # classes
ACTIVATIONS = {"relu": nn.ReLU, "selu": nn.SELU, "sigmoid": nn.Sigmoid, "tanh": nn.Tanh}


class MLP(BaseEstimator):
    """A multi-layer perceptron, described; :meth:`build` makes it.

    Parameters
    ----------
    hidden : tuple of int, default=(128,)
        Sizes of the hidden layers; none makes a linear model.
    activation : {"relu", "selu", "sigmoid", "tanh"}, default="relu"
        What follows each hidden layer.
    dropout : float, default=0
        Share of hidden units silenced in training.

    Examples
    --------
    >>> MLP(hidden=(8,), dropout=0.5).build(4, 3)
    Sequential(
      (0): Linear(in_features=4, out_features=8, bias=True)
      (1): ReLU()
      (2): Dropout(p=0.5, inplace=False)
      (3): Linear(in_features=8, out_features=3, bias=True)
    )
    """

    def __init__(
        self, hidden: tuple[int, ...] = (128,), *, activation: str = "relu", dropout: float = 0.0
    ) -> None:
        self.hidden = hidden
        self.activation = activation
        self.dropout = dropout

    def build(self, n_in: int, n_out: int) -> nn.Module:
        if self.activation not in ACTIVATIONS:
            raise ParameterError(
                f"activation={self.activation!r} is unknown.\n"
                f"  expected: {', '.join(sorted(ACTIVATIONS))}"
            )
        layers: list[nn.Module] = []
        for size in self.hidden:
            layers += [Linear(n_in, size), ACTIVATIONS[self.activation]()]
            if self.dropout:
                layers.append(nn.Dropout(self.dropout))
            n_in = size
        return nn.Sequential(*layers, Linear(n_in, n_out))


class SideBySide:
    """A part of a net with a quicker way of its own where several restarts are run as one.

    One net alone keeps to torch's own kernels; the two differ by rounding.
    """

    side_by_side = False

    def log_classes(self, logits: Tensor) -> Tensor:
        """Log-softmax over the last axis; torch's own is slow where that is short."""
        if not self.side_by_side or logits.shape[-1] > FEW:
            return log_softmax(logits, dim=-1)
        return log_softmax(logits.movedim(-1, 0), dim=0).movedim(0, -1)


class Linear(SideBySide, nn.Linear):
    """A linear map; side by side, one product with the weights of all restarts stacked."""

    def forward(self, x: Tensor) -> Tensor:
        if not self.side_by_side:
            return super().forward(x)
        return (self.weight @ x.mT).mT + self.bias  # features that are shared are not repeated


class TaskEmbedding(nn.Module):
    """A learned vector for every training task, where there are no features."""

    def __init__(self, n_tasks: int, size: int, head: nn.Module) -> None:
        super().__init__()
        self.table = nn.Embedding(n_tasks, size)
        nn.init.xavier_uniform_(self.table.weight)
        self.head = head

    def forward(self, task: Tensor) -> Tensor:
        return self.head(self.table(task))


class Standardize(nn.Module):
    """Scale features to mean 0 and deviation 1 of the training rows."""

    mean: Tensor
    scale: Tensor

    def __init__(self, mean: Tensor, scale: Tensor) -> None:
        super().__init__()
        self.register_buffer("mean", mean)
        self.register_buffer("scale", scale)

    def forward(self, x: Tensor) -> Tensor:
        return (x - self.mean) / self.scale

    @classmethod
    def of(cls, x: Tensor) -> Standardize:
        """Measured on the rows of ``x``."""
        return cls.by(*torch.std_mean(x, dim=0, correction=0))

    @classmethod
    def by(cls, deviation: Tensor, mean: Tensor) -> Standardize:
        """A constant column is only centred."""
        return cls(mean, torch.where(deviation > 1e-7, deviation, torch.ones_like(deviation)))


def build_truth(truth: Any, n_in: int | None, n_classes: int) -> nn.Module:
    """The truth model that ``truth`` asks for, freshly initialised.

    ``"linear"``, an :class:`MLP`, a ``torch.nn.Module`` that ends in one logit per class, or a
    function of (number of features, number of classes) that returns one.
    """
    if isinstance(truth, str) and truth == "linear":
        return MLP(hidden=()).build(_known(n_in), n_classes)
    if isinstance(truth, MLP):
        return truth.build(_known(n_in), n_classes)
    if isinstance(truth, nn.Module):
        return reset(copy.deepcopy(truth))
    if isinstance(truth, Callable):  # type: ignore[arg-type]  # mypy knows no callable type
        made = truth(n_in, n_classes)
        if isinstance(made, nn.Module):
            return made
        truth = made
    raise ParameterError(
        explain(
            f"truth={truth!r} is not a truth model.",
            expected="'linear', an MLP, a torch.nn.Module, or a function that makes one",
        )
    )


def refuse_misfit(truth: Any, x: Tensor, n_classes: int) -> None:
    """A truth model of the user's that makes something else than logits of the rows ``x``."""
    cause: Exception | None = None
    try:
        found = tried(truth, x)
        first = str(tuple(found.shape)) if isinstance(found, Tensor) else repr(found)
    except Exception as error:
        first, cause = f"{type(error).__name__}: {error}", error
    wanted = (len(x), n_classes)
    if first != str(wanted):
        raise ParameterError(
            explain(
                "truth makes no logits of these features.",
                first=f"{first:.200}",
                expected=f"a torch.nn.Module that makes {wanted} of features {tuple(x.shape)}: "
                "a row for each task, a column for each class",
            )
        ) from cause


@torch.no_grad()
def tried(module: nn.Module, x: Tensor) -> Any:
    """What a module makes of rows, without a trace in it or in torch's random numbers."""
    device, mode = next((p.device for p in module.parameters()), x.device), module.training
    try:
        with torch.random.fork_rng(devices=[]):
            return module.eval()(x.to(device))
    finally:
        module.train(mode)


def reset(module: nn.Module) -> nn.Module:
    """Draw all parameters anew, so that restarts differ."""
    for part in module.modules():
        draw: Any = getattr(part, "reset_parameters", None)
        if draw is not None:
            draw()
    return module


def _known(n_in: int | None) -> int:
    if n_in is None:
        raise ParameterError(
            "A linear or MLP truth model needs rows of numbers.\n"
            "  fix:      flatten X, or pass your own torch.nn.Module as truth"
        )
    return n_in
