"""Training settings, shared by all learners and embedders."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real
from typing import Any, ClassVar

import torch
from numpy.typing import ArrayLike

from crowdwise.base.params import Constraints, Part, at_least, between, one_of
from crowdwise.errors import ParameterError, explain

OPTIMIZERS: dict[str, tuple[type[torch.optim.Optimizer], dict[str, Any]]] = {
    "adam": (torch.optim.Adam, {}),
    "amsgrad": (torch.optim.Adam, {"amsgrad": True}),
    "adamw": (torch.optim.AdamW, {}),
    "radam": (torch.optim.RAdam, {}),
    "adadelta": (torch.optim.Adadelta, {"rho": 0.95, "eps": 1e-8}),
    "sgd": (torch.optim.SGD, {"momentum": 0.9}),
}


PARTS = ("truth", "noise", "ease", "encoder", "hardness", "center")  # that may have their own rates


class Training(Part):
    """Settings for training a network; shared by every learner.

    Parameters
    ----------
    optimizer : {"adam", "amsgrad", "adamw", "radam", "adadelta", "sgd"}, default="adam"
        The rule that turns gradients into steps.
    learning_rate : float or mapping, default=1e-2
        Step size; ``{"truth": …, "noise": …}`` gives the two models their own, and "ease" the
        network of ease inside the noise model of SpeeLFCD. The parts of an embedder are
        "encoder", "hardness" and "center".
    weight_decay : float or mapping, default=0
        L2 penalty on the parameters.
    batch_size : int or None, default=None
        Annotations or tasks per step; None for all.
    batch_of : {"annotations", "tasks"}, default="annotations"
        The unit of a batch: single annotations, or tasks with all their annotations. An
        objective that needs whole tasks, such as EM, always gets tasks.
    epochs : int, default=500
        Passes over the data.
    schedule : {"constant", "cosine"}, default="constant"
        Whether the learning rate falls to 0 over the epochs.
    n_restarts : int, default=1
        Networks trained side by side from different starting points; the one that predicts
        held-out labels best is kept.
    validation_fraction : float, default=0.1
        Share of the annotations held out if there are restarts or ``patience``.
    hold_out : {"labels", "tasks"}, default="labels"
        Whether single labels are held out, or all labels of some tasks. The first measures how
        well the labels of known tasks are explained, the second how well new tasks are
        predicted: only the second stops a large network that memorizes tasks.
    patience : int or None, default=None
        Stop after this many epochs without a better held-out likelihood, and keep the best.
    worker_dropout : float, default=0
        Probability that a label is assigned to the unknown worker, who is learned this way.
        Without it, the unknown worker is the average of the others.
    class_weight : "balanced", array of shape (n_classes,) or None, default=None
        Weight of the tasks of each class: batches are drawn with replacement, each task or
        annotation by the mean weight of its task's labels. "balanced" weights a class by one
        over how often it is labeled. What is inferred about the tasks is not affected.
    device : {"auto", "cpu", "cuda"} or str, default="auto"
        Where to train; auto uses a GPU if there is one.
    verbose : bool, default=False
        Report progress ten times: in the log, or on standard error if logging is not shown.
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "optimizer": [one_of(*OPTIMIZERS)],
        "learning_rate": [between(0.0, math.inf), Mapping],
        "weight_decay": [between(0.0, math.inf), Mapping],
        "batch_size": [at_least(1), None],
        "batch_of": [one_of("annotations", "tasks")],
        "epochs": [at_least(0)],
        "schedule": [one_of("constant", "cosine")],
        "n_restarts": [at_least(1)],
        "validation_fraction": [between(0.0, 1.0, ends=False)],
        "hold_out": [one_of("labels", "tasks")],
        "patience": [at_least(1), None],
        "worker_dropout": [between(0.0, 1.0)],
        "device": [str],
        "class_weight": [one_of("balanced"), "array-like", None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        *,
        optimizer: str = "adam",
        learning_rate: float | Mapping[str, float] = 1e-2,
        weight_decay: float | Mapping[str, float] = 0.0,
        batch_size: int | None = None,
        batch_of: str = "annotations",
        epochs: int = 500,
        schedule: str = "constant",
        n_restarts: int = 1,
        validation_fraction: float = 0.1,
        hold_out: str = "labels",
        patience: int | None = None,
        worker_dropout: float = 0.0,
        class_weight: str | ArrayLike | None = None,
        device: str = "auto",
        verbose: bool = False,
    ) -> None:
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.batch_of = batch_of
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


def check_rates(name: str, rates: Mapping[str, object]) -> None:
    """Refuse rates for parts that no network has, and negative rates."""
    strange = [part for part in rates if part not in (*PARTS, "")]
    if strange:
        raise ParameterError(
            explain(
                f"{name} is for {strange[0]!r}, which no network has.",
                expected=", ".join(PARTS),
                fix="choose one of these",
            )
        )
    for rate in rates.values():
        if not isinstance(rate, Real) or not float(rate) >= 0:
            raise ParameterError(
                explain(
                    f"{name}={rate!r}.",
                    expected="a number, 0 or more",
                    fix="give a number such as 0.01",
                )
            )
