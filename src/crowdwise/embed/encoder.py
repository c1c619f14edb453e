"""Encoders: networks from features to a representation."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TypeAlias

from sklearn.base import BaseEstimator
from torch import Tensor, nn

from crowdwise.errors import ParameterError, explain
from crowdwise.nets.features import Features, try_module
from crowdwise.nets.modules import ACTIVATIONS


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


# A function of the number of features may give the network.
EncoderLike: TypeAlias = "Encoder | nn.Module | Callable[[int | None], nn.Module]"


class TwoTowers(BaseEstimator):
    """An encoder for anchors and another one, of the same kind, for what they are compared with.

    ``transform`` uses that of the anchors. As in RLL's published code.

    Parameters
    ----------
    encoder : Encoder, torch.nn.Module or function, optional
        What each of them is; ``Encoder()`` if not given.
    """

    def __init__(self, encoder: EncoderLike | None = None) -> None:
        self.encoder = encoder


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

    def documents(self, x: Tensor) -> Tensor:
        """The representation by the second tower; by the only one where there is no other."""
        tower = self.encoder if self.document is None else self.document
        return tower(self.scaler(x)).flatten(start_dim=1)


def build_towers(encoder: EncoderLike | TwoTowers, shape: tuple[int, ...]) -> list[nn.Module]:
    """One encoder, or two of them, for features of this shape."""
    n_in = shape[0] if len(shape) == 1 else None
    if not isinstance(encoder, TwoTowers):
        return [build_encoder(encoder, n_in)]
    own = Encoder() if encoder.encoder is None else encoder.encoder
    return [build_encoder(own, n_in) for _ in range(2)]


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


def size_of(net: EmbedNet, features: Features) -> int:
    """The dimension of the representation, found by applying the network."""
    x = features.some()
    try:
        return int(try_module(net, x).shape[1])
    except Exception as error:
        raise ParameterError(
            explain(
                "encoder does not turn these features into vectors.",
                first=f"{type(error).__name__}: {error}",
                expected=f"a torch.nn.Module that takes features of shape {tuple(x.shape)}",
            )
        ) from error


def _linear(n_in: int, n_out: int, bias: str) -> nn.Module:
    layer = nn.Linear(n_in, n_out)
    nn.init.xavier_uniform_(layer.weight)
    if bias == "normal":
        nn.init.normal_(layer.bias)
    else:
        nn.init.zeros_(layer.bias)
    return layer
