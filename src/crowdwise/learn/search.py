"""Choice of a learner's regularization by the labels of held-out tasks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor

from crowdwise.learn.parts import CrowdObjective, side_by_side
from crowdwise.learn.restraint import n_labels, on_kept_tasks, restrain, restrained
from crowdwise.learn.starting_points import Start
from crowdwise.nets.batches import PART, Batch, CrowdData
from crowdwise.nets.ensemble import AllTasks
from crowdwise.nets.loop import History, Phase, divide, view
from crowdwise.nets.minimize import minimize
from crowdwise.typing import Array, Floats, Ints

PENALTIES = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001)
PRIORS = (10.0, 1.0, 0.1)
WIDE = 512  # from this many features on, larger penalties are tried
KEPT, KEPT_EACH = 3, 2  # penalties kept after the first rung; and of each of several starts
ENOUGH = 400  # tasks from which three folds are enough
CELLS_AT_ONCE = 50_000_000
SEARCH_STEPS, FINAL_STEPS = 30, 300  # maximum L-BFGS steps
COSTLY = 200_000  # cells of workers' tables, over all labels, above which three folds must do
ERRORS = {1: "one standard error", 2: "two standard errors"}
Settings = Mapping[str, object]  # by name


@dataclass
class Search:
    """The settings tried, how well they predict labels of held-out tasks, and the choice.

    Attributes
    ----------
    candidates : list of dict
        Settings by name, in the order in which they were tried.
    held_out : list of float
        Mean log-likelihood of a held-out task's labels, for each candidate.
    error : list of float
        Standard error of the difference to the best candidate, over tasks.
    chosen : dict
        The chosen settings.
    why : str
        The reason, in words.
    """

    candidates: list[dict[str, Any]] = field(default_factory=list)
    held_out: list[float] = field(default_factory=list)
    error: list[float] = field(default_factory=list)
    chosen: dict[str, Any] = field(default_factory=dict)
    why: str = ""


def deal(data: CrowdData, rng: np.random.RandomState) -> Ints:
    """Return the fold of each labeled task, -1 for others; the order of tasks does not matter."""
    tasks = torch.arange(data.n_tasks, device=data.device)
    size = max(1, PART // max(int(np.prod(data.features.shape)), 1))
    rows = (data.features.rows(some).flatten(1).double().cpu() for some in torch.split(tasks, size))
    place = np.concatenate([place_of(some.numpy()) for some in rows])
    cells = data.n_annotations * data.n_classes**2
    labeled = data.labeled_tasks.cpu().numpy()
    return deal_places(place, labeled, rng, costly=cells > COSTLY)


def deal_rows(
    rows: Floats | csr_array, labeled: Array, rng: np.random.RandomState, *, costly: bool = False
) -> Ints:
    """Do the same for rows of numbers, dense or sparse."""
    return deal_places(place_of(rows), labeled, rng, costly=costly)


def place_of(rows: Floats | csr_array) -> Floats:
    """Return a number for each row, to sort them by."""
    return np.asarray(rows @ np.cos(np.arange(rows.shape[1]) + 1.0))


def deal_places(place: Floats, labeled: Array, rng: np.random.RandomState, *, costly: bool) -> Ints:
    """Do the same for tasks in the order of some number."""
    n_labeled = int(labeled.sum())
    n_folds = min(3 if costly or n_labeled >= ENOUGH else 5, n_labeled)
    order = np.argsort(place, kind="stable")
    fold = np.full(len(labeled), -1)
    fold[order[labeled[order]][rng.permutation(n_labeled)]] = np.arange(n_labeled) % max(n_folds, 1)
    return fold


def penalties_for(width: int | None, usual: Sequence[float] = PENALTIES) -> list[float]:
    """List penalties to choose from, strong to weak: the usual ones, scaled for wide features.

    Scores are sums over standardized features, so they grow with the number of features.
    """
    return [p * max(1.0, (width or 0) / WIDE) for p in usual]


@dataclass(frozen=True)
class Rung:
    """A rung of the ladder from simple to flexible: a learner after some more training.

    Without settings, it only leads to the next one and cannot be chosen.
    """

    settings: Settings | None
    phases: Sequence[Phase[Any, Batch]]  # training from the previous rung to this one
    prior: float = 1.0
    frozen: bool = False  # whether the noise model is fixed


def rungs(start: CrowdObjective, prior: float | str, priors: Sequence[float]) -> list[Rung]:
    """Return the initial noise model, then weaker and weaker priors: ``priors`` for "auto"."""
    phases = start.phases(1)
    if len(phases) > 1:  # each continues from the one before, with its own target
        held = 1.0 if prior == "auto" else float(prior)
        return [Rung({"rounds": n + 1}, [one], held) for n, one in enumerate(phases)]
    if not any(True for _ in start.net.noise.parameters()):
        return [Rung({}, phases)]
    chosen = priors if prior == "auto" else (float(prior),)
    plain = Rung({"prior": math.inf}, phases, 0.0, frozen=True)
    if prior not in ("auto", math.inf):
        plain = replace(plain, settings=None)
    return [plain, *[Rung({"prior": p}, phases, p) for p in chosen if p < math.inf]]


class Descent:
    """Members trained to the optimum side by side, by L-BFGS on all labels at once."""

    def __init__(self, members: Sequence[CrowdObjective], data: CrowdData, max_iter: int) -> None:
        self.ensemble, self.data, self.max_iter = side_by_side(members), data, max_iter
        self.parts = self.view = AllTasks(divide(data, members[0]))
        if members[0].sees_all:
            self.view = AllTasks(view(data, members[0]))
        self.loss: list[list[float]] = []  # per step

    def climb(self, rung: Rung) -> None:
        """Train from one rung to the next."""
        self.ensemble.train(False)  # with randomness in training there is no optimum
        self.ensemble.buffers["restraint.prior"].fill_(rung.prior / n_labels(self.data))
        for phase in rung.phases:
            if phase.expect is not None:
                self.ensemble.set_target(
                    self.view.gather(self.ensemble, on_kept_tasks(phase.expect))
                )
            self.descend(phase, rung.frozen)

    def descend(self, phase: Phase[Any, Batch], frozen: bool) -> None:
        """Minimize the loss of a phase."""
        step, n = restrained(phase.loss), len(self.ensemble)
        known = self.ensemble.parameters
        free = [p for name, p in known.items() if not (frozen and name.startswith("net.noise."))]
        sizes = [p.numel() // n for p in free]

        def put(rows: Tensor) -> None:
            with torch.no_grad():
                for p, part in zip(free, torch.split(rows, sizes, dim=1), strict=True):
                    p.copy_(part.reshape(p.shape))

        def slopes(rows: Tensor) -> tuple[Tensor, Tensor]:
            put(rows)
            loss, slope = self.parts.slopes(self.ensemble, step, free)
            return loss, stack(slope, n)

        found, path = minimize(slopes, stack([p.detach() for p in free], n), self.max_iter)
        put(found)
        self.loss += [values.tolist() for values in path]

    @torch.no_grad()
    def evidence(self) -> Tensor:
        """Return the log-likelihood of each task's labels under each member, (member, task)."""
        self.ensemble.train(False)
        return self.view.gather(self.ensemble, label_evidence).cpu()

    def select(self, members: Sequence[int]) -> None:
        """Continue with some members only."""
        self.ensemble = side_by_side([self.ensemble.member(number) for number in members])


