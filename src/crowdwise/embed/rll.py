"""RLL: retrieve a task of the same class among tasks of others, weighted by confidence."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor
from torch.nn.functional import normalize

from crowdwise.annotations import Annotations
from crowdwise.base.params import at_least, more_than, one_of
from crowdwise.embed._base import MOST_GROUPS, Embedder, ordered_pairs
from crowdwise.embed._data import GroupData
from crowdwise.embed._objective import TupleObjective
from crowdwise.embed._tuples import anchor_class, class_number
from crowdwise.embed.confidence import CONFIDENCES, Belief, confidence_of, pseudo_labels
from crowdwise.embed.encoder import EmbedNet
from crowdwise.embed.groups import Pool, TupleSampler
from crowdwise.embed.losses import SIMILARITIES, GroupSoftmax
from crowdwise.nets.training import Training
from crowdwise.typing import Floats

COLLAPSED = 0.999  # mean cosine between tasks from which on nothing tells them apart


class RLL(Embedder):
    """Learn a representation in which tasks of a class find each other among others.

    A group is an anchor, another task of its class and ``n_negatives`` tasks of other classes.
    The anchor must pick its partner by similarity; how sure the labels of each candidate are
    says how much it counts. Assumes that the majority is mostly right and that its size says
    how surely. The paper's three variants are ``confidence="none"`` (RLL), ``"mle"`` and
    ``"bayesian"``.

    Parameters
    ----------
    confidence : {"bayesian", "mle", "none", "assurance"}, default="bayesian"
        How sure a task's class is: the mean of a Beta (Dirichlet) posterior, the share of its
        labels, 1 for all tasks, or NeuCrowd's assurance.
    alpha, beta : float, optional
        Pseudo-labels for and against the positive class, for ``"bayesian"`` and two classes. By
        default ``prior_strength`` labels, dealt to the classes by how many tasks are of each.
    prior_strength : float, default=5
        How many labels the prior is worth. More draws all confidences together.
    negative_confidence : {"own", "positive"}, default="own"
        Whether a negative's confidence is that in its own class, as in the published code; or
        P(positive), as the paper's equations read, which takes the push out of sure negatives.
    form : {"exponent", "multiplier"}, default="exponent"
        Whether confidence scales a candidate's similarity (the paper) or its chance (the code).
    n_negatives : int, default=3
        Tasks of other classes in a group (k).
    temperature : float, default=10
        How much similarity counts (eta).
    similarity : {"cosine", "euclidean"}, default="cosine"
        The cosine, or 1 minus the distance.
    towers : {"shared", "two"}, default="shared"
        Whether anchors and candidates go through one network, or through one each as in the
        code; ``transform`` uses the anchors'.
    anchors : {"auto", "positive", "all"}, default="auto"
        Which classes anchor: the positive one, or all; auto is positive for two classes.
    positive : label, optional
        The positive class; the last of ``classes_`` by default.
    evidence : {"labels", "posterior"}, default="labels"
        What confidence is taken from: shares of the labels, or the aggregator's posterior, in
        which the quality of workers counts. Beyond the paper.
    groups_per_epoch : int, optional
        By default as many as there are ordered pairs of tasks that anchor, at most 60,000.
    legacy : bool, default=False
        Follow the published code where it differs: two towers, confidence as a multiplier,
        alpha = 3 pseudo-labels for a task's own class and beta = 2 against, whichever it is, and
        the same groups in every epoch. (Its early stopping, which looked at groups of negatives
        only, is not followed.) Losses are averaged and not summed over a batch, here as always.
    encoder : Encoder, torch.nn.Module or function, optional
        The network; ``Encoder((64, 32))`` if not given.
    aggregator : Aggregator, optional
        Who decides on the classes; ``MajorityVote()`` if not given.
    scale : bool, default=True
        Whether to standardise features with the mean and deviation of the training tasks.
    refresh_every : int, optional
        Epochs after which classes and confidences are renewed by labels and the current
        representation together; tasks without labels then take part. Beyond the paper.
    training : Training, optional
        How to train; ``default_training`` if not given. Batches are counted in groups.
    random_state : int or RandomState, optional
        Decides starts, groups and dropout.

    References
    ----------
    Xu, Ding, Tang, Yang, Huang and Liu (2019). Learning effective embeddings from crowdsourced
    labels: An educational case study. ICDE. doi:10.1109/ICDE.2019.00208

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from crowdwise.learn import Training
    >>> from crowdwise.simulate import label_by_crowd, one_coin_confusion
    >>> X, truth = make_classification(100, 8, random_state=0)
    >>> votes = label_by_crowd(truth, one_coin_confusion([0.9, 0.7, 0.6], 2), 3, random_state=0)
    >>> brief = Training(epochs=2, batch_size=256, learning_rate=1e-2)
    >>> RLL(training=brief, random_state=0).fit_transform(X, votes).shape
    (100, 32)
    """

    default_training = Training(learning_rate=1e-3, batch_size=256, epochs=5)
    _parameter_constraints = {
        **Embedder._parameter_constraints,
        "confidence": [one_of(*CONFIDENCES)],
        "alpha": [at_least(0.0), None],
        "beta": [at_least(0.0), None],
        "prior_strength": [at_least(0.0)],
        "negative_confidence": [one_of("own", "positive")],
        "form": [one_of("exponent", "multiplier")],
        "n_negatives": [at_least(1)],
        "temperature": [more_than(0.0)],
        "similarity": [one_of(*SIMILARITIES)],
        "towers": [one_of("shared", "two")],
        "anchors": [one_of("auto", "positive", "all")],
        "evidence": [one_of("labels", "posterior")],
        "groups_per_epoch": [at_least(1), None],
        "legacy": ["boolean"],
    }

    def __init__(
        self,
        *,
        confidence: str = "bayesian",
        alpha: float | None = None,
        beta: float | None = None,
        prior_strength: float = 5.0,
        negative_confidence: str = "own",
        form: str = "exponent",
        n_negatives: int = 3,
        temperature: float = 10.0,
        similarity: str = "cosine",
        towers: str = "shared",
        anchors: str = "auto",
        positive: Any = None,
        evidence: str = "labels",
        groups_per_epoch: int | None = None,
        legacy: bool = False,
        encoder: Any = None,
        aggregator: Any = None,
        scale: bool = True,
        refresh_every: int | None = None,
        training: Training | None = None,
        random_state: Any = None,
    ) -> None:
        self.confidence = confidence
        self.alpha = alpha
        self.beta = beta
        self.prior_strength = prior_strength
        self.negative_confidence = negative_confidence
        self.form = form
        self.n_negatives = n_negatives
        self.temperature = temperature
        self.similarity = similarity
        self.towers = towers
        self.anchors = anchors
        self.positive = positive
        self.evidence = evidence
        self.groups_per_epoch = groups_per_epoch
        self.legacy = legacy
        self.encoder = encoder
        self.aggregator = aggregator
        self.scale = scale
        self.refresh_every = refresh_every
        self.training = training
        self.random_state = random_state

    def _objective(self, net: EmbedNet, belief: Belief) -> TupleObjective:
        form = "multiplier" if self.legacy else self.form
        softmax = GroupSoftmax(self.temperature, similarity=self.similarity, form=form)
        sampler = TupleSampler(self.n_negatives, anchor_class(self))
        kind = SameGroups if self.legacy else TupleObjective
        return kind(net, sampler, softmax, len(self.classes_))

    def _n_groups(self, belief: Belief) -> int:
        pairs = min(ordered_pairs(belief, anchor_class(self)), MOST_GROUPS)
        return self.groups_per_epoch or max(pairs, 1)

    def _towers(self) -> int:
        return 2 if self.legacy or self.towers == "two" else 1

    def _evidence(self, votes: Annotations, posterior: Floats) -> Floats:
        return posterior if self.evidence == "posterior" else votes.shares()

    def _confidence(self, belief: Belief) -> Floats:
        positive = class_number(self)
        if self.legacy and self.confidence == "bayesian":
            prior = np.full(len(self.classes_), 2.0)
            own = confidence_of(belief, "mle") * belief.size
            return np.where(belief.label < 0, 0.0, (own + 3.0) / (belief.size + 3.0 + prior[0]))
        prior = pseudo_labels(belief, self.alpha, self.beta, self.prior_strength, positive)
        whose = positive if self.negative_confidence == "positive" else None
        return confidence_of(belief, self.confidence, prior, positive=whose)

    @torch.no_grad()
    def _settle(self, data: GroupData) -> None:
        if self.similarity != "cosine":
            return
        alike = mean_cosine(data.embedded(data.objective.net, data.tasks))
        if alike > COLLAPSED:
            warnings.warn(
                f"All vectors point the same way: the mean cosine of two tasks is {alike:.4f}. "
                "A rare class that anchors nothing, and is believed less by its prior, does that. "
                "Try anchors='all', an even prior (alpha=2.5, beta=2.5), the rarer class as "
                "positive, form='multiplier', or less weight decay.",
                ConvergenceWarning,
                stacklevel=4,
            )


def mean_cosine(vectors: Tensor) -> float:
    """Mean cosine of two different rows."""
    direction, n = normalize(vectors.double(), dim=1), len(vectors)
    together = float(direction.sum(dim=0).square().sum())
    return (together - float(direction.square().sum())) / max(n * (n - 1), 1)


class SameGroups(TupleObjective):
    """Groups that are made once: every epoch draws with the same luck."""

    def begin(self, data: Any, generator: Any) -> Pool:
        generator.manual_seed(generator.initial_seed())
        return super().begin(data, generator)
