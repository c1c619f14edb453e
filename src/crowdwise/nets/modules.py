"""Torch modules of learners and embedders: networks, objectives, and several side by side."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import torch
from sklearn.base import BaseEstimator
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap
from torch.nn.functional import log_softmax

from crowdwise.errors import ParameterError, explain

FEW = 64  # classes
SHARED = ("gold", "net.scaler.")  # buffers from the data, the same in every restart
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
        Share of hidden units dropped in training.

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
                "\n  fix:      choose one of these"
            )
        layers: list[nn.Module] = []
        for size in self.hidden:
            layers += [Linear(n_in, size), ACTIVATIONS[self.activation]()]
            if self.dropout:
                layers.append(nn.Dropout(self.dropout))
            n_in = size
        return nn.Sequential(*layers, Linear(n_in, n_out))


class Encoder(BaseEstimator):
    """A stack of layers, described; :meth:`build` builds it.

    Every layer, the last one too, is followed by the activation and by dropout, as in the
    published networks. Weights start as Glorot's.

    Parameters
    ----------
    sizes : tuple of int, default=(64, 32)
        Sizes of the layers; the last is that of the representation.
    activation : {"relu", "selu", "sigmoid", "tanh", "none"}, default="sigmoid"
        What follows each layer.
    dropout : float, default=0.2
        Share of units dropped in training.
    bias : {"zero", "normal"}, default="zero"
        Whether biases start at 0, or at random with standard deviation 1 as in NeuCrowd's code.

    Examples
    --------
    >>> Encoder((8, 4), dropout=0.0).build(3)
    Sequential(
      (0): Linear(in_features=3, out_features=8, bias=True)
      (1): Sigmoid()
      (2): Linear(in_features=8, out_features=4, bias=True)
      (3): Sigmoid()
    )
    """

    def __init__(
        self,
        sizes: tuple[int, ...] = (64, 32),
        *,
        activation: str = "sigmoid",
        dropout: float = 0.2,
        bias: str = "zero",
    ) -> None:
        self.sizes = sizes
        self.activation = activation
        self.dropout = dropout
        self.bias = bias

    def build(self, n_in: int) -> nn.Module:
        """Build the layers for so many features."""
        known = {**ACTIVATIONS, "none": None}
        if self.activation not in known or not self.sizes:
            raise ParameterError(
                explain(
                    f"An encoder with activation={self.activation!r} and sizes={self.sizes}.",
                    expected=f"{', '.join(sorted(known))}; and one size or more",
                    fix="choose one of these",
                )
            )
        layers: list[nn.Module] = []
        for size in self.sizes:
            layers.append(_linear(n_in, size, self.bias))
            make = known[self.activation]
            if make is not None:
                layers.append(make())
            if self.dropout:
                layers.append(nn.Dropout(self.dropout))
            n_in = size
        return nn.Sequential(*layers)


LINEAR = MLP(hidden=())
NetworkLike = str | MLP | nn.Module | Callable[[int | None, int], nn.Module]
EncoderLike = Encoder | nn.Module | Callable[[int | None], nn.Module]


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
        """A constant column is only centered."""
        return cls(mean, torch.where(deviation > 1e-7, deviation, torch.ones_like(deviation)))


class EmbedNet(nn.Module):
    """An encoder behind a scaler; with ``document``, a second tower for what is retrieved."""

    def __init__(
        self, scaler: nn.Module, encoder: nn.Module, document: nn.Module | None = None
    ) -> None:
        super().__init__()
        self.scaler, self.encoder, self.document = scaler, encoder, document

    def forward(self, x: Tensor) -> Tensor:
        """The representation, (row, dimension)."""
        return self.encoder(self.scaler(x)).flatten(start_dim=1)

    def describe(self, x: Tensor, output: str) -> Tensor:
        """The features as scaled, the representation (``"vectors"``) or both, (row, number)."""
        if output == "vectors":
            return self(x)
        features = self.scaler(x).flatten(start_dim=1)
        return features if output == "features" else torch.cat([features, self(x)], dim=1)

    def documents(self, x: Tensor) -> Tensor:
        """The representation by the second tower; by the only one where there is no other."""
        tower = self.encoder if self.document is None else self.document
        return tower(self.scaler(x)).flatten(start_dim=1)


def build_network(kind: NetworkLike, n_in: int | None, n_out: int) -> nn.Module:
    """The network that ``kind`` asks for, freshly initialized.

    ``"linear"``, an :class:`MLP`, a ``torch.nn.Module`` that ends in ``n_out`` numbers (one
    logit per class for a truth model), or a function of both numbers that returns one.
    """
    if isinstance(kind, nn.Module):
        return reset(copy.deepcopy(kind))
    found: object = kind
    if isinstance(kind, str):
        found = MLP(hidden=()).build(_known(n_in), n_out) if kind == "linear" else kind
    elif isinstance(kind, MLP):
        found = kind.build(_known(n_in), n_out)
    elif callable(kind):
        found = kind(n_in, n_out)
    if isinstance(found, nn.Module):
        return found
    raise ParameterError(
        explain(
            f"{found!r} is not a network.",
            expected="'linear', an MLP, a torch.nn.Module, or a function that makes one",
            fix="give 'linear', or MLP((64,))",
        )
    )


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


def build_encoder(encoder: EncoderLike, n_in: int | None) -> nn.Module:
    """Build the encoder that is asked for.

    An :class:`Encoder`, a ``torch.nn.Module`` from a batch of features to a batch of vectors
    (copied with its weights, so that one trained before is trained on), or a function of the
    number of features that returns one.
    """
    if isinstance(encoder, Encoder):
        if n_in is None:
            raise ParameterError(
                "An Encoder needs rows of numbers.\n"
                "  fix:      flatten X, or pass your own torch.nn.Module as encoder"
            )
        return encoder.build(n_in)
    if isinstance(encoder, nn.Module):
        return copy.deepcopy(encoder)
    return encoder(n_in)


def _linear(n_in: int, n_out: int, bias: str) -> nn.Module:
    layer = nn.Linear(n_in, n_out)
    nn.init.xavier_uniform_(layer.weight)
    if bias == "normal":
        nn.init.normal_(layer.bias)
    else:
        nn.init.zeros_(layer.bias)
    return layer


class Step(Protocol):
    """A batch, or a part of one."""

    @property
    def ends(self) -> bool:
        """Whether the slopes of a step are complete with it."""


BatchT = TypeVar("BatchT", bound=Step)
ObjectiveT = TypeVar("ObjectiveT", bound="Objective[Any]")


class Objective(nn.Module, ABC, Generic[BatchT]):
    """A network together with the loss it is trained on: what the training loop runs.

    ``forward`` takes the step to run, a function of an objective and a batch such as
    :func:`loss_of`, so that several objectives of one shape can be run as one.
    """

    by: str = "annotation"  # what a mini-batch is made of: annotations, tasks or groups
    adds_up: ClassVar[bool] = False  # whether the losses of parts of a batch are that of the batch
    held_out_everywhere = False  # whether ``held_out`` looks at tasks without held-out labels too
    net: nn.Module

    @abstractmethod
    def loss(self, batch: BatchT) -> Tensor:
        """What training lowers."""

    @abstractmethod
    def held_out(self, batch: BatchT) -> Tensor:
        """Loss on held-out data: what restarts are chosen by, and what patience watches."""

    def forward(self, step: Callable[[Self, BatchT], Tensor], batch: BatchT) -> Tensor:
        return step(self, batch)


def loss_of(objective: Objective[BatchT], batch: BatchT) -> Tensor:
    """The step that an objective is trained by, unless a phase names another."""
    return objective.loss(batch)


def held_out_of(objective: Objective[BatchT], batch: BatchT) -> Tensor:
    """The step that an objective is judged by."""
    return objective.held_out(batch)


class Ensemble(Generic[ObjectiveT]):
    """Several objectives of one shape, run as one."""

    def __init__(self, members: Sequence[ObjectiveT]) -> None:
        self.members = list(members)
        self.template = members[0]
        self.parameters: dict[str, Tensor] = dict(self.template.named_parameters())
        self.buffers: dict[str, Tensor] = dict(self.template.named_buffers())
        if len(members) > 1:
            self.template = copy.deepcopy(members[0])
            for part in self.template.modules():
                if isinstance(part, SideBySide):
                    part.side_by_side = True
            self.parameters, self.buffers = stack_module_state(list(members))
        own = dict(self.template.named_buffers())
        # Scaled features and the like are then worked out once, not by every member.
        alike = {name for name in own if name.startswith(SHARED)}
        self.buffers.update({name: own[name] for name in alike})
        self.axes = {name: None if name in alike else 0 for name in own}

    def __len__(self) -> int:
        return len(self.members)

    def __call__(self, step: Callable[[ObjectiveT, BatchT], Tensor], batch: BatchT) -> Tensor:
        """The step of each member, stacked."""
        if len(self) == 1:
            return self.template(step, batch).unsqueeze(0)

        def one(parameters: dict[str, Tensor], buffers: dict[str, Tensor]) -> Tensor:
            return functional_call(self.template, (parameters, buffers), (step, batch))

        run = vmap(one, in_dims=(0, self.axes), randomness="different")
        return run(self.parameters, self.buffers)

    def train(self, mode: bool) -> None:
        self.template.train(mode)

    def select(self, numbers: Sequence[int]) -> Ensemble[ObjectiveT]:
        """Some of the members, as they are now."""
        return Ensemble([self.member(number) for number in numbers])

    @torch.no_grad()
    def set_target(self, target: Tensor) -> None:
        """Give each member the posterior of its own E-step."""
        if len(self) == 1:
            self.buffers["target"].copy_(target[0])
        else:
            self.buffers["target"].copy_(target)

    def learned(self) -> dict[str, Tensor]:
        """All that training changes: parameters, and running means and the like."""
        own = [n for n in self.buffers if n.startswith("net.") and not n.startswith(SHARED)]
        return {**self.parameters, **{name: self.buffers[name] for name in own}}

    def snapshot(self) -> dict[str, Tensor]:
        return {name: value.detach().clone() for name, value in self.learned().items()}

    @torch.no_grad()
    def keep(self, best: dict[str, Tensor], better: Tensor) -> None:
        """Overwrite the members' entries of ``best`` where ``better``."""
        if not better.any():
            return
        for name, value in self.learned().items():
            if len(self) == 1:
                best[name].copy_(value)
            else:
                rows = better.to(value.device).reshape(-1, *[1] * (value.ndim - 1))
                torch.where(rows, value, best[name], out=best[name])

    @torch.no_grad()
    def restore(self, state: dict[str, Tensor]) -> None:
        for name, value in self.learned().items():
            value.copy_(state[name])

    @torch.no_grad()
    def member(self, number: int) -> ObjectiveT:
        """One member with its own parameters again."""
        if len(self) == 1:
            return self.members[0]
        chosen = self.members[number]
        state = {**self.parameters, **self.buffers}
        for name, value in (*chosen.named_parameters(), *chosen.named_buffers()):
            if self.axes.get(name, 0) == 0:
                value.copy_(state[name][number])
        return chosen
