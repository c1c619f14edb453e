"""ICED: infer truths, make tasks of the rare classes, train a network, and round again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import nn

from crowdwise.aggregate import IBCC, HardDawidSkene
from crowdwise.annotations import Annotations
from crowdwise.base.aggregator import Aggregator
from crowdwise.base.learner import LearnerTraits
from crowdwise.base.params import at_least, between, more_than, one_of
from crowdwise.learn._base import CrowdClassifier
from crowdwise.learn._iced_run import Inferred, Run
from crowdwise.learn.crowd_smote import COPIES, DELTA_RULES
from crowdwise.learn.mbem import CountedConfusion
from crowdwise.learn.noise import Noise
from crowdwise.learn.objectives import CrowdObjective
from crowdwise.nets.batches import CrowdData
from crowdwise.nets.features import Features
from crowdwise.nets.loop import History, holds_out
from crowdwise.nets.modules import MLP, build_truth
from crowdwise.nets.training import Training
from crowdwise.typing import Ints


class ICED(CrowdClassifier):
    """Learn a classifier from a crowd whose classes differ much in size.

    A network warms up on majority votes, the tasks that workers agree on last. Then, round
    by round: new tasks of the rare classes are made between real ones in the network's
    embedding, and labeled as each worker labels tasks nearby (:func:`crowd_smote`); an
    aggregator infers the truths of real and new tasks together; and the network trains on
    all of them. Every class below the largest is filled up, however many there are, and
    not every worker needs to label every task.

    Parameters
    ----------
    truth : MLP, "linear", torch.nn.Sequential or function, optional
        The network; its last layer must be linear, and what goes into that layer is the
        embedding. ``MLP()``, with 128 hidden units, if not given.
    aggregator : Aggregator, optional
        What infers truths; ``HardDawidSkene()`` as in the paper if not given.
    warm_up : {"staged", "together", "all", "none"}, default="staged"
        Train on the tasks of the third-highest, then the second-highest, then the highest
        certainty; on these at once (the paper's Trad-II); on all tasks (Trad-I); or not.
    warm_up_epochs : int, default=5
        Epochs of each stage; three times as many where there is one.
    rounds : int, default=30
        Most rounds; 0 leaves the network as warmed up.
    tol : float, default=0
        Stop once the network's predictions change for no more than this share of the tasks
        in each of five rounds in a row.
    balance, n_neighbors, delta_rule, copy, jitter, floor
        How tasks and their labels are made; see :func:`crowd_smote`.
    decoder : {"refit", "fixed", "interpolate", "none"}, default="refit"
        How a new task gets features: from a decoder, pre-trained with the network's body as
        its encoder and trained again each round to keep up with it, or not again; from
        the features of the two tasks it lies between, mixed alike; or not at all, and only
        the network's last layer learns from its embedding.
    decoder_epochs : int, default=10
        Epochs of the decoder each time.
    targets : {"hard", "soft"}, default="hard"
        Whether the network learns the most probable class of each task, or its
        distribution.
    class_prior : {"aggregator", "network"}, default="aggregator"
        P(truth) before the labels are seen: the aggregator's, the same for all tasks, as
        in the paper; or what the network says of each task, so that features have a say in
        the truths. The latter is far more accurate where labels alone do not tell.
    scale : bool, default=True
        Whether to standardise features with the mean and deviation of the training rows.
    training : Training, optional
        How to train in each round; ``ICED.default_training`` if not given. Restarts are
        run one after the other, and chosen by labels held out from all of it.
    random_state : int or RandomState, optional
        Decides starts, batches, new tasks and their labels, and held-out labels.

    Attributes
    ----------
    posterior_ : ndarray of shape (n_tasks, n_classes)
        P(truth | labels) of the training tasks, from the aggregator of the last round.
    truths_ : ndarray of shape (n_rounds + 1, n_tasks)
        Class number of each task before the first round and after each one; -1 for tasks
        without labels.
    n_new_ : ndarray of shape (n_rounds, n_classes)
        Tasks made in each round.
    confusion_, worker_accuracy_, history_, net_
        See :class:`crowdwise.learn.CrowdClassifier`.

    References
    ----------
    Wang, Thekinen, Liu, Liu and Tang (2021). Learning from imbalanced crowdsourced labeled
    data. SIAM International Conference on Data Mining.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from crowdwise.simulate import label_by_crowd, one_coin_confusion
    >>> X, truth = make_classification(300, weights=[0.9], class_sep=2.0, random_state=0)
    >>> confusion = one_coin_confusion([0.9, 0.8, 0.7, 0.6, 0.6], n_classes=2)
    >>> votes = label_by_crowd(truth, confusion, per_task=5, random_state=0)
    >>> model = ICED(rounds=3, random_state=0).fit(X, votes)
    >>> bool(model.score(X, truth) > 0.9)
    True
    """

    traits = LearnerTraits(luck=("task", "worker"))
    _parameter_constraints = {
        **CrowdClassifier._parameter_constraints,
        "truth": [*CrowdClassifier._parameter_constraints["truth"], None],
        "aggregator": [Aggregator, None],
        "warm_up": [one_of("staged", "together", "all", "none")],
        "warm_up_epochs": [at_least(0)],
        "rounds": [at_least(0)],
        "tol": [between(0.0, 1.0)],
        "balance": [between(0.0, 1.0)],
        "n_neighbors": [at_least(1)],
        "delta_rule": [one_of(*DELTA_RULES)],
        "copy": [one_of(*COPIES)],
        "jitter": [between(0.0, 1.0)],
        "floor": [more_than(0.0)],
        "decoder": [one_of("refit", "fixed", "interpolate", "none")],
        "decoder_epochs": [at_least(0)],
        "targets": [one_of("hard", "soft")],
        "class_prior": [one_of("aggregator", "network")],
    }
    # The paper's warm-ups; and what serves best where labels alone do not tell the classes.
    recipes = {
        "gisette": {"warm_up_epochs": 5},
        "usps": {"warm_up_epochs": 2},
        "gsad": {"warm_up_epochs": 2},
        "network": {
            "class_prior": "network",
            "aggregator": IBCC(),
            "decoder": "interpolate",
            "rounds": 60,
        },
    }
    default_training = Training(learning_rate=1e-3, batch_size=64, epochs=1)

    def __init__(
        self,
        *,
        truth: Any = None,
        aggregator: Any = None,
        warm_up: str = "staged",
        warm_up_epochs: int = 5,
        rounds: int = 30,
        tol: float = 0.0,
        balance: float = 1.0,
        n_neighbors: int = 5,
        delta_rule: str = "intent",
        copy: str = "sample",
        jitter: float = 0.1,
        floor: float = 0.05,
        decoder: str = "refit",
        decoder_epochs: int = 10,
        targets: str = "hard",
        class_prior: str = "aggregator",
        scale: bool = True,
        training: Training | None = None,
        random_state: Any = None,
    ) -> None:
        self.truth = truth
        self.aggregator = aggregator
        self.warm_up = warm_up
        self.warm_up_epochs = warm_up_epochs
        self.rounds = rounds
        self.tol = tol
        self.balance = balance
        self.n_neighbors = n_neighbors
        self.delta_rule = delta_rule
        self.copy = copy
        self.jitter = jitter
        self.floor = floor
        self.decoder = decoder
        self.decoder_epochs = decoder_epochs
        self.targets = targets
        self.class_prior = class_prior
        self.scale = scale
        self.training = training
        self.random_state = random_state

    def _truth(self, data: CrowdData, n_in: int | None) -> nn.Module:
        return build_truth(MLP() if self.truth is None else self.truth, n_in, data.n_classes)

    def _noise(self, data: CrowdData, n_in: int | None) -> Noise:
        return CountedConfusion(data.n_workers, data.n_classes)

    def _aggregator(self) -> Any:
        return HardDawidSkene() if self.aggregator is None else self.aggregator

    def _learn(
        self, data: CrowdData, votes: Annotations, gold: Ints | None, settings: Training, rng: Any
    ) -> tuple[CrowdObjective, History]:
        # Random numbers go to tasks and workers by what they are, not by their place.
        order = by_features(data)
        votes, gold = votes[order], None if gold is None else gold[order]
        who = by_labels(votes)
        code = np.argsort(who).astype(votes.worker.dtype)[votes.worker]
        votes = replace(votes, workers=votes.workers[who], worker=code)
        held = None
        if holds_out(settings) and votes.n_annotations > 1:
            out = np.zeros(votes.n_annotations, dtype=bool)
            n_out = max(1, round(settings.validation_fraction * votes.n_annotations))
            out[rng.permutation(votes.n_annotations)[:n_out]] = True
            held, votes = votes.filter(out), votes.filter(~out)
        features = Features(data.features.rows(torch.as_tensor(order, device=data.device)))
        runs = []
        for _ in range(settings.n_restarts):
            net = self._member(data).to(data.device).net
            runs.append(Run(self, net, features, votes, gold, held, settings, rng))
            runs[-1].go()
        history = History(columns([r.loss for r in runs]), columns([r.held_out for r in runs]))
        history.best = int(np.nan_to_num([run.value for run in runs], nan=np.inf).argmin())
        best, place = runs[history.best], np.argsort(order)
        self.truths_ = np.stack(best.truths)[:, place]
        self.n_new_ = np.array(best.n_new, dtype=np.int64).reshape(-1, votes.n_classes)
        noise: Any = best.net.noise
        noise.take(torch.as_tensor(best.confusion[np.argsort(who)]).to(noise.log_table))
        target = torch.as_tensor(best.posterior[place]).to(data.device)
        return Inferred(best.net, data, target), history


def by_features(data: CrowdData) -> Ints:
    """Tasks in the order of some of their features, however they came."""
    x = data.features.rows(torch.arange(data.n_tasks, device=data.device))
    x = x.flatten(1) if x.ndim > 1 else x[:, None]
    some = x[:, :: max(1, x.shape[1] // 32)].cpu().numpy()
    return np.lexsort(some.T) if some.size else np.arange(data.n_tasks)


def by_labels(votes: Annotations) -> Ints:
    """Workers in the order of how much and what they label, however they came."""
    weight = np.ones(votes.n_annotations) if votes.weight is None else votes.weight
    task, label, n = votes.task + 1.0, votes.label + 1.0, votes.n_workers
    keys = (weight * task**2, weight * task * label, weight)
    return np.lexsort([np.bincount(votes.worker, key, minlength=n) for key in keys])


def columns(runs: list[list[float]]) -> list[list[float]]:
    """Values per epoch of each run, one row an epoch; nan once a run has stopped."""
    longest = max(map(len, runs))
    padded = [[*run, *[float("nan")] * (longest - len(run))] for run in runs]
    return [list(row) for row in zip(*padded, strict=True)]
