"""A classifier cut into an embedding and a last layer, and the way back to its input."""

from __future__ import annotations

import copy

import torch
from numpy.random import RandomState
from sklearn.base import clone
from torch import Tensor, nn

from crowdwise.annotations import Annotations
from crowdwise.errors import ParameterError, explain
from crowdwise.learn.noise import NoNoiseNet
from crowdwise.learn.objectives import PerLabelLoss
from crowdwise.learn.parts import CrowdNet, CrowdObjective, per_annotation, pick
from crowdwise.nets.batches import Batch, CrowdData, as_data
from crowdwise.nets.features import Features
from crowdwise.nets.loop import Phase, train
from crowdwise.nets.modules import MLP, Standardize, loss_of
from crowdwise.nets.training import Training
from crowdwise.typing import Floats, Ints


class EmbeddingNet:
    """A network with the tasks it learns from, some of them real and some only embeddings.

    Attributes
    ----------
    loss : list of float
        Training loss of every epoch so far.
    interrupted : bool
        Whether Ctrl-C ended training.
    """

    def __init__(
        self, net: CrowdNet, features: Features, training: Training, rng: RandomState
    ) -> None:
        self.net, self.features, self.rng = net, features, rng
        self.training = clone(training).set_params(n_restarts=1, patience=None)
        self.body, self.head = cut(net.truth)
        self.rows = MixedRows(net.scaler, self.body, self.head, features.shape)
        self.x: Tensor = features.source
        self.decoder = mirror(self.body, self.head.in_features, self.x[:1].numel())
        self.decoder.to(self.x.device)
        self.loss: list[float] = []
        self.interrupted = False

    @torch.no_grad()
    def embed(self) -> Floats:
        """Where the real tasks lie, (task, dimension)."""
        self.net.eval()
        return self.body(self.net.scaler(self.x)).flatten(1).cpu().numpy()

    @torch.no_grad()
    def log_proba(self, new: Floats) -> Floats:
        """Log P(truth | features) of the real tasks, then of new ones by their embedding."""
        self.net.eval()
        logits = self.net.truth(self.net.scaler(self.x)), self.head(self.x.new_tensor(new))
        return torch.cat(logits).double().log_softmax(dim=-1).cpu().numpy()

    @torch.no_grad()
    def predict(self) -> Ints:
        """Most probable class of each real task."""
        self.net.eval()
        return self.net.log_truth(self.x).argmax(dim=-1).cpu().numpy()

    @torch.no_grad()
    def label_loss(self, votes: Annotations, confusion: Floats) -> float:
        """Negative log-likelihood of labels on the real tasks, per annotation."""
        self.net.eval()
        batch = as_data(self.features, votes, None, self.x.device).whole()
        tables = torch.as_tensor(confusion).to(batch.x).log()  # (worker, truth, label)
        score = pick(tables[batch.worker], batch.label)
        return -float(per_annotation(self.net.log_truth(batch.x), score, batch))

    def learn(self, rows: Tensor, labels: Annotations, epochs: int) -> int:
        """Train on rows with one label each; return how many epochs that took."""
        if not labels.n_annotations or not epochs or self.interrupted:
            return 0
        data = as_data(Features(rows), labels, None, rows.device)
        net = CrowdNet(nn.Identity(), self.rows, NoNoiseNet(labels.n_classes))
        phases: list[Phase[PerLabelLoss, Batch]] = [Phase(epochs)]
        _, history = train([PerLabelLoss(net, data)], data, None, phases, self.training, self.rng)
        self.interrupted = len(history.loss) < epochs
        self.loss += [row[0] for row in history.loss]
        return len(history.loss)

    def reconstruct(self, votes: Annotations, epochs: int, *, body: bool) -> None:
        """Train the decoder to give features back; with ``body``, the embedding along with it."""
        data = as_data(self.features, votes, None, self.x.device)
        whole = Reconstruction(self.net, self.body, self.decoder, data)
        step = loss_of if body else Reconstruction.decoder_loss
        phases: list[Phase[Reconstruction, Batch]] = [Phase(epochs, loss=step)]
        train([whole], data, None, phases, self.training, self.rng)

    @torch.no_grad()
    def decode(self, embedded: Floats) -> Tensor:
        """Features of embeddings; themselves where the network has no other layer."""
        z = self.x.new_tensor(embedded)
        return unscale(self.net.scaler, self.decoder.eval()(z) if len(self.body) else z)

    def stack(self, new: Tensor | None = None, *, embedded: bool = False) -> Tensor:
        """Rows to learn from: the real tasks, then new ones as features or as embeddings."""
        flat = self.x.flatten(1)
        return self.rows.stack(flat, flat[:0] if new is None else new, embedded)

    def state(self) -> dict[str, Tensor]:
        """A copy of all that the network has learned."""
        return copy.deepcopy(self.net.state_dict())


class Reconstruction(CrowdObjective):
    """Mean squared error of scaled features, decoded from their embedding."""

    by = "task"

    def __init__(
        self, net: CrowdNet, body: nn.Sequential, decoder: nn.Module, data: CrowdData
    ) -> None:
        super().__init__(net, data)
        self.body, self.decoder = body, decoder

    def loss(self, batch: Batch) -> Tensor:
        x = self.net.scaler(batch.x)
        return (self.decoder(self.body(x)) - x.flatten(1)).square().mean()

    def decoder_loss(self, batch: Batch) -> Tensor:
        """The same, which trains the decoder alone."""
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

    def stack(self, real: Tensor, new: Tensor, embedded: bool) -> Tensor:
        """Rows for real and new tasks, the latter given as features or as embeddings."""
        width = max(real.shape[1], self.head.in_features) + 1
        rows = real.new_zeros(len(real) + len(new), width)
        rows[: len(real), : real.shape[1]] = real
        rows[len(real) :, : new.shape[1]] = new
        rows[len(real) :, -1] = float(embedded)
        return rows


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


def mirror(body: nn.Sequential, n_embedded: int, n_out: int) -> nn.Module:
    """A decoder with the linear layers of ``body`` in reverse; one layer if it has no others."""
    widths = [part.out_features for part in body.modules() if isinstance(part, nn.Linear)]
    return MLP(hidden=tuple(widths[-2::-1])).build(n_embedded, n_out)


def unscale(scaler: nn.Module, scaled: Tensor) -> Tensor:
    """What the scaler would turn into ``scaled``."""
    return scaled * scaler.scale + scaler.mean if isinstance(scaler, Standardize) else scaled
