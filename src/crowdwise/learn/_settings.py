"""How a network is trained: the settings, and what they make."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from sklearn.base import BaseEstimator
from torch import Tensor

from crowdwise.errors import ParameterError

OPTIMIZERS: dict[str, Any] = {
    "adam": (torch.optim.Adam, {}),
    "amsgrad": (torch.optim.Adam, {"amsgrad": True}),
    "adamw": (torch.optim.AdamW, {}),
    "radam": (torch.optim.RAdam, {}),
    "adadelta": (torch.optim.Adadelta, {"rho": 0.95, "eps": 1e-8}),
    "sgd": (torch.optim.SGD, {"momentum": 0.9}),
}


class Training(BaseEstimator):
    """How a network is trained; shared by every learner.

    Parameters
    ----------
    optimizer : {"adam", "amsgrad", "adamw", "radam", "adadelta", "sgd"}, default="adam"
        The rule that turns gradients into steps.
    learning_rate : float or mapping, default=1e-2
        Step size; ``{"truth": …, "noise": …}`` gives the two models their own.
    weight_decay : float or mapping, default=0
        L2 penalty on the parameters.
    batch_size : int or None, default=None
        Annotations (or tasks, where an objective needs whole tasks) per step; None for all.
    epochs : int, default=500
        Passes over the data.
    schedule : {"constant", "cosine"}, default="constant"
        Whether the learning rate falls to 0 over the epochs.
    n_restarts : int, default=1
        Networks trained side by side from different starts; the one that predicts held-out
        labels best is kept.
    validation_fraction : float, default=0.1
        Share of the annotations held out when there are restarts or ``patience`` to decide.
    patience : int or None, default=None
        Stop after so many epochs without a better held-out likelihood, and keep the best.
    worker_dropout : float, default=0
        Chance that a label counts as the unknown worker's, who is learned in this way.
        Without it the unknown worker is the average of the others.
    device : {"auto", "cpu", "cuda"} or str, default="auto"
        Where to train; auto takes a GPU if there is one.
    verbose : bool, default=False
        Log every tenth of the way.
    """

    def __init__(
        self,
        *,
        optimizer: str = "adam",
        learning_rate: float | Mapping[str, float] = 1e-2,
        weight_decay: float | Mapping[str, float] = 0.0,
        batch_size: int | None = None,
        epochs: int = 500,
        schedule: str = "constant",
        n_restarts: int = 1,
        validation_fraction: float = 0.1,
        patience: int | None = None,
        worker_dropout: float = 0.0,
        device: str = "auto",
        verbose: bool = False,
    ) -> None:
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.epochs = epochs
        self.schedule = schedule
        self.n_restarts = n_restarts
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.worker_dropout = worker_dropout
        self.device = device
        self.verbose = verbose

    @property
    def holds_out(self) -> bool:
        """Whether some annotations are kept aside to decide with."""
        return self.n_restarts > 1 or self.patience is not None


def make_optimizer(training: Training, parameters: Mapping[str, Tensor]) -> torch.optim.Optimizer:
    """The optimiser, with a group of its own for each part of the net."""
    kind, options = OPTIMIZERS[training.optimizer]
    groups = []
    for part in ("truth", "noise", ""):
        chosen = [p for name, p in parameters.items() if _part(name) == part]
        if chosen:
            rate = _for_part(training.learning_rate, part, 1e-3)
            decay = _for_part(training.weight_decay, part, 0.0)
            groups.append({"params": chosen, "lr": rate, "weight_decay": decay})
    return kind(groups, **options)


def _part(name: str) -> str:
    pieces = name.split(".")
    return next((p for p in pieces[:2] if p in ("truth", "noise")), "")


def _for_part(value: float | Mapping[str, float], part: str, default: float) -> float:
    if isinstance(value, Mapping):
        return value.get(part, default)
    return value


def check(training: Training) -> None:
    """Refuse settings that make no sense."""
    if training.optimizer not in OPTIMIZERS:
        raise ParameterError(
            f"optimizer={training.optimizer!r} is unknown.\n  expected: {', '.join(OPTIMIZERS)}"
        )
    if training.schedule not in ("constant", "cosine"):
        raise ParameterError(
            f"schedule={training.schedule!r} is unknown.\n  expected: constant, cosine"
        )
    for name, low in (("n_restarts", 1), ("epochs", 0), ("batch_size", 1), ("patience", 1)):
        value = getattr(training, name)
        if value is not None and value < low:
            raise ParameterError(f"{name}={value} is too small.\n  expected: {low} or more")
    if not 0 < training.validation_fraction < 1:
        raise ParameterError(
            f"validation_fraction={training.validation_fraction}.\n  expected: between 0 and 1"
        )


def pick_device(name: str) -> torch.device:
    """The device that ``name`` asks for."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ParameterError(f"device={name!r} is unknown.\n  expected: auto, cpu, cuda") from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ParameterError(f"device={name!r}, but there is no GPU.\n  fix:      device='cpu'")
    return device
