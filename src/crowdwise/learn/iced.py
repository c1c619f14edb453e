"""ICED: infer truths, generate tasks of the rare classes, train a network, and repeat."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import torch
from sklearn.base import clone
from torch import Tensor, nn

from crowdwise import progress
from crowdwise.aggregate import IBCC, HardDawidSkene
from crowdwise.annotations import Annotations, find_labeled
from crowdwise.base.aggregator import Aggregator
from crowdwise.base.params import at_least, between, one_of
from crowdwise.base.traits import LearnerTraits
from crowdwise.inference import clamp, normalize, pooled_confusion
from crowdwise.learn.confusion_learner import expect
from crowdwise.learn.crowd_classifier import CrowdClassifier
from crowdwise.learn.crowd_smote import CrowdSMOTE, NewTasks
from crowdwise.learn.iced_parts import (
    Autoencoder,
    Decoder,
    EmbeddingNet,
    Interpolation,
    Run,
    SplitCrowd,
    StagedWarmUp,
    Truths,
    WarmUp,
    break_ties,
)
from crowdwise.learn.iced_rivals import Rivals
from crowdwise.learn.parts import (
    CountedConfusion,
    CountedConfusionNet,
    CrowdNet,
    CrowdObjective,
    NoisePart,
    ObjectivePart,
    PerAnnotation,
)
from crowdwise.learn.raykar import Raykar
from crowdwise.learn.search import Search
from crowdwise.learn.softmax_regression import LinearLearner
from crowdwise.learn.two_stage import name_truths
from crowdwise.nets.batches import Batch, CrowdData
from crowdwise.nets.features import Features, rows_at_once
from crowdwise.nets.loop import History, holds_out
from crowdwise.nets.modules import MLP, build_network
from crowdwise.nets.training import Training
from crowdwise.typing import Floats, Ints, RandomState

# Whatever the paper leaves open is our choice: rounds, epochs, step sizes, decoder training.
PAPER: dict[str, Any] = {
    "warm_up": StagedWarmUp(epochs=5),
    "aggregator": HardDawidSkene(),
    "generator": CrowdSMOTE(),
    "decoder": Autoencoder(),
    "rounds": 30,
    "tol": 0.0,
    "targets": "hard",
    "class_prior": "aggregator",
    "training": Training(learning_rate=1e-3, batch_size=64, epochs=1),
}


class ICED(CrowdClassifier):
    """Learn a classifier from a crowd whose classes differ much in size.

    A network warms up on majority votes, ending with the tasks that workers agree on most. Then,
    in each round, new tasks of the rare classes are generated between real ones in the network's
    embedding, and labeled as each worker labels tasks nearby; an aggregator infers the truths of
    real and new tasks together; and the network trains on all of them. Every class smaller than
    the largest is filled up, however many there are, and not every worker needs to label every
    task.

    Parameters
    ----------
    truth : MLP, "linear", torch.nn.Sequential or function, optional
        The network; its last layer must be linear, and the input of that layer is the
        embedding. ``MLP()``, with 128 hidden units, if not given.
    warm_up : WarmUp, optional
        The tasks that the network learns from first: ``StagedWarmUp()``, ``CertainWarmUp()`` (the
        paper's Trad-II), ``FullWarmUp()`` (Trad-I) or ``NoWarmUp()``; the first if not given.
    aggregator : Aggregator, optional
        Infers truths; ``HardDawidSkene()`` as in the paper if not given.
    generator : CrowdSMOTE, optional
        How tasks and their labels are generated; ``CrowdSMOTE()`` if not given.
    decoder : Decoder, optional
        Provides features of new tasks: ``Autoencoder()``, ``Interpolation()``, or
        ``LastLayerOnly()`` for none; the first if not given.
    rounds : int, default=30
        Maximum number of rounds; 0 leaves the network as warmed up. If neither ``training`` nor
        any part is given, the labels of held-out tasks decide whether there are rounds at all:
        with ``ICED.recipe("network")``; without, as a penalized linear network whose predictions
        are each task's class prior (see :class:`crowdwise.learn.Raykar`); or as one that learns
        majority votes. Later options must be better by more than one standard error.
    tol : float, default=0
        Stop once the network's predictions change for no more than this share of the tasks
        in each of five successive rounds.
    targets : {"hard", "soft"}, default="hard"
        Whether the network learns the most probable class of each task, or its
        distribution.
    class_prior : {"aggregator", "network"}, default="aggregator"
        P(truth) before the labels are seen: the aggregator's, the same for all tasks, as
        in the paper; or the network's prediction for each task, so that features inform
        the truths. The latter is far more accurate if labels alone are not enough.
    scale : bool, default=True
        Whether to standardize features to mean 0 and deviation 1 on the training rows.
    training : Training, optional
        How to train in each round; ``ICED.default_training`` if not given. Restarts are
        run one after another, and chosen by labels held out from the whole run.
    random_state : int or RandomState, optional
        Random seed of initialization, batches, new tasks and their labels, and held-out labels.

    Attributes
    ----------
    posterior_ : ndarray of shape (n_tasks, n_classes)
        P(truth | labels) of the training tasks, from the aggregator of the last round.
    truths_ : ndarray of shape (n_rounds + 1, n_tasks)
        Class number of each task before the first round and after each one; -1 for tasks
        without labels.
    n_new_ : ndarray of shape (n_rounds, n_classes)
        Tasks generated in each round.
    confusion_, worker_accuracy_, history_, search_, net_
        See :class:`crowdwise.learn.CrowdClassifier`.

    Notes
    -----
    The maths::

        new task = x_i + delta * (x_j - x_i), delta = S_j / (S_i + S_j) + jitter
        label of w on it = one of the labels of w on real tasks nearby
        S is the certainty of a task

    Two points that the paper leaves open: the optimizer restarts in every stage and round,
    without the moments of the last; and with ``Autoencoder()`` the decoder is pretrained together
    with the network's body, so that the warm-up starts from an autoencoder.

    Works when the rare class has at least a few dozen tasks, and workers recognize it better
    than by chance. ``ICED.recipe("network")`` is the more stable choice.

    Fails when labels alone do not identify the rare class: hard EM loses or swaps it, and new
    tasks copy the error. See docs/imbalance.md.

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

    _parameter_constraints = {
        **CrowdClassifier._parameter_constraints,
        "truth": [*CrowdClassifier._parameter_constraints["truth"], None],
        "warm_up": [WarmUp, None],
        "aggregator": [Aggregator, None],
        "generator": [CrowdSMOTE, None],
        "decoder": [Decoder, None],
        "rounds": [at_least(0)],
        "tol": [between(0.0, 1.0)],
        "targets": [one_of("hard", "soft")],
        "class_prior": [one_of("aggregator", "network")],
    }
    # The paper's parts, with its warm-ups; and features that count in the truths.
    recipes = {
        "paper": PAPER,
        "gisette": {**PAPER, "warm_up": StagedWarmUp(epochs=5)},
        "usps": {**PAPER, "warm_up": StagedWarmUp(epochs=2)},
        "gsad": {**PAPER, "warm_up": StagedWarmUp(epochs=2)},
        "network": {
            **PAPER,
            "class_prior": "network",
            "aggregator": IBCC(),
            "decoder": Interpolation(),
            "rounds": 60,
        },
    }
    truths_: Ints
    n_new_: Ints
    default_warm_up: ClassVar[WarmUp] = StagedWarmUp()
    default_aggregator: ClassVar[Aggregator] = HardDawidSkene()
    default_generator: ClassVar[CrowdSMOTE] = CrowdSMOTE()
    default_decoder: ClassVar[Decoder] = Autoencoder()
    default_training = Training(learning_rate=1e-3, batch_size=64, epochs=1)

    def __init__(
        self,
        *,
        truth: MLP | str | nn.Module | None = None,
        warm_up: WarmUp | None = None,
        aggregator: Aggregator | None = None,
        generator: CrowdSMOTE | None = None,
        decoder: Decoder | None = None,
        rounds: int = 30,
        tol: float = 0.0,
        targets: str = "hard",
        class_prior: str = "aggregator",
        scale: bool = True,
        training: Training | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.truth = truth
        self.warm_up = warm_up
        self.aggregator = aggregator
        self.generator = generator
        self.decoder = decoder
        self.rounds = rounds
        self.tol = tol
        self.targets = targets
        self.class_prior = class_prior
        self.scale = scale
        self.training = training
        self.random_state = random_state

    def _run(self, net: EmbeddingNet, crowd: SplitCrowd, patience: int | None) -> Run:
        """Run Algorithm 1 on an untrained network."""
        warm_up = self.default_warm_up if self.warm_up is None else self.warm_up
        generator = self.default_generator if self.generator is None else self.generator
        decoder = self.default_decoder if self.decoder is None else self.decoder
        for part in (warm_up, generator, decoder):
            part.check()
        run = Run(net, crowd, self.tol, patience)
        decoder.pretrain(net, crowd.votes)
        truths = crowd.majority(net.rng)
        for stage in warm_up.stages(crowd.votes, crowd.labeled):
            labels = label_each(np.where(stage, truths.label, -1), crowd.votes.n_classes)
            run.learn(net.stack(), labels, warm_up.epochs, truths)
        truths = self._infer(net, crowd)
        run.start(truths)
        for _ in progress.track(range(self.rounds), "ICED, at most", unit="round"):
            new = generator.generate(net.embed(), crowd.votes, crowd.of_real(truths), net.rng)
            truths = self._infer(net, crowd, new)
            rows = decoder.rows(net, crowd.votes, new)
            soft = truths.posterior if self.targets == "soft" else None
            labels = label_each(truths.label, crowd.votes.n_classes, soft)
            run.learn(rows, labels, net.training.epochs, truths)
            if run.ends(truths, new):
                break
        net.net.load_state_dict(run.best.state)
        return run

    def _infer(self, net: EmbeddingNet, crowd: SplitCrowd, new: NewTasks | None = None) -> Truths:
        """Infer the truths of real and new tasks together (section 2.3)."""
        votes, gold, labeled, place = crowd.votes, crowd.gold, crowd.labeled, net.embed()[:0]
        if new is not None:
            votes, place = join(votes, new.annotations), new.X
            labeled = np.append(labeled, np.ones(len(place), dtype=bool))
            gold = None if gold is None else np.append(gold, np.full(len(place), -1))
        aggregator = self.default_aggregator if self.aggregator is None else self.aggregator
        found = clone(aggregator).fit(votes, None if gold is None else name_truths(gold, votes))
        label, posterior = found.label_codes_, found.posterior_
        own = isinstance(found, KnowsConfusion)
        confusion = found.confusion_ if own else pooled_confusion(votes, posterior)
        if self.class_prior == "network":
            posterior = expect(votes, net.log_proba(place), confusion, gold).posterior
            label = break_ties(posterior, net.rng)
        return Truths(np.where(labeled, label, -1), clamp(posterior, gold), confusion)

    # -- the base class's hooks --------------------------------------------------------------

    @property
    def _chooses(self) -> bool:
        parts = (self.truth, self.warm_up, self.aggregator, self.generator, self.decoder)
        return self.training is None and all(part is None for part in parts)

    def _choose(
        self,
        data: CrowdData,
        votes: Annotations,
        gold: Ints | None,
        rng: np.random.RandomState,
    ) -> tuple[CrowdObjective, History, Search]:
        """Use EM, and generate tasks, only if that predicts labels of held-out tasks better."""
        rounds = min(self.rounds, ICED.recipes["network"]["rounds"])
        generating = ICED.recipe("network", scale=self.scale, rounds=rounds)
        rivals = Rivals(data, votes, gold, self.scale)
        plain, search = rivals.challenge(generating, rounds, rng)
        if plain is None:
            best, history = generating._learn(data, votes, gold, generating.default_training, rng)
            self.truths_, self.n_new_ = generating.truths_, generating.n_new_
            return best, history, search
        objective = plain.objective_ if isinstance(plain, Raykar) else []
        return self._linear(plain, data, votes), History([[-v] for v in objective]), search

    def _linear(self, plain: LinearLearner, data: CrowdData, votes: Annotations) -> CrowdObjective:
        """Return what was learned without new tasks, as a network."""
        one = copy.copy(self)
        one.truth = "linear"
        net = one._member(data).net
        weights = torch.as_tensor(plain.weights_, dtype=torch.float32)
        layer = next(part for part in net.truth.modules() if isinstance(part, nn.Linear))
        with torch.no_grad():
            layer.weight.copy_(weights[:-1].T)
            layer.bias.copy_(weights[-1])
        assert isinstance(net.noise, CountedConfusionNet)
        net.noise.take(torch.as_tensor(plain.confusion_).to(net.noise.log_table))
        labeled = find_labeled(votes)
        self.truths_ = np.where(labeled, plain.posterior_.argmax(axis=1), -1)[None]
        self.n_new_ = np.zeros((0, data.n_classes), dtype=np.int64)
        return Inferred(net, data, torch.as_tensor(plain.posterior_).float()).to(data.device)

    @property
    def traits(self) -> LearnerTraits:
        return LearnerTraits(random_per=("task", "worker"))

    def _build_truth(self, data: CrowdData) -> nn.Module:
        found = getattr(self, "search_", None)
        usual = "linear" if found is not None and found.chosen["rounds"] == 0 else MLP()
        network = usual if self.truth is None else self.truth
        return build_network(network, data.n_in, data.n_classes)

    def _noise(self) -> NoisePart:
        return CountedConfusion()

    def _objective(self) -> ObjectivePart:
        return PerAnnotation()

    def _learn(
        self,
        data: CrowdData,
        votes: Annotations,
        gold: Ints | None,
        settings: Training,
        rng: np.random.RandomState,
    ) -> tuple[CrowdObjective, History]:
        # Random numbers are assigned to tasks and workers by content, not by position.
        order = order_by_features(data)
        votes, gold = votes[order], None if gold is None else gold[order]
        who = order_by_labels(votes)
        code = np.argsort(who).astype(votes.worker.dtype)[votes.worker]
        votes = replace(votes, workers=votes.workers[who], worker=code)
        crowd = SplitCrowd(*hold_out(votes, settings, rng), gold)
        features = self._in_order(data, order)
        runs = []
        for _ in range(settings.n_restarts):
            net = EmbeddingNet(self._member(data).to(data.device).net, features, settings, rng)
            runs.append(self._run(net, crowd, settings.patience))
        history = History(columns([r.net.loss for r in runs]), columns([r.held_out for r in runs]))
        values = [run.best.value for run in runs]
        history.best = int(np.nan_to_num(values, nan=np.inf).argmin())
        return self._keep(runs[history.best], data, np.argsort(order), np.argsort(who)), history

    def _in_order(self, data: CrowdData, order: Ints) -> Features:
        """Return the features in another order; those that fit into memory, as a table."""
        if data.fits:
            return Features(data.features.rows(torch.as_tensor(order, device=data.device)))
        known = data.features.order
        return replace(data.features, order=order if known is None else known[order])

    def _keep(self, run: Run, data: CrowdData, task: Ints, worker: Ints) -> CrowdObjective:
        """Store the results of a run; ``task`` and ``worker`` are the positions in it."""
        self.truths_ = np.stack(run.truths)[:, task]
        self.n_new_ = np.array(run.n_new, dtype=np.int64).reshape(-1, data.n_classes)
        net, best = run.net.net, run.best
        assert isinstance(net.noise, CountedConfusionNet)
        net.noise.take(torch.as_tensor(best.confusion[worker]).to(net.noise.log_table))
        return Inferred(net, data, torch.as_tensor(best.posterior[task]).to(data.device))


class Inferred(CrowdObjective):
    """A network with truths that were inferred without it."""

    target: Tensor

    def __init__(self, net: CrowdNet, data: CrowdData, target: Tensor) -> None:
        super().__init__(net, data)
        self.register_buffer("target", target)

    def posterior(self, batch: Batch) -> Tensor:
        return self.target[batch.task].log()


@runtime_checkable
class KnowsConfusion(Protocol):
    """An aggregator whose workers have confusion matrices."""

    confusion_: Floats


def hold_out(
    votes: Annotations, settings: Training, rng: np.random.RandomState
) -> tuple[Annotations, Annotations | None]:
    """Split off annotations by which to choose the round and the restart."""
    if not holds_out(settings) or votes.n_annotations < 2:
        return votes, None
    out = np.zeros(votes.n_annotations, dtype=bool)
    n_out = max(1, round(settings.validation_fraction * votes.n_annotations))
    out[rng.permutation(votes.n_annotations)[:n_out]] = True
    return votes.filter(~out), votes.filter(out)


def label_each(truth: Ints, n_classes: int, soft: Floats | None = None) -> Annotations:
    """Return one label per task with a truth, by a single worker."""
    known = truth >= 0
    if soft is not None:
        soft = normalize(soft[known].astype(np.float32))
    return Annotations(
        tasks=np.arange(len(truth)),
        workers=np.arange(1),
        classes=np.arange(n_classes),
        indptr=np.append(0, np.cumsum(known)),
        worker=np.zeros(known.sum(), dtype=np.int32),
        label=truth[known],
        soft=soft,
    )


def join(votes: Annotations, new: Annotations) -> Annotations:
    """Return the real annotations, followed by those of new tasks."""
    weight, soft = votes.weight, votes.soft
    if weight is not None:
        weight = np.append(weight, np.ones(new.n_annotations, dtype=np.float32))
    if soft is not None:
        given = np.eye(votes.n_classes, dtype=np.float32)[new.label]
        soft = normalize(np.concatenate([soft, given]))
    return Annotations(
        tasks=np.arange(votes.n_tasks + new.n_tasks),
        workers=votes.workers,
        classes=votes.classes,
        indptr=np.append(votes.indptr, votes.n_annotations + new.indptr[1:]),
        worker=np.append(votes.worker, new.worker),
        label=np.append(votes.label, new.label),
        weight=weight,
        soft=soft,
    )


def order_by_features(data: CrowdData) -> Ints:
    """Order tasks by some of their features, whatever order they came in."""
    width = int(np.prod(data.features.shape))
    tasks = torch.split(torch.arange(data.n_tasks, device=data.device), rows_at_once(width))
    rows = (data.features.rows(part).reshape(len(part), -1) for part in tasks)
    some = torch.cat([x[:, :: max(1, width // 32)].cpu() for x in rows]).numpy()
    return np.lexsort(some.T) if some.size else np.arange(data.n_tasks)


def order_by_labels(votes: Annotations) -> Ints:
    """Order workers by how much and what they label, whatever order they came in."""
    weight = np.ones(votes.n_annotations) if votes.weight is None else votes.weight
    task, label, n = votes.task + 1.0, votes.label + 1.0, votes.n_workers
    keys = (weight * task**2, weight * task * label, weight)
    return np.lexsort([np.bincount(votes.worker, key, minlength=n) for key in keys])


def columns(runs: list[list[float]]) -> list[list[float]]:
    """Return values per epoch of each run, one row per epoch; NaN once a run has stopped."""
    longest = max(map(len, runs))
    padded = [[*run, *[float("nan")] * (longest - len(run))] for run in runs]
    return [list(row) for row in zip(*padded, strict=True)]
