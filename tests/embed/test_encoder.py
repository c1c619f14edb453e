"""Encoders: what is built, and what is refused."""

import numpy as np
import pytest
import torch
from torch import nn

from crowdwise.embed import Encoder
from crowdwise.embed.embedder import size_of
from crowdwise.errors import ParameterError
from crowdwise.nets.features import as_features
from crowdwise.nets.modules import EmbedNet, build_encoder


def test_layers_as_described():
    net = Encoder((5, 3), activation="tanh", dropout=0.3).build(4)
    kinds = [type(part).__name__ for part in net]
    assert kinds == ["Linear", "Tanh", "Dropout", "Linear", "Tanh", "Dropout"]
    assert net[3].out_features == 3
    assert not net[0].bias.any()
    bound = np.sqrt(6 / (4 + 5))  # Glorot's
    assert net[0].weight.abs().max() <= bound
    plain = Encoder((5, 3), activation="none", dropout=0.0).build(4)
    assert [type(part).__name__ for part in plain] == ["Linear", "Linear"]
    assert Encoder((40,), bias="normal").build(4)[0].bias.std() > 0.5


@pytest.mark.parametrize(
    "bad",
    [Encoder(activation="swish"), Encoder(()), Encoder((8, 0)), Encoder(8), Encoder(dropout=2.0)],
    ids=str,
)
def test_strange_descriptions_are_refused(bad):
    with pytest.raises(ValueError, match=r"parameter of Encoder must be|Layers of the sizes"):
        bad.build(4)


def test_pictures_need_a_module_of_your_own():
    with pytest.raises(ParameterError, match=r"torch\.nn\.Module"):
        build_encoder(Encoder(), None)


def test_two_towers_and_the_size():
    net = EmbedNet(nn.Identity(), nn.Linear(3, 2), nn.Linear(3, 2))
    x = torch.randn(4, 3)
    assert not torch.equal(net(x), net.documents(x))
    assert torch.equal(EmbedNet(nn.Identity(), net.encoder).documents(x), net(x))
    assert size_of(net, as_features(np.zeros((2, 3)))) == 2
    assert net.training
