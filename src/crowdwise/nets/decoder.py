"""A network cut into what it sees and what it decides, and the way back to its input."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from crowdwise.errors import ParameterError, explain
from crowdwise.learn.objectives import CrowdNet, CrowdObjective
from crowdwise.nets.batches import Batch, CrowdData
from crowdwise.nets.modules import MLP, Standardize


def cut(truth: nn.Module) -> tuple[nn.Sequential, nn.Linear]:
    """The layers up to the embedding, and the last one, which share the network's weights."""
    parts = list(truth.children()) if isinstance(truth, nn.Sequential) else []
    last = parts[-1] if parts else None
    if not isinstance(last, nn.Linear):
        raise ParameterError(
            explain(
                f"The truth model is a {type(truth).__name__} that has no embedding.",
                expected="'linear', an MLP, or a torch.nn.Sequential that ends in a Linear layer",
            )
        )
    return nn.Sequential(*parts[:-1]), last


def mirrored(body: nn.Sequential, n_embedded: int, n_out: int) -> nn.Module:
    """A decoder with the linear layers of ``body`` in reverse; one layer if it has no others."""
    widths = [part.out_features for part in body.modules() if isinstance(part, nn.Linear)]
    return MLP(hidden=tuple(widths[-2::-1])).build(n_embedded, n_out)


def unscaled(scaler: nn.Module, scaled: Tensor) -> Tensor:
    """What the scaler would turn into ``scaled``."""
    return scaled * scaler.scale + scaler.mean if isinstance(scaler, Standardize) else scaled


class Reconstruction(CrowdObjective):
    """Mean squared error of scaled features, from their embedding.

    ``loss`` trains the embedding and the decoder, ``refit`` the decoder alone.
    """

    by = "task"

    def __init__(
        self, net: CrowdNet, body: nn.Sequential, decoder: nn.Module, data: CrowdData
    ) -> None:
        super().__init__(net, data)
        self.body, self.decoder = body, decoder

    def loss(self, batch: Batch) -> Tensor:
        x = self.net.scaler(batch.x)
        return (self.decoder(self.body(x)) - x.flatten(1)).square().mean()

    def refit(self, batch: Batch) -> Tensor:
        x = self.net.scaler(batch.x)
        with torch.no_grad():
            embedded = self.body(x)
        return (self.decoder(embedded) - x.flatten(1)).square().mean()


class MixedRows(nn.Module):
    """Logits of rows that hold features or, where the last column is 1, an embedding."""

    def __init__(
        self, scaler: nn.Module, body: nn.Sequential, head: nn.Linear, shape: tuple[int, ...]
    ) -> None:
        super().__init__()
        self.scaler, self.body, self.head, self.shape = scaler, body, head, shape

    def forward(self, rows: Tensor) -> Tensor:
        n_in, n_embedded = torch.Size(self.shape).numel(), self.head.in_features
        x = rows[:, :n_in].reshape(len(rows), *self.shape)
        real = self.head(self.body(self.scaler(x)))
        return torch.where(rows[:, -1:] > 0, self.head(rows[:, :n_embedded]), real)

    def stacked(self, real: Tensor, new: Tensor, embedded: bool) -> Tensor:
        """Rows for real and new tasks, the latter given as features or as embeddings."""
        width = max(real.shape[1], self.head.in_features) + 1
        rows = real.new_zeros(len(real) + len(new), width)
        rows[: len(real), : real.shape[1]] = real
        rows[len(real) :, : new.shape[1]] = new
        rows[len(real) :, -1] = float(embedded)
        return rows