def stack(parts: Sequence[Tensor], n: int) -> Tensor:
    """Return the numbers of each of ``n`` members in a row, (member, number)."""
    return torch.cat([part.reshape(n, -1) for part in parts], dim=1)


def label_evidence(objective: CrowdObjective, batch: Batch) -> Tensor:
    """Run the step by which members are compared."""
    return objective.label_evidence(batch)


@dataclass(frozen=True)
class Variant:
    """A penalty, the same on every rung, with a starting point."""

    penalty: float
    start: Start
    settings: Settings  # that distinguish this start from others

    def build(self, data: CrowdData, prior: float, keep: Tensor) -> CrowdObjective:
        """Build a member to be trained on the tasks to keep."""
        return restrain(self.start(keep), data, self.penalty, prior, keep)


@dataclass(frozen=True)
class Candidate:
    """A variant on a rung."""

    variant: Variant
    rung: Rung
    height: int

    @property
    def settings(self) -> dict[str, Any]:
        """Return the settings tried, by name."""
        return {
            "penalty": self.variant.penalty,
            **self.variant.settings,
            **(self.rung.settings or {}),
        }


def better(variants: Sequence[Variant], score: Floats) -> list[int]:
    """Return the best penalties of each start, since later rungs may rank starts differently."""
    starts: dict[str, list[int]] = {}
    for i in np.argsort(-score, kind="stable"):
        starts.setdefault(str(variants[i].settings), []).append(int(i))
    n_kept = KEPT if len(starts) == 1 else KEPT_EACH
    return sorted(i for some in starts.values() for i in some[:n_kept])


