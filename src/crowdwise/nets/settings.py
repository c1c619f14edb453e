"""How a network is trained: the settings, and what they make."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import torch
from sklearn.base import BaseEstimator
from torch import Tensor

from crowdwise.errors import ParameterError, explain

OPTIMIZERS: dict[str, Any] = {
    "adam": (torch.optim.Adam, {}),
    "amsgrad": (torch.optim.Adam, {"amsgrad": True}),
    "adamw": (torch.optim.AdamW, {}),
    "radam": (torch.optim.RAdam, {}),
    "adadelta": (torch.optim.Adadelta, {"rho": 0.95, "eps": 1e-8}),
    "sgd": (torch.optim.SGD, {"momentum": 0.9}),
}
WORDS: dict[str, Any] = {  # settings that are one of a few words
    "optimizer": OPTIMIZERS,
    "schedule": ("constant", "cosine"),
    "hold_out": ("labels", "tasks"),
}
PARTS = ("truth", "noise", "encoder", "hardness", "centre")  # with rates of their own


class Training(BaseEstimator):
    """How a network is trained; shared by every learner.

    Parameters
    ----------
    optimizer : {"adam", "amsgrad", "adamw", "radam", "adadelta", "sgd"}, default="adam"
        The rule that turns gradients into steps.
    learning_rate : float or mapping, default=1e-2
        Step size; ``{"truth": …, "noise": …}`` gives the two models their own. The parts of an
        embedder are "encoder", "hardness" and "centre".
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
    hold_out : {"labels", "tasks"}, default="labels"
        Whether single labels are held out, or all labels of some tasks. The first asks how well
        the labels of known tasks are explained, the second how well new tasks are predicted:
        a large network that learns tasks by heart is stopped only by the second.
    patience : int or None, default=None
        Stop after so many epochs without a better held-out likelihood, and keep the best.
    worker_dropout : float, default=0
        Chance that a label counts as the unknown worker's, who is learned in this way.
        Without it the unknown worker is the average of the others.
    class_weight : "balanced", array of shape (n_classes,) or None, default=None
        How much tasks of each class count: batches are drawn with replacement, each task or
        annotation by the mean weight of its task's labels. Balanced weighs a class by one
        over how often it is labeled. What is inferred of the tasks is left as it is.
    device : {"auto", "cpu", "cuda"} or str, default="auto"
        Where to train; auto takes a GPU if there is one.
    verbose : bool, default=False
        Tell of every tenth of the way: in the log, or on standard error if nothing shows that.
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
        hold_out: str = "labels",
        patience: int | None = None,
        worker_dropout: float = 0.0,
        class_weight: Any = None,
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
        self.hold_out = hold_out
        self.patience = patience
        self.worker_dropout = worker_dropout
        self.class_weight = class_weight
        self.device = device
        self.verbose = verbose

    @property
    def holds_out(self) -> bool:
        """Whether some annotations are kept aside to decide with."""
        return self.n_restarts > 1 or self.patience is not None


def tell(text: str) -> None:
    """Log progress that was asked for; show it where logging is not set up to."""
    log = logging.getLogger("crowdwise")
    if log.isEnabledFor(logging.INFO) and log.hasHandlers():
        log.info(text)
    else:
        sys.stderr.write(f"{text}\n")


def make_optimizer(training: Training, parameters: Mapping[str, Tensor]) -> torch.optim.Optimizer:
    """The optimiser, with a group of its own for each part of the net."""
    kind, options = OPTIMIZERS[training.optimizer]
    groups = []
    for part in (*PARTS, ""):
        chosen = [p for name, p in parameters.items() if _part(name) == part]
        if chosen:
            rate = _for_part(training.learning_rate, part, 1e-3)
            decay = _for_part(training.weight_decay, part, 0.0)
            groups.append({"params": chosen, "lr": rate, "weight_decay": decay})
    return kind(groups, **options)


def _part(name: str) -> str:
    pieces = name.split(".")
    return next((p for p in pieces[:2] if p in PARTS), "")


def _for_part(value: float | Mapping[str, float], part: str, default: float) -> float:
    if isinstance(value, Mapping):
        return value.get(part, default)
    return value


def check(training: Training) -> None:
    """Refuse settings that make no sense."""
    for name, known in WORDS.items():
        value = getattr(training, name)
        if value not in known:
            raise ParameterError(f"{name}={value!r} is unknown.\n  expected: {', '.join(known)}")
    for name, low in (("n_restarts", 1), ("epochs", 0), ("batch_size", 1), ("patience", 1)):
        value = getattr(training, name)
        if value is not None and not isinstance(value, Integral):
            raise ParameterError(f"{name}={value!r}.\n  expected: a whole number")
        if value is not None and value < low:
            raise ParameterError(f"{name}={value} is too small.\n  expected: {low} or more")
    for name in ("learning_rate", "weight_decay"):
        _check_rates(name, getattr(training, name))
    dropout, held_out = training.worker_dropout, training.validation_fraction
    if not isinstance(dropout, Real) or not 0 <= dropout <= 1:
        raise ParameterError(f"worker_dropout={dropout!r}.\n  expected: a number from 0 to 1")
    if not isinstance(held_out, Real) or not 0 < held_out < 1:
        raise ParameterError(f"validation_fraction={held_out!r}.\n  expected: between 0 and 1")
    weight = training.class_weight
    if isinstance(weight, Mapping) or (isinstance(weight, str) and weight != "balanced"):
        raise ParameterError(
            f"class_weight={weight!r:.80} is unknown.\n"
            "  expected: balanced, one number per class in their order, or None"
        )


def _check_rates(name: str, value: Any) -> None:
    """Refuse a rate below 0, and rates of parts that no net has."""
    rates = value if isinstance(value, Mapping) else {"": value}
    strange = [part for part in rates if part not in (*PARTS, "")]
    if strange:
        raise ParameterError(
            explain(f"{name} is for {strange[0]!r}, which no net has.", expected=", ".join(PARTS))
        )
    for rate in rates.values():
        if not isinstance(rate, Real) or not float(rate) >= 0:
            raise ParameterError(f"{name}={rate!r}.\n  expected: a number, 0 or more")


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
