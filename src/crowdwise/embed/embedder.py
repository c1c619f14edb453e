"""An embedder composed of parts: groups, an anchor, a confidence and a loss."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np
import torch
from sklearn.base import clone
from sklearn.utils import check_random_state
from torch import nn

from crowdwise import progress
from crowdwise.aggregate import IBCC
from crowdwise.annotations import Annotations, keep_counting, tied
from crowdwise.base.aggregator import Aggregator
from crowdwise.base.embedder import Embedder
from crowdwise.base.params import Constraints, at_least, checks_params, one_of
from crowdwise.embed.confidence import Bayesian, Belief, Confidence, Renewal
from crowdwise.embed.groups import Groups, GroupTasks, RandomGroups, Setting, refuse_too_few
from crowdwise.embed.losses import Anchor, CosineSoftmax, Example, GroupObjective, Loss
from crowdwise.embed.output_choice import OUTPUTS, choose_output
from crowdwise.errors import ParameterError, explain
from crowdwise.inference import clamp
from crowdwise.io import as_annotations, as_gold
from crowdwise.io.accept import in_rows_of, refuse_too_many_classes
from crowdwise.learn.search import Search
from crowdwise.learn.two_stage import name_truths
from crowdwise.nets.features import (
    Features,
    as_features,
    refuse_other_features,
    remember_features,
    rows_at_once,
    try_module,
)
from crowdwise.nets.loop import History, Phase, Single, pick_device, seeded, split, train
from crowdwise.nets.modules import (
    EmbedNet,
    Encoder,
    EncoderLike,
    Standardize,
    TwoTowers,
    build_towers,
)
from crowdwise.nets.saved import pack_net, unpack_net
from crowdwise.nets.training import Training
from crowdwise.typing import AnnotationsLike, FeaturesLike, Floats, GoldLike, Ints, RandomState

T = TypeVar("T")


class Parts(NamedTuple):
    """The parts of an embedder."""

    groups: Groups
    anchor: Anchor
    confidence: Confidence
    loss: Loss


class CrowdEmbedder(Embedder):
    """Learn a representation by comparing tasks, with parts of your choice.

    Groups of tasks are drawn, and the members of each are compared with its anchor; the loss
    defines closeness, and the confidence in a member's class defines how much it counts.
    The methods of :mod:`crowdwise.embed` are choices of these parts.

    Parameters
    ----------
    groups : Groups, optional
        Which tasks are compared; ``RandomGroups()`` if not given.
    anchor : Anchor, optional
        What they are compared with; ``Example()``, the task that was drawn, if not given.
    confidence : Confidence, optional
        How certain each task's class is; ``Bayesian()`` if not given.
    loss : Loss, optional
        What training lowers; ``CosineSoftmax()`` if not given.
    groups_per_epoch : int, optional
        By default as many as the groups ask for.
    encoder : Encoder, TwoTowers, torch.nn.Module or function, optional
        The network; ``Encoder((64, 32))`` if not given. A module is copied with its weights; a
        function is called with the number of features.
    aggregator : Aggregator, optional
        What infers the classes; majority vote if not given.
    scale : bool, default=True
        Whether to standardize features to mean 0 and deviation 1 on the training tasks.
    refresh_every : int, optional
        Epochs after which classes and confidences are inferred again from labels and the current
        representation together; tasks without labels then take part.
    output : {"auto", "features", "both", "vectors"}, default="auto"
        The representation: a task's scaled features, the learned vector, or both side by side.
        With "auto", the labels of held-out tasks choose by means of a linear classifier: the
        simplest of those that predict them best, within two standard errors. If that is not the
        features, it must be better than these on other held-out tasks, too. If neither
        ``aggregator`` nor ``confidence`` is given, they also choose between majority votes and
        IBCC. With ``training``, or features that are not rows of numbers, "auto" is the vector.
    training : Training, optional
        How to train; ``default_training`` if not given. Batches are counted in groups.
    random_state : int or RandomState, optional
        Random seed of initialization, groups and dropout.

    Attributes
    ----------
    classes_, workers_, tasks_, size_, feature_shape_, n_features_in_, feature_names_in_
        See :class:`crowdwise.base.Embedder`.
    aggregator_ : Aggregator or None
        The aggregator that inferred the training tasks' classes; None for majority votes.
    posterior_ : ndarray of shape (n_tasks, n_classes)
        P(truth | labels) by shares or aggregator; if refreshed, also by the representation.
    confidence_ : ndarray of shape (n_tasks,)
        Confidence in the class of each training task; 0 for tasks without labels.
    history_ : History
        Loss per epoch, and the loss of held-out tasks if there is ``patience``.
    search_ : Search or None
        The alternatives, how well each predicts the labels of held-out tasks, the choice and
        the reason; None if there was nothing to choose.
    net_ : EmbedNet
        The fitted network, a ``torch.nn.Module``.

    Examples
    --------
    >>> import numpy as np
    >>> from crowdwise.embed import Assurance, CosineSoftmax, Robust
    >>> X, labels = np.eye(6), [[0, 0], [1, 1], [0, 0], [1, 1], [0, 1], [1, 1]]
    >>> parts = {"anchor": Robust(), "confidence": Assurance(), "loss": CosineSoftmax(eta=5.0)}
    >>> CrowdEmbedder(**parts, groups_per_epoch=64, random_state=0).fit_transform(X, labels).shape
    (6, 32)
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "groups": [Groups, None],
        "anchor": [Anchor, None],
        "confidence": [Confidence, None],
        "loss": [Loss, None],
        "groups_per_epoch": [at_least(1), None],
        "encoder": [Encoder, TwoTowers, nn.Module, callable, None],
        "aggregator": [Aggregator, None],
        "scale": ["boolean"],
        "refresh_every": [at_least(1), None],
        "output": [one_of("auto", *OUTPUTS)],
        "training": [Training, None],
        "random_state": ["random_state"],
    }
    default_groups: ClassVar[Groups] = RandomGroups()
    default_anchor: ClassVar[Anchor] = Example()
    default_confidence: ClassVar[Confidence] = Bayesian()
    default_loss: ClassVar[Loss] = CosineSoftmax()
    default_groups_per_epoch: ClassVar[int | None] = None
    default_encoder: ClassVar[Encoder] = Encoder()
    encoders: ClassVar[Mapping[str, Encoder]] = {}  # for "auto" to choose from beside this one
    default_training: ClassVar[Training] = Training(learning_rate=1e-3, batch_size=256, epochs=50)

    aggregator_: Aggregator | None
    history_: History
    search_: Search | None
    net_: EmbedNet

    def __init__(
        self,
        *,
        groups: Groups | None = None,
        anchor: Anchor | None = None,
        confidence: Confidence | None = None,
        loss: Loss | None = None,
        groups_per_epoch: int | None = None,
        encoder: EncoderLike | TwoTowers | None = None,
        aggregator: Aggregator | None = None,
        scale: bool = True,
        refresh_every: int | None = None,
        output: str = "auto",
        training: Training | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.groups = groups
        self.anchor = anchor
        self.confidence = confidence
        self.loss = loss
        self.groups_per_epoch = groups_per_epoch
        self.encoder = encoder
        self.aggregator = aggregator
        self.scale = scale
        self.refresh_every = refresh_every
        self.output = output
        self.training = training
        self.random_state = random_state

    def parts(self) -> Parts:
        """The parts in use: those given, else the method's defaults."""
        return Parts(
            given(self.groups, self.default_groups),
            given(self.anchor, self.default_anchor),
            given(self.confidence, self.default_confidence),
            given(self.loss, self.default_loss),
        )

    @checks_params
    def fit(self, X: FeaturesLike, annotations: AnnotationsLike, gold: GoldLike = None) -> Self:
        """Learn from features and annotations.

        Parameters
        ----------
        X : array, sparse matrix, frame, tensor or torch Dataset
            One row per task, in the order of ``annotations.tasks`` (or a frame indexed by task).
        annotations : Annotations, frame, array, dict or path
            Labels by workers; tasks without any are allowed.
        gold : mapping, Series, frame or array, optional
            Known truths of some tasks.
        """
        votes = keep_counting(as_annotations(annotations))
        refuse_too_many_classes(type(self).__name__, votes, tables=False)
        known = None if gold is None else as_gold(gold, votes)
        features = as_features(in_rows_of(X, annotations), votes.tasks)
        settings, rng = self._settings(), check_random_state(self.random_state)
        device = pick_device(settings.device)
        for part in self.parts():
            part.check()
        fresh = copy.copy(self)  # replaces the model at the end, so that a failure changes nothing
        fresh.classes_, fresh.workers_, fresh.tasks_ = votes.classes, votes.workers, votes.tasks
        remember_features(fresh, features)
        fresh.search_ = fresh._choose(features, votes, known, rng)
        used = fresh._with_chosen()
        belief = used._aggregate(votes, known)
        renewal = Renewal(used.parts().confidence, belief, votes, self.refresh_every)
        work = int(np.prod(features.shape)) * min(settings.batch_size or 1024, votes.n_tasks)
        with seeded(int(rng.randint(2**31 - 1)), device, work):
            used._learn(features, renewal, settings, rng, device)
        if used.search_ is not None:
            used.history_.chosen, used.history_.why = used.search_.chosen, used.search_.why
        width = int(np.prod(features.shape))
        used.size_ = {"features": width, "both": width + used.size_}.get(used._output, used.size_)
        self.__dict__ = {**used.__dict__, **self.get_params(deep=False)}
        return self

    def _choose(
        self, features: Features, votes: Annotations, gold: Ints | None, rng: np.random.RandomState
    ) -> Search | None:
        """Choose the representation, and the aggregator for classes, by held-out labels."""
        if self.output != "auto" or self.training is not None or len(features.shape) != 1:
            return None
        X = features.rows(torch.arange(features.n_tasks)).double().cpu().numpy()
        plain = clone(self).set_params(output="vectors", random_state=int(rng.randint(2**31 - 1)))
        embedders = [({"classes": "majority"}, plain)]
        if self.aggregator is None and self.confidence is None:
            embedders.append(({"classes": "IBCC"}, clone(plain).set_params(**self._strong())))
        encoders = self.encoders if self.encoder is None else {}
        return choose_output(X, votes, gold, embedders, encoders, rng)

    def _strong(self) -> dict[str, Any]:
        """Return parts that take the quality of workers into account."""
        confidence = clone(self.default_confidence).set_params(evidence="posterior")
        return {"aggregator": IBCC(), "confidence": confidence}

    def _with_chosen(self) -> Self:
        """Return a copy with the chosen parts."""
        chosen = {} if self.search_ is None else self.search_.chosen
        used = copy.copy(self)
        for name, part in (self._strong() if chosen.get("classes") == "IBCC" else {}).items():
            setattr(used, name, part)
        return used

    @property
    def _output(self) -> str:
        found: Search | None = getattr(self, "search_", None)
        if found is not None:
            return str(found.chosen["output"])
        return "vectors" if self.output == "auto" else self.output

    def _learn(
        self,
        features: Features,
        renewal: Renewal,
        settings: Training,
        rng: np.random.RandomState,
        device: torch.device,
    ) -> None:
        """Train the network on groups of tasks, and keep the result."""
        net = self._net(features)
        self.size_ = size_of(net, features)
        objective = self._objective(net, settings).to(device)
        tasks = self._tasks(features.to(device), objective, renewal, device)
        learned, held = split(tasks, settings, rng)
        _, self.history_ = train(
            Single(objective), learned, held, [Phase(settings.epochs)], settings, rng
        )
        self.posterior_ = renewal.posterior(self.posterior_)
        self.confidence_ = renewal.values
        self._review(tasks, settings)
        self.net_ = objective.net.cpu().eval()

    @torch.no_grad()
    def _transform(self, X: FeaturesLike) -> Floats:
        features = as_features(X)
        refuse_other_features(features, self)
        size = rows_at_once(int(np.prod(features.shape)))
        device = pick_device(self._settings().device)
        net = self.net_.to(device)
        parts: list[Floats] = [np.empty((0, self.size_))]
        rows = torch.split(torch.arange(features.n_tasks), size)
        for some in progress.track(rows, "embedding", unit="block"):
            x = features.rows(some.to(device))
            parts.append(net.describe(x, self._output).double().cpu().numpy())
        self.net_.cpu()
        return np.concatenate(parts)

    def _review(self, tasks: GroupTasks, settings: Training) -> None:
        """Set, or warn about, anything found after training."""

    def _settings(self) -> Training:
        settings = given(self.training, self.default_training)
        if settings.n_restarts != 1 or settings.worker_dropout:
            raise ParameterError(
                explain(
                    f"n_restarts={settings.n_restarts}, worker_dropout={settings.worker_dropout}.",
                    expected="n_restarts=1 and worker_dropout=0 for an embedder",
                    fix="fit several embedders with different seeds, and compare them downstream",
                )
            )
        return settings

    def _aggregate(self, votes: Annotations, gold: Ints | None) -> Belief:
        """Return the belief by majority votes, or by the aggregator."""
        share = votes.shares()
        if self.aggregator is None:
            self.aggregator_, label = None, tied(share).argmax(axis=1)
            self.posterior_ = share if gold is None else clamp(share, gold)
        else:
            truths = None if gold is None else name_truths(gold, votes)
            self.aggregator_ = clone(self.aggregator).fit(votes, truths)
            self.posterior_, label = self.aggregator_.posterior_, self.aggregator_.label_codes_
        by_posterior = self.parts().confidence.evidence == "posterior"
        return Belief.of(votes, self.posterior_ if by_posterior else share, label, gold)

    def _net(self, features: Features) -> EmbedNet:
        flat = self.scale and len(features.shape) == 1
        scaler = Standardize.by(*features.spread(torch.device("cpu"))) if flat else nn.Identity()
        return self._net_behind(scaler)

    def _learned(self) -> dict[str, Any]:
        return pack_net(super()._learned())

    def _restore(self, learned: dict[str, Any]) -> None:
        super()._restore({name: learned[name] for name in learned.keys() - {"net_"}})
        if learned:  # else it was saved before any fit
            self.net_ = unpack_net(self, self._blank, learned["net_"])

    def _blank(self, device: torch.device) -> EmbedNet:
        """Make a network of the right shapes, with any weights."""
        flat, shape = self.scale and len(self.feature_shape_) == 1, self.feature_shape_
        scaler = Standardize(torch.zeros(shape), torch.ones(shape)) if flat else nn.Identity()
        return self._net_behind(scaler)

    def _net_behind(self, scaler: nn.Module) -> EmbedNet:
        found: Search | None = getattr(self, "search_", None)
        name = "" if found is None else found.chosen.get("encoder", "")
        usual = self.encoders.get(name, self.default_encoder)
        encoder = usual if self.encoder is None else self.encoder
        return EmbedNet(scaler, *build_towers(encoder, self.feature_shape_))

    def _objective(self, net: EmbedNet, settings: Training) -> GroupObjective:
        """Join the network and its loss."""
        parts, n_classes = self.parts(), len(self.classes_)
        setting = Setting(self.classes_, net, self.size_, settings.batch_size)
        sampler, criterion = parts.groups.sampler(setting), parts.loss.build(self.size_, n_classes)
        return GroupObjective(net, sampler, parts.anchor, criterion, n_classes)

    def _tasks(
        self,
        features: Features,
        objective: GroupObjective,
        renewal: Renewal,
        device: torch.device,
    ) -> GroupTasks:
        """Return the tasks with classes and confidences, to draw groups from."""
        belief, sampler = renewal.belief, objective.sampler
        usual = given(self.default_groups_per_epoch, sampler.n_groups(belief.class_sizes))
        tasks = GroupTasks(
            features,
            torch.as_tensor(belief.label, device=device).long(),
            torch.as_tensor(renewal.values, device=device).float(),
            torch.as_tensor(belief.labeled),
            len(self.classes_),
            given(self.groups_per_epoch, usual),
            objective.net,
            sampler,
            renewal,
        )
        refuse_too_few(tasks.pool(), sampler)
        return tasks


def size_of(net: EmbedNet, features: Features) -> int:
    """Return the dimension of the representation, found by applying the network."""
    x = features.some()
    try:
        return int(try_module(net, x).shape[1])
    except Exception as error:
        raise ParameterError(
            explain(
                "encoder does not turn these features into vectors.",
                first=f"{type(error).__name__}: {error}",
                expected=f"a torch.nn.Module that takes features of shape {tuple(x.shape)}",
                fix="check the input size of the encoder",
            )
        ) from error


def given(value: T | None, usual: T) -> T:
    """Return the value, or the default if it is None."""
    return usual if value is None else value