def choose(
    candidates: Sequence[Settings],
    plainness: Sequence[Sequence[float]],
    evidence: Floats,
    n_errors: int = 1,
) -> tuple[Search, int]:
    """Choose the simplest candidate within a standard error or more of the best.

    ``evidence`` is the log-likelihood of each candidate on each task, (candidate, task).
    """
    mean = evidence.mean(axis=1)
    best = int(mean.argmax())
    gap = evidence[best] - evidence
    error = gap.std(axis=1) / np.sqrt(max(gap.shape[1] - 1, 1))
    close = [i for i in range(len(mean)) if mean[best] - mean[i] <= n_errors * error[i]]
    taken = max(close, key=lambda i: (*plainness[i], mean[i]))
    why = f"It predicts the labels of held-out tasks best: {mean[best]:.4f} per task."
    if taken != best:
        why = (
            f"It is the simplest within {ERRORS[n_errors]} of the one that predicts the labels of "
            f"held-out tasks best: {mean[taken]:.4f} per task, {mean[best] - mean[taken]:.4f} "
            f"below the best, with an error of {error[taken]:.4f}."
        )
    tried = [dict(settings) for settings in candidates]
    return Search(tried, mean.tolist(), error.tolist(), tried[taken], why), taken


@dataclass
class Ladder:
    """Candidates for one learner: variants by rungs, on folds of tasks.

    All variants and folds are trained as one ensemble. After the first rung, the better variants
    continue; each later rung starts where the previous one ended.
    """

    data: CrowdData
    rungs: Sequence[Rung]
    variants: Sequence[Variant]

    def learn(self, rng: np.random.RandomState) -> tuple[CrowdObjective, History, Search]:
        """Choose by the labels of held-out tasks, then learn from all tasks."""
        open_rungs = [n for n, rung in enumerate(self.rungs) if rung.settings is not None]
        only = Candidate(self.variants[0], self.rungs[-1], len(self.rungs) - 1)
        search = Search(chosen=dict(only.settings), why="There was nothing to choose.")
        n_candidates = len(open_rungs) * len(self.variants)
        if n_candidates > 1 and int(self.data.labeled_tasks.sum()) > 1:
            candidates, evidence = self.climb(deal(self.data, rng))
            plainness = [(c.variant.penalty, -c.height) for c in candidates]
            search, taken = choose([c.settings for c in candidates], plainness, evidence)
            only = candidates[taken]
        keep = torch.ones(self.data.n_tasks, device=self.data.device)
        member = only.variant.build(self.data, self.rungs[0].prior, keep)
        # In double precision: if the optimum is flat, rounding would decide where to stop.
        run = Descent([member.double()], self.data.double(), FINAL_STEPS)
        for rung in self.rungs[: only.height + 1]:
            run.climb(rung)
        return run.ensemble.member(0).float().eval(), History(run.loss), search

    def climb(self, fold: Ints) -> tuple[list[Candidate], Floats]:
        """Train all candidates; return them with the held-out log-likelihood of every task."""
        variants, tried, evidence = list(self.variants), [], []
        runs = [(some, self.run(fold, some)) for some in self.groups(fold)]
        for height, rung in enumerate(self.rungs):
            found = np.zeros((len(variants), self.data.n_tasks))
            for some, run in runs:
                run.climb(rung)
                values = run.evidence().reshape(len(variants), len(some), -1).double().numpy()
                for at, f in enumerate(some):
                    found[:, fold == f] = values[:, at, fold == f]
            found = np.nan_to_num(found[:, fold >= 0], nan=-np.inf)
            if rung.settings is not None:
                tried += [Candidate(variant, rung, height) for variant in variants]
                evidence.append(found)
            if height == 0:
                best = better(variants, found.mean(axis=1))
                variants = [variants[i] for i in best]
                for some, run in runs:
                    run.select([i * len(some) + f for i in best for f in range(len(some))])
        return tried, np.concatenate(evidence)

    def run(self, fold: Ints, some: Sequence[int]) -> Descent:
        """Train all variants on some of the folds."""
        keep = [torch.as_tensor(fold != f) for f in some]
        prior = self.rungs[0].prior
        members = [v.build(self.data, prior, k) for v in self.variants for k in keep]
        return Descent(members, self.data, SEARCH_STEPS)

    def groups(self, fold: Ints) -> list[list[int]]:
        """Return folds that are trained together: all of them, unless memory is short."""
        folds = list(range(int(fold.max()) + 1))
        cells = self.data.n_annotations * self.data.n_classes**2 * len(self.variants)
        at_once = max(1, CELLS_AT_ONCE // max(cells, 1))
        return [folds[i : i + at_once] for i in range(0, len(folds), at_once)]
