"""Who answers what: a model of which worker labels which task."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from crowdwise.annotations import drop_weightless, keep_counting
from crowdwise.annotations.names import locate
from crowdwise.base.fitting import all_or_nothing
from crowdwise.base.learner import WorkersLike, worker_names
from crowdwise.base.params import Constraints, at_least, checks_params, one_of
from crowdwise.errors import AnnotationError
from crowdwise.io import as_annotations
from crowdwise.io.accept import in_rows_of
from crowdwise.learn.parts import WorkerTable, side_by_side
from crowdwise.nets.batches import Batch, CrowdData, as_data, label_shares
from crowdwise.nets.features import (
    as_features,
    refuse_other_features,
    remember_features,
    rows_at_once,
)
from crowdwise.nets.loop import Phase, pick_device, seeded, split, train
from crowdwise.nets.modules import MLP, NetworkLike, Standardize, build_network
from crowdwise.nets.objective import Objective
from crowdwise.nets.saved import empty_data, pack_net, unpack_net
from crowdwise.nets.training import Training
from crowdwise.persist import Savable
from crowdwise.typing import AnnotationsLike, FeaturesLike, Floats, RandomState


class ResponseModel(Savable, BaseEstimator):
    """Learn who answers what from past answers.

    Worker ``w`` answers a task with features ``x`` with probability
    ``sigmoid(u_w . v(x) + b_w)``. With ``mechanism="mnar"`` (answers are missing not at random)
    there is another term ``c_w[k]`` for the task's truth ``k``, so that a missing answer is
    evidence about the truth, as computed by :meth:`evidence`.

    Every pair of a task and a worker counts, most of them through a sample. The loss is minus the
    log-odds of all answers plus minus ``log P(no answer)`` of ``negatives`` random pairs
    for each, weighted up to all pairs. On average that is the whole likelihood, so the
    probabilities themselves are right and not only their order.

    Parameters
    ----------
    size : int, default=8
        Size of ``u`` and ``v``.
    task : "linear", MLP, torch.nn.Module or function, default="linear"
        The network ``v`` from features.
    mechanism : {"mar", "mnar"}, default="mar"
        Whether answering depends on features alone, or on the truth too.
    negatives : int, default=4
        Random pairs per answer in each step; more make training steadier but slower.
    scale : bool, default=True
        Whether to standardize features to mean 0 and deviation 1 on the training rows.
    training : Training, optional
        How to train; ``ResponseModel.default_training`` if not given. ``batch_size`` counts
        tasks.
    random_state : int or RandomState, optional
        Random seed of initialization, batches, random pairs and held-out answers.

    Attributes
    ----------
    tasks_, workers_, classes_ : ndarray
        Names, in the order of every learned array.
    rate_ : ndarray of shape (n_workers,)
        Share of the training tasks that each worker answered.
    shift_ : ndarray of shape (n_workers, n_classes)
        Effect of the truth on each worker's log-odds to answer; zeros if it has none.
    feature_shape_, history_, net_
        See :class:`crowdwise.learn.CrowdClassifier`.

    References
    ----------
    Platanios, Al-Shedivat, Xing and Mitchell (2020), who sketch the idea. Learning from imperfect
    annotations. doi:10.48550/arXiv.2004.03473
    Little and Rubin (2019). Statistical analysis with missing data. doi:10.1002/9781119482260

    Examples
    --------
    >>> import numpy as np
    >>> from crowdwise import Annotations
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> keen = X @ rng.normal(size=(2, 5)) > 0  # five workers, each with a taste
    >>> task, worker = np.nonzero(keen)
    >>> votes = Annotations.from_codes(
    ...     task, worker, np.ones(len(task), int), tasks=np.arange(300), classes=[0, 1]
    ... )
    >>> chance = ResponseModel(random_state=0).fit(X, votes).predict_proba(X)
    >>> bool(((chance > 0.5) == keen).mean() > 0.9)
    True
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "size": [at_least(1)],
        "task": [str, MLP, nn.Module, callable],
        "mechanism": [one_of("mar", "mnar")],
        "negatives": [at_least(1)],
        "scale": ["boolean"],
        "training": [Training, None],
        "random_state": ["random_state"],
    }
    default_training: ClassVar[Training] = Training(learning_rate=3e-2, epochs=200)
    _axes = {
        "rate_": ("workers_",),
        "shift_": ("workers_", "classes_"),
        "truth_share_": ("classes_",),
    }

    def __init__(
        self,
        *,
        size: int = 8,
        task: NetworkLike = "linear",
        mechanism: str = "mar",
        negatives: int = 4,
        scale: bool = True,
        training: Training | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.size = size
        self.task = task
        self.mechanism = mechanism
        self.negatives = negatives
        self.scale = scale
        self.training = training
        self.random_state = random_state

    @checks_params
    def fit(
        self, X: FeaturesLike, annotations: AnnotationsLike, truth: ArrayLike | None = None
    ) -> Self:
        """Learn from the features of all tasks and the existing annotations.

        ``truth`` is P(truth) of each task for ``mechanism="mnar"``, such as an aggregator's or
        a learner's ``posterior_``; each task's share of labels if not given.
        """
        votes = keep_counting(as_annotations(annotations)).without_repeats("first")
        settings = self.training if self.training is not None else self.default_training
        rng, device = check_random_state(self.random_state), pick_device(settings.device)
        features = as_features(in_rows_of(X, annotations), votes.tasks)
        data = as_data(features, votes, None, device)
        with all_or_nothing(self):
            remember_features(self, features)
            self.tasks_, self.workers_, self.classes_ = votes.tasks, votes.workers, votes.classes
            self.rate_: Floats = (
                np.bincount(votes.worker, minlength=votes.n_workers) / votes.n_tasks
            )
            share = label_shares(data) if truth is None else as_truth(truth, data)
            with seeded(int(rng.randint(2**31 - 1)), device, data.n_annotations * self.negatives):
                members = [self._member(data, share).to(device) for _ in range(settings.n_restarts)]
                learned, held = split(data, settings, rng)
                best, self.history_ = train(
                    side_by_side(members), learned, held, [Phase(settings.epochs)], settings, rng
                )
            self.net_ = best.cpu().net
            for part in self.net_.modules():
                if isinstance(part, WorkerTable):
                    part.average_unknown()
            self.truth_share_: Floats = share.mean(dim=0).cpu().double().numpy()
            self.shift_: Floats = np.zeros((votes.n_workers, votes.n_classes))
            if self.net_.shift is not None:
                self.shift_ += self.net_.shift.weight[:-1].detach().numpy()
        return self

    def predict_proba(
        self,
        X: FeaturesLike,
        workers: WorkersLike | None = None,
        truth: ArrayLike | None = None,
    ) -> Floats:
        """Return P(worker answers), shape (n_rows, n_workers); an unknown worker is the average.

        ``truth`` is P(truth) of each row, the training tasks' average if not given.
        """
        answers = self._over_rows(X, workers)  # (row, worker, truth)
        share = self.truth_share_ if truth is None else np.asarray(truth)
        return (answers * share.reshape(-1, 1, len(self.classes_))).sum(axis=2)

    def evidence(self, X: FeaturesLike, annotations: AnnotationsLike) -> Floats:
        """Return log P(who answered | truth) of each task, shape (n_tasks, n_classes).

        Add it to the log of a posterior from the labels to make use of missing answers.
        """
        votes = drop_weightless(as_annotations(annotations))
        answers = self._over_rows(X, None)
        given = np.zeros(answers.shape[:2], dtype=bool)
        worker = locate(self.workers_, votes.workers)[votes.worker]
        given[votes.task[worker >= 0], worker[worker >= 0]] = True
        chance = np.where(given[:, :, None], answers, 1.0 - answers)
        total = np.log(np.maximum(chance, np.finfo(float).tiny)).sum(axis=1)
        return np.broadcast_to(total, (len(total), len(self.classes_))).copy()

    def _member(self, data: CrowdData, share: Tensor) -> ResponseLoss:
        scaler: nn.Module = nn.Identity()
        if self.scale and data.n_in is not None:
            scaler = Standardize.by(*data.features.spread(data.device))
        return ResponseLoss(self._net(scaler, data), data, share, self.negatives)

    def _net(self, scaler: nn.Module, data: CrowdData) -> ResponseNet:
        task = build_network(self.task, data.n_in, self.size)
        return ResponseNet(scaler, task, data, self.size, depends=self.mechanism == "mnar")

    def _learned(self) -> dict[str, Any]:
        return pack_net(super()._learned())

    def _restore(self, learned: dict[str, Any]) -> None:
        super()._restore({name: learned[name] for name in learned.keys() - {"net_"}})
        if learned:  # else it was saved before any fit
            self.net_ = unpack_net(self, self._blank, learned["net_"])

    def _blank(self, device: torch.device) -> ResponseNet:
        """Make a network of the right shapes, with any weights."""
        sizes = len(self.tasks_), len(self.workers_), len(self.classes_)
        data = empty_data(self.feature_shape_, sizes, device, None)
        scaler: nn.Module = nn.Identity()
        if self.scale and data.n_in is not None:
            scaler = Standardize(torch.zeros(data.n_in), torch.ones(data.n_in))
        return self._net(scaler, data)

    @torch.no_grad()
    def _over_rows(self, X: FeaturesLike, workers: WorkersLike | None) -> Floats:
        """Return P(worker answers | truth), (row, worker, truth or 1)."""
        check_is_fitted(self)
        names = self.workers_ if workers is None else worker_names(workers)
        found = locate(self.workers_, names)
        code = torch.as_tensor(np.where(found < 0, len(self.workers_), found))
        features = as_features(X)
        refuse_other_features(features, self)
        cells = max(int(np.prod(features.shape)), len(code) * len(self.classes_))
        rows = torch.split(torch.arange(features.n_tasks), rows_at_once(cells))
        logit = torch.cat([self.net_.grid(features.rows(some), code) for some in rows])
        return torch.sigmoid(logit.double()).numpy()


class ResponseNet(nn.Module):
    """Log-odds that a worker answers a task, for each truth; or one column for any truth."""

    def __init__(
        self, scaler: nn.Module, task: nn.Module, data: CrowdData, size: int, *, depends: bool
    ) -> None:
        super().__init__()
        self.scaler, self.task = scaler, task
        start = torch.zeros(size + 1)  # u, then b
        rate = data.n_annotations / (data.n_tasks * data.n_workers)
        start[-1] = math.log(max(rate, 1e-6) / max(1.0 - rate, 1e-6))
        self.worker = WorkerTable(data.n_workers, start)
        with torch.no_grad():
            self.worker.weight[:, :-1].normal_(std=0.1)
        self.shift = WorkerTable(data.n_workers, torch.zeros(data.n_classes)) if depends else None

    def forward(self, x: Tensor, at: Tensor, worker: Tensor) -> Tensor:
        """Return ``u . v(x) + b + c[truth]`` of each row, (row, truth or 1)."""
        vector, mine = self.task(self.scaler(x))[at], self.worker(worker)
        match = (vector * mine[:, :-1]).sum(dim=-1) + mine[:, -1]
        return match[:, None] + (self.shift(worker) if self.shift is not None else 0.0)

    def grid(self, x: Tensor, worker: Tensor) -> Tensor:
        """Do the same for all rows of ``x`` with all workers, (row, worker, truth or 1)."""
        vector, mine = self.task(self.scaler(x)), self.worker(worker)
        match = vector @ mine[:, :-1].T + mine[:, -1]
        return match[:, :, None] + (self.shift(worker) if self.shift is not None else 0.0)


class ResponseLoss(Objective[Batch]):
    """Minus the likelihood of who answered and who did not, per answer."""

    by = "task"
    held_out_everywhere = True  # tasks without answers count equally
    net: ResponseNet
    log_share: Tensor

    def __init__(self, net: ResponseNet, data: CrowdData, share: Tensor, negatives: int) -> None:
        super().__init__()
        self.net = net
        self.register_buffer("log_share", share.log())  # (task, truth)
        self.negatives = negatives
        self.n_workers, self.per_task = data.n_workers, data.n_annotations / data.n_tasks

    def loss(self, batch: Batch) -> Tensor:
        return self.sampled(batch, *self.draw(batch), self.per_task * len(batch.x))

    def held_out(self, batch: Batch) -> Tensor:
        return self.sampled(batch, *self.draw(batch), len(batch.at))

    def draw(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Draw random pairs of the batch's tasks and all workers."""
        n = math.ceil(self.negatives * self.per_task * len(batch.x))
        place = torch.rand(2, n, device=batch.at.device)
        at, worker = (place[0] * len(batch.x)).long(), (place[1] * self.n_workers).long()
        return at.clamp_max(len(batch.x) - 1), worker.clamp_max(self.n_workers - 1)

    def sampled(self, batch: Batch, at: Tensor, worker: Tensor, n_answers: float) -> Tensor:
        """Return minus the log-odds of answers, minus log P(no answer) of all pairs, by a sample.

        ``n_answers`` is the number of answers that the batch represents.
        """
        log_yes, log_no = self.chances(batch, batch.at, batch.worker)
        _, log_none = self.chances(batch, at, worker)
        return (log_no - log_yes).sum() / n_answers - log_none.mean() * (
            self.n_workers / self.per_task
        )

    def chances(self, batch: Batch, at: Tensor, worker: Tensor) -> tuple[Tensor, Tensor]:
        """Return log P(answer) and log P(no answer) of each row, summed over truths."""
        logit = self.net(batch.x, at, worker)
        share = self.log_share[batch.task][at]
        yes = torch.logsumexp(share + logsigmoid(logit), dim=-1)
        return yes, torch.logsumexp(share + logsigmoid(-logit), dim=-1)


def as_truth(truth: ArrayLike, data: CrowdData) -> Tensor:
    """Return P(truth) of each task as a tensor."""
    table = torch.as_tensor(np.asarray(truth), dtype=torch.float32, device=data.device)
    if table.shape != (data.n_tasks, data.n_classes):
        raise AnnotationError(
            f"truth has shape {tuple(table.shape)}.\n"
            f"  expected: P(truth) of each task, shape ({data.n_tasks}, {data.n_classes})"
            "\n  fix:      give a distribution over the classes for each task"
        )
    return table
