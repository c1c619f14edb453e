"""The networks of learners and embedders: descriptions, construction, standardization."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import log_softmax

from crowdwise.base.params import Part, between, one_of
from crowdwise.errors import ParameterError, explain

FEW = 64  # classes
ACTIVATIONS = {"relu": nn.ReLU, "selu": nn.SELU, "sigmoid": nn.Sigmoid, "tanh": nn.Tanh}


class MLP(Part):
    """The description of a multi-layer perceptron; :meth:`build` builds it.

    Parameters
    ----------
    hidden : tuple of int, default=(128,)
        Sizes of the hidden layers; none makes a linear model.
    activation : {"relu", "selu", "sigmoid", "tanh"}, default="relu"
        Activation after each hidden layer.
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

    _parameter_constraints = {
        "hidden": ["array-like"],
        "activation": [one_of(*ACTIVATIONS)],
        "dropout": [between(0.0, 1.0)],
    }

    def __init__(
        self, hidden: tuple[int, ...] = (128,), *, activation: str = "relu", dropout: float = 0.0
    ) -> None:
        self.hidden = hidden
        self.activation = activation
        self.dropout = dropout

    def build(self, n_in: int, n_out: int) -> nn.Module:
        self.check()
        check_sizes(self.hidden)
        layers: list[nn.Module] = []
        for size in self.hidden:
            layers += [Linear(n_in, size), ACTIVATIONS[self.activation]()]
            if self.dropout:
                layers.append(nn.Dropout(self.dropout))
            n_in = size
        return nn.Sequential(*layers, Linear(n_in, n_out))


class Encoder(Part):
    """The description of a stack of layers; :meth:`build` builds it.

    Every layer, including the last, is followed by the activation and by dropout, as in the
    published networks. Weights are initialized by Glorot's rule.

    Parameters
    ----------
    sizes : tuple of int, default=(64, 32)
        Sizes of the layers; the last is that of the representation.
    activation : {"relu", "selu", "sigmoid", "tanh", "none"}, default="sigmoid"
        Activation after each layer.
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

    _parameter_constraints = {
        "sizes": ["array-like"],
        "activation": [one_of(*ACTIVATIONS, "none")],
        "dropout": [between(0.0, 1.0)],
        "bias": [one_of("zero", "normal")],
    }

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
        """Build the layers for this many features."""
        self.check()
        check_sizes(self.sizes, least=1)
        layers: list[nn.Module] = []
        for size in self.sizes:
            layers.append(_linear(n_in, size, self.bias))
            if self.activation != "none":
                layers.append(ACTIVATIONS[self.activation]())
            if self.dropout:
                layers.append(nn.Dropout(self.dropout))
            n_in = size
        return nn.Sequential(*layers)


def check_sizes(sizes: Sequence[object], least: int = 0) -> None:
    """Refuse invalid layer sizes, or too few of them."""
    whole = [isinstance(size, Integral) and int(size) > 0 for size in sizes]
    if not all(whole) or len(whole) < least:
        raise ParameterError(
            explain(
                f"Layers of the sizes {sizes!r} cannot be made.",
                expected=f"whole numbers of 1 or more, {least or 'none'} or more of them",
                fix="write them as in (64, 32)",
            )
        )


LINEAR = MLP(hidden=())
NetworkLike = str | MLP | nn.Module | Callable[[int | None, int], nn.Module]
EncoderLike = Encoder | nn.Module | Callable[[int | None], nn.Module]


class TwoTowers(Part):
    """Two encoders of the same kind, one for anchors and one for what they are compared with.

    ``transform`` uses the encoder of the anchors. As in RLL's published code.

    Parameters
    ----------
    encoder : Encoder, torch.nn.Module or function, optional
        The kind of both encoders; ``Encoder()`` if not given.
    """

    def __init__(self, encoder: EncoderLike | None = None) -> None:
        self.encoder = encoder


class SideBySide:
    """A part of a net that runs faster in its own way if several restarts are run as one.

    A single net uses torch's own kernels; the two differ by rounding.
    """

    side_by_side = False

    def log_classes(self, logits: Tensor) -> Tensor:
        """Compute log-softmax over the last axis, which torch does slowly if that is short."""
        if not self.side_by_side or logits.shape[-1] > FEW:
            return log_softmax(logits, dim=-1)
        return log_softmax(logits.movedim(-1, 0), dim=0).movedim(0, -1)


class Linear(SideBySide, nn.Linear):
    """A linear map; side by side, one product with the stacked weights of all restarts."""

    def forward(self, x: Tensor) -> Tensor:
        if not self.side_by_side:
            return super().forward(x)
        return (self.weight @ x.mT).mT + self.bias  # shared features are not repeated


class Standardize(nn.Module):
    """Scales features to mean 0 and standard deviation 1 on the training rows."""

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
        """Fit the scaling to the rows of ``x``."""
        return cls.by(*torch.std_mean(x, dim=0, correction=0))

    @classmethod
    def by(cls, deviation: Tensor, mean: Tensor) -> Standardize:
        """Make the scaling; constant columns are only centered."""
        return cls(mean, torch.where(deviation > 1e-7, deviation, torch.ones_like(deviation)))


class EmbedNet(nn.Module):
    """An encoder after a scaler; with ``document``, a second tower for what is retrieved."""

    def __init__(
        self, scaler: nn.Module, encoder: nn.Module, document: nn.Module | None = None
    ) -> None:
        super().__init__()
        self.scaler, self.encoder, self.document = scaler, encoder, document

    def forward(self, x: Tensor) -> Tensor:
        """Return the representation, (row, dimension)."""
        return self.encoder(self.scaler(x)).flatten(start_dim=1)

    def describe(self, x: Tensor, output: str) -> Tensor:
        """Return the scaled features, the representation (``"vectors"``) or both side by side."""
        if output == "vectors":
            return self(x)
        features = self.scaler(x).flatten(start_dim=1)
        return features if output == "features" else torch.cat([features, self(x)], dim=1)

    def documents(self, x: Tensor) -> Tensor:
        """Return the representation by the second tower, or by the only one."""
        tower = self.encoder if self.document is None else self.document
        return tower(self.scaler(x)).flatten(start_dim=1)


def build_network(kind: NetworkLike, n_in: int | None, n_out: int) -> nn.Module:
    """Build the network that ``kind`` describes, freshly initialized.

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
    """Draw all parameters again, so that restarts differ."""
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
    (copied with its weights, so that pretrained ones are trained further), or a function of the
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


def build_towers(encoder: EncoderLike | TwoTowers, shape: tuple[int, ...]) -> list[nn.Module]:
    """Build one encoder, or two of them, for features of this shape."""
    n_in = shape[0] if len(shape) == 1 else None
    if not isinstance(encoder, TwoTowers):
        return [build_encoder(encoder, n_in)]
    own = Encoder() if encoder.encoder is None else encoder.encoder
    return [build_encoder(own, n_in) for _ in range(2)]


def _linear(n_in: int, n_out: int, bias: str) -> nn.Module:
    layer = nn.Linear(n_in, n_out)
    nn.init.xavier_uniform_(layer.weight)
    if bias == "normal":
        nn.init.normal_(layer.bias)
    else:
        nn.init.zeros_(layer.bias)
    return layer
