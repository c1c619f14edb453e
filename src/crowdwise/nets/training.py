"""How a network is trained: the settings that every learner and embedder shares."""

from __future__ import annotations

from collections.abc import Mapping

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator


class Training(BaseEstimator):
    """How a network is trained; shared by every learner.

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
        What a batch is made of: single annotations, or tasks with all their annotations. An
        objective that needs whole tasks, such as EM, is given tasks in any case.
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
        a large network that memorizes tasks is stopped only by the second.
    patience : int or None, default=None
        Stop after so many epochs without a better held-out likelihood, and keep the best.
    worker_dropout : float, default=0
        Chance that a label counts as the unknown worker's, who is learned in this way.
        Without it the unknown worker is the average of the others.
    class_weight : "balanced", array of shape (n_classes,) or None, default=None
        How much tasks of each class count: batches are drawn with replacement, each task or
        annotation by the mean weight of its task's labels. Balanced weighs a class by one
        over how often it is labeled. What is inferred about the tasks is left as it is.
    device : {"auto", "cpu", "cuda"} or str, default="auto"
        Where to train; auto takes a GPU if there is one.
    verbose : bool, default=False
        Report ten times on the way: in the log, or on standard error if nothing shows that.
    """

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
