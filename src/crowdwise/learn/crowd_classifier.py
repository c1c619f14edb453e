"""A learner composed of a truth model, a noise model and an objective."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from crowdwise.annotations import Annotations, keep_counting
from crowdwise.base.fitting import column_names, refuse_other_columns
from crowdwise.base.learner import Learner, WorkersLike, worker_names
from crowdwise.base.params import Constraints, at_least, between, checks_params, one_of
from crowdwise.base.recipes import find_recipe
from crowdwise.base.traits import LearnerTraits
from crowdwise.io import as_annotations, as_gold
from crowdwise.io.accept import in_rows_of, refuse_too_many_classes
from crowdwise.learn.noise import with_workers
from crowdwise.learn.parts import (
    CrowdNet,
    CrowdObjective,
    NoisePart,
    ObjectivePart,
    PerAnnotation,
    WorkerConfusion,
    WorkerTable,
    pair_cells,
    side_by_side,
)
from crowdwise.learn.predictions import predict_labels, predict_rows
from crowdwise.learn.restraint import restrain, restrained
from crowdwise.learn.search import (
    PENALTIES,
    PRIORS,
    Ladder,
    Search,
    Settings,
    Variant,
    penalties_for,
    rungs,
)
from crowdwise.learn.starting_points import LabelsAlone, Start
from crowdwise.nets.batches import CrowdData, as_data
from crowdwise.nets.checkpoints import PLACE, share
from crowdwise.nets.features import (
    Features,
    as_features,
    refuse_misfit,
    refuse_other_features,
    remember_features,
    rows_at_once,
    worker_table,
)
from crowdwise.nets.loop import (
    History,
    divide,
    has_company,
    pick_device,
    seeded,
    split,
    train,
)
from crowdwise.nets.modules import MLP, NetworkLike, Standardize, build_network
from crowdwise.nets.saved import empty_data, pack_net, unpack_net
from crowdwise.nets.training import Training
from crowdwise.typing import (
    AnnotationsLike,
    Array,
    FeaturesLike,
    Floats,
    GoldLike,
    Ints,
    RandomState,
)


class CrowdClassifier(Learner):
    """Learn a classifier from features and disagreeing labels, composed of parts.

    The published methods of this kind are choices of ``truth``, ``noise`` and ``objective`` with
    defaults of their own; here the choice is yours.

    Parameters
    ----------
    truth : "linear", MLP, torch.nn.Module or function, default="linear"
        The classifier: what the classes look like.
    noise : NoisePart, default=WorkerConfusion()
        How workers turn truths into labels.
    objective : ObjectivePart, default=PerAnnotation()
        The function that training maximizes.
    penalty : float or "auto", default="auto"
        Half of it times the squared weights of ``truth`` is added to the mean loss of a label.
    prior : float or "auto", default="auto"
        How strongly the parameters of ``noise`` are tied to their initial values: one over their
        variance around these, with ``inf`` for no change at all.

        If these are "auto" and no ``training`` is given, they are chosen by the labels of
        held-out tasks: of the settings that predict these best, within one standard error, the
        largest penalty and then the largest prior. With an "auto" prior, the initial confusion
        matrices are chosen as well: those of ``noise`` ("plain"), or those that IBCC infers
        from labels alone. A linear or smooth ``truth`` is then trained to the optimum, by
        L-BFGS on all labels at once. With ``training``, "auto" means
        ``training.weight_decay``.
    scale : bool, default=True
        Whether to standardize features to mean 0 and deviation 1 on the training rows.
    training : Training, optional
        How to train; ``CrowdClassifier.default_training`` if not given.
    random_state : int or RandomState, optional
        Random seed of initialization, batches, dropout and held-out labels.

    Attributes
    ----------
    classes_, workers_, tasks_ : ndarray
        Names, in the order of every learned array.
    posterior_ : ndarray of shape (n_tasks, n_classes)
        P(truth | features, labels) of the training tasks.
    confusion_ : ndarray of shape (n_workers, n_classes, n_classes)
        P(label | truth); the axes are worker, truth, label. Averaged over the training
        tasks if it depends on the task.
    worker_accuracy_ : Series
        How often each worker is right on the training tasks, by this model.
    history_ : History
        Loss and held-out loss per epoch and restart; also the chosen settings, and why.
    search_ : Search or None
        The settings tried, how well each predicts the labels of held-out tasks, the choice and
        the reason; None if ``training`` is given.
    feature_shape_ : tuple of int
        Shape of one task's features.
    n_features_in_, feature_names_in_ : int and ndarray
        Number of features if they are rows of numbers, and their names if in a frame.
    net_ : torch.nn.Module
        The fitted truth and noise models.

    Notes
    -----
    The maths::

        P(w gives i the label l) = sum over k of truth(x_i)[k] * noise(x_i, w)[k, l]
        PerAnnotation raises the mean of log P(label) over annotations,
         PerTask shares one truth between all labels of a task, EM uses its posterior

    Works when features separate the classes, and the noise part has no more freedom than the
    labels can determine.

    Fails when the noise part can explain the classes themselves as noise: give it less freedom
    than the truth model, smaller steps, or a penalty.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from crowdwise.learn import MLP, CrowdClassifier, PerTask, WorkerConfusion
    >>> from crowdwise.simulate import label_by_crowd, one_coin_confusion
    >>> X, truth = load_iris(return_X_y=True)
    >>> confusion = one_coin_confusion([0.9, 0.7, 0.6, 0.5], n_classes=3)
    >>> votes = label_by_crowd(truth, confusion, per_task=3, random_state=0)
    >>> parts = {"truth": MLP((8,)), "noise": WorkerConfusion(), "objective": PerTask()}
    >>> bool(CrowdClassifier(**parts, random_state=0).fit(X, votes).score(X, truth) > 0.9)
    True
    """

    _axes = {
        **Learner._axes,  # and of attributes added by noise parts
        "embedding_": ("workers_", "embedding"),
        "common_confusion_": ("classes_", "classes_"),
        "common_share_": ("workers_",),
        "difficulty_": ("tasks_",),
        "expertise_": ("workers_", "classes_"),
    }
    _parameter_constraints: ClassVar[Constraints] = {
        "truth": [str, MLP, nn.Module, callable],
        "noise": [NoisePart],
        "objective": [ObjectivePart],
        "penalty": [one_of("auto"), at_least(0.0)],
        "prior": [one_of("auto"), between(0.0, math.inf)],
        "scale": ["boolean"],
        "training": [Training, None],
        "random_state": ["random_state"],
    }
    default_training: ClassVar[Training] = Training()
    penalties: ClassVar[Sequence[float]] = PENALTIES  # to choose from
    priors: ClassVar[Sequence[float]] = PRIORS
    recipes: ClassVar[Mapping[str, Mapping[str, Any]]] = {}

    truth: NetworkLike | None  # for methods with another default
    prior: float | str | ArrayLike  # for methods with another meaning
    search_: Search | None
    scale: bool
    training: Training | None
    random_state: RandomState
    net_: CrowdNet
    worker_features_: Tensor | None
    worker_feature_names_in_: Array | None
    history_: History

    def __init__(
        self,
        *,
        truth: NetworkLike = "linear",
        noise: NoisePart = WorkerConfusion(),  # noqa: B008  immutable
        objective: ObjectivePart = PerAnnotation(),  # noqa: B008  immutable
        penalty: float | str = "auto",
        prior: float | str = "auto",
        scale: bool = True,
        training: Training | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.truth = truth
        self.penalty = penalty
        self.prior = prior
        self.noise = noise
        self.objective = objective
        self.scale = scale
        self.training = training
        self.random_state = random_state

    @classmethod
    def recipe(cls, name: str, **changes: Any) -> Self:
        """Make the method with a paper's settings; ``recipes`` lists the names."""
        return cls(**{**find_recipe(cls, cls.recipes, name), **changes})

    # -- the parts, which subclasses choose ------------------------------------------------

    def _noise(self) -> NoisePart:
        return self.noise

    def _objective(self) -> ObjectivePart:
        return self.objective

    def _build_truth(self, data: CrowdData) -> nn.Module:
        network = "linear" if self.truth is None else self.truth
        return build_network(network, data.n_in, data.n_classes)

    @property
    def traits(self) -> LearnerTraits:
        """The promises of the parts."""
        return LearnerTraits(random_per=self._noise().random_per + self._objective().random_per)

    # -- learning --------------------------------------------------------------------------

    @checks_params
    def fit(
        self,
        X: FeaturesLike,
        annotations: AnnotationsLike,
        worker_features: FeaturesLike = None,
        gold: GoldLike = None,
    ) -> Self:
        """Learn from features and annotations.

        Parameters
        ----------
        X : array, sparse matrix, frame, tensor or torch Dataset
            One row per task, in the order of ``annotations.tasks`` (or a frame indexed by task).
        annotations : Annotations, frame, array, dict or path
            Labels by workers; tasks without any are allowed.
        worker_features : array or frame, optional
            One row per worker, for methods that use them.
        gold : mapping, Series, frame or array, optional
            Known truths of some tasks: the classifier and the noise model learn from them.
        """
        votes = keep_counting(as_annotations(annotations))
        refuse_too_many_classes(type(self).__name__, votes, tables=True)
        known = None if gold is None else as_gold(gold, votes)
        features = as_features(in_rows_of(X, annotations), votes.tasks)
        settings = self.training if self.training is not None else self.default_training
        table = worker_table(worker_features, votes.workers)
        device = pick_device(settings.device)
        data = as_data(features, votes, known, device, table)
        if has_company() or PLACE.get() is not None:
            data = share(data, self, votes, known)
        rng = check_random_state(self.random_state)
        if not isinstance(self.random_state, Integral):
            rng = data.ranks.same_rng(rng)
        fresh = copy.copy(
            self
        )  # replaces this one once all is learned, so a failure changes nothing
        fresh.classes_, fresh.workers_, fresh.tasks_ = votes.classes, votes.workers, votes.tasks
        remember_features(fresh, features)
        fresh.worker_features_ = table
        fresh.worker_feature_names_in_ = (
            None if table is None else column_names(worker_features, "worker", "worker_features")
        )
        with seeded(int(rng.randint(2**31 - 1)), device, data.step_work(settings)):
            fresh.search_ = None
            if (
                self._chooses and features.shape
            ):  # without features, nothing is known about new tasks
                best, history, found = fresh._choose(data, votes, known, rng)
                fresh.history_ = replace(history, chosen=found.chosen, why=found.why)
                fresh.search_ = found
            else:
                best, fresh.history_ = fresh._learn(data, votes, known, settings, rng)
        fresh.net_ = best.net.cpu()
        if not settings.worker_dropout:
            for part in fresh.net_.modules():
                if isinstance(part, WorkerTable):
                    part.average_unknown()
        fresh._describe(best.cpu(), data)
        if data.checkpoint is not None:
            data.checkpoint.close()
        self.__dict__ = fresh.__dict__
        return self

    def _learn(
        self,
        data: CrowdData,
        votes: Annotations,
        gold: Ints | None,
        settings: Training,
        rng: np.random.RandomState,
    ) -> tuple[CrowdObjective, History]:
        """Train; return the restart that is kept, and the history."""
        data, held = split(data, settings, rng)
        members = [self._member(data).to(data.device) for _ in range(settings.n_restarts)]
        phases = members[0].phases(settings.epochs)
        strength = self._strength or (0.0, 0.0)
        penalty, prior = (0.0 if value == "auto" else float(value) for value in strength)
        if penalty or prior:
            everything = torch.ones(data.n_tasks)
            members = [restrain(m, data, penalty, prior, everything) for m in members]
            phases = [replace(phase, loss=restrained(phase.loss)) for phase in phases]
        return train(side_by_side(members), data, held, phases, settings, rng)

    @property
    def _strength(self) -> tuple[float | str, float | str] | None:
        """Penalty and prior; None for methods with their own regularization."""
        known = self.get_params(deep=False)
        return (known["penalty"], known["prior"]) if {"penalty", "prior"} <= known.keys() else None

    @property
    def _chooses(self) -> bool:
        """Whether held-out labels choose the regularization, and training ends at the optimum."""
        return self._smooth and self.training is None and self._strength is not None

    @property
    def _smooth(self) -> bool:
        """Whether the truth model can be trained to an optimum: one of ours, without dropout."""
        network = "linear" if self.truth is None else self.truth
        return network == "linear" or (isinstance(network, MLP) and not network.dropout)

    def _choose(
        self,
        data: CrowdData,
        votes: Annotations,
        gold: Ints | None,
        rng: np.random.RandomState,
    ) -> tuple[CrowdObjective, History, Search]:
        """Choose penalty and prior by the labels of held-out tasks; then train on all."""
        penalty, prior = self._strength or (0.0, 0.0)
        usual = penalties_for(data.n_in, self.penalties)
        penalties = usual if penalty == "auto" else [float(penalty)]
        starts = self._starts(data, votes, gold)
        variants = [Variant(p, start, given) for given, start in starts for p in penalties]
        one = starts[0][1](torch.ones(data.n_tasks))
        return Ladder(data, rungs(one, prior, self.priors), variants).learn(rng)

    def _starts(
        self, data: CrowdData, votes: Annotations, gold: Ints | None
    ) -> list[tuple[Settings, Start]]:
        """Return possible starting points, with the settings that distinguish them."""
        first = self._member(data).to(data.device)
        if self.truth == "linear":
            for parameter in first.net.truth.parameters():
                nn.init.zeros_(parameter)
        labels = LabelsAlone(votes, gold)

        def inferred(keep: Tensor) -> CrowdObjective:
            one = copy.deepcopy(first)
            one.net.noise.imitate(labels.confusion(keep).to(data.weight))
            return one

        def plain(_: Tensor) -> CrowdObjective:
            return copy.deepcopy(first)

        if not first.net.noise.imitates or self.prior != "auto":
            return [({}, plain)]
        return [({"start": "plain"}, plain), ({"start": "IBCC"}, inferred)]

    def _member(self, data: CrowdData) -> CrowdObjective:
        """Make a network of the right sizes, with its objective, untrained."""
        noise, objective = self._noise(), self._objective()
        for part in (noise, objective):
            part.check()
        scaler = self._front(self._scaler(data), data)
        truth = self._build_truth(data)
        if not isinstance(self.truth, str | MLP | None):
            refuse_misfit(truth, data.features.some(), data.n_classes)
        return objective.build(CrowdNet(scaler, truth, noise.build(data)), data)

    def _scaler(self, data: CrowdData) -> nn.Module:
        if not self.scale or data.n_in is None:
            return nn.Identity()
        return Standardize.by(*data.features.spread(data.device))

    def _front(self, scaler: nn.Module, data: CrowdData) -> nn.Module:
        """Return the module in front of both the truth and the noise model: the scaler."""
        return scaler

    @torch.no_grad()
    def _describe(self, objective: CrowdObjective, data: CrowdData) -> None:
        """Compute posterior, confusion and accuracy on the training tasks."""
        objective.settle(data)
        data = divide(data, objective)
        n_workers, n_classes = len(self.workers_), len(self.classes_)
        total = torch.zeros(n_workers, n_classes, n_classes, dtype=torch.float64)
        shares = torch.zeros(data.n_tasks, n_classes, dtype=torch.float64)
        often = torch.zeros(n_classes, dtype=torch.float64)
        for batch in objective.chunks(data):
            share = objective.posterior(batch).exp().double()  # (task, truth)
            shares[batch.task] = share / share.sum(dim=1, keepdim=True)
            weight = shares[batch.task].clamp_min(1e-12)  # even if no task has a truth
            self._add_confusion(total, batch.x, weight)
            often += weight.sum(dim=0)
        shares, total, often = data.ranks.add([shares, total, often])
        self.posterior_: Floats = shares.numpy()
        # An average over the tasks, weighted by posterior.
        self.confusion_: Floats = (total / often[:, None]).numpy()
        right = np.einsum("wkk,k->w", self.confusion_, self.posterior_.mean(axis=0))
        index = pd.Index(self.workers_, name="worker")
        self.worker_accuracy_ = pd.Series(right, index=index, name="accuracy")
        self.__dict__.update(self.net_.noise.describe(self.net_, data, self.posterior_))
        self.__dict__.update(objective.describe())

    def _add_confusion(self, total: Tensor, x: Tensor, share: Tensor) -> None:
        """Add P(label | truth) of each worker on some tasks, weighted by their posterior."""
        size = rows_at_once(len(x) * pair_cells(len(self.classes_)))
        for worker in torch.split(torch.arange(len(total)), size):
            table = self.net_.tables(x, worker).double()  # (task, worker, truth, label)
            total[worker] += torch.einsum("twkl,tk->wkl", table, share)

    # -- predicting, some rows at a time ---------------------------------------------------

    def predict_proba(self, X: FeaturesLike) -> Floats:
        """Return P(truth | features) of every row, shape (n_rows, n_classes)."""
        # In double precision, so that rows sum to one as precisely as scikit-learn requires.
        return self._over_rows(X, lambda x: self.net_.log_truth(x).double().softmax(dim=-1))

    def predict_worker_proba(
        self,
        X: FeaturesLike,
        workers: WorkersLike | None = None,
        worker_features: FeaturesLike = None,
    ) -> Floats:
        """Return P(label) by each worker, shape (n_rows, n_workers, n_classes).

        A worker unknown in training counts as the unknown one; or, if the model was learned with
        worker features, as predicted from the features given here (see :meth:`for_workers`).
        """
        model, codes = self._asked(workers, worker_features)
        return model._over_rows(X, lambda x: model.net_.worker_labels(x, codes), len(codes))

    def predict_worker_accuracy(
        self,
        X: FeaturesLike,
        workers: WorkersLike | None = None,
        worker_features: FeaturesLike = None,
    ) -> Floats:
        """Return the probability that each worker is right, shape (n_rows, n_workers)."""
        model, codes = self._asked(workers, worker_features)
        return model._over_rows(X, lambda x: model.net_.worker_accuracy(x, codes), len(codes))

    def for_workers(self, workers: WorkersLike | None, worker_features: FeaturesLike) -> Self:
        """Return the same model for other workers, of whom only features are known.

        Parameters
        ----------
        workers : array or None
            Their names; None for the index of ``worker_features``.
        worker_features : array or frame
            One row per worker, with the columns that the model was learned with.
        """
        check_is_fitted(self)
        known = getattr(self, "worker_feature_names_in_", None)
        columns = column_names(worker_features, "worker", "worker_features")
        refuse_other_columns(columns, known, "worker_features")
        names = pd.DataFrame(worker_features).index if workers is None else workers
        other = copy.copy(self)
        other.workers_ = worker_names(names)
        table = other.worker_features_ = worker_table(worker_features, other.workers_)
        other.net_ = with_workers(self.net_, table, type(self).__name__)
        for learned in (
            "confusion_",
            "worker_accuracy_",
            "embedding_",
        ):  # about workers in training
            other.__dict__.pop(learned, None)
        return other

    def _asked(
        self, workers: WorkersLike | None, worker_features: FeaturesLike
    ) -> tuple[Self, Tensor]:
        """Return the model for the workers in question, and their numbers in it."""
        if worker_features is not None:
            model = self.for_workers(workers, worker_features)
            return model, torch.as_tensor(model._worker_codes(None))
        check_is_fitted(self)
        return self, torch.as_tensor(self._worker_codes(workers))

    def _label_proba(self, X: FeaturesLike, row: Ints, worker: Ints) -> Floats:
        features = self._known_features(X)
        return predict_labels(self.net_, features, row, worker, len(self.classes_))

    def _over_rows(
        self, X: FeaturesLike, work: Callable[[Tensor], Tensor], n_workers: int = 0
    ) -> Floats:
        return predict_rows(self._known_features(X), work, len(self.classes_), n_workers)

    def _known_features(self, X: FeaturesLike) -> Features:
        """Return features of the kind that the model was fitted with."""
        check_is_fitted(self)
        features = as_features(X)
        refuse_other_features(features, self)
        return features

    # -- saving ----------------------------------------------------------------------------

    def _learned(self) -> dict[str, Any]:
        return pack_net(super()._learned())

    def _restore(self, learned: dict[str, Any]) -> None:
        super()._restore({name: learned[name] for name in learned.keys() - {"net_"}})
        if learned:  # else it was saved before any fit
            self.net_ = unpack_net(self, self._blank, learned["net_"])

    def _blank(self, device: torch.device) -> CrowdNet:
        """Make a network of the right shapes, with any weights."""
        sizes = len(self.tasks_), len(self.workers_), len(self.classes_)
        data = empty_data(self.feature_shape_, sizes, device, self.worker_features_)
        scaler: nn.Module = nn.Identity()
        if self.scale and data.n_in is not None:
            scaler = Standardize(torch.zeros(data.n_in), torch.ones(data.n_in))
        front = self._front(scaler, data)
        return CrowdNet(front, self._build_truth(data), self._noise().build(data))
