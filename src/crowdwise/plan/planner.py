"""The planner: which tasks need another label, from whom, and which are done."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state

from crowdwise.aggregate import BayesBag, MajorityVote
from crowdwise.annotations import Annotations
from crowdwise.annotations.names import locate
from crowdwise.base import Aggregator, at_least, between
from crowdwise.base.params import check_params
from crowdwise.errors import ParameterError, explain
from crowdwise.inference.simplex import clamp
from crowdwise.io import as_annotations, as_gold
from crowdwise.plan.assign import Pairs, choose, pair_up, value_pairs
from crowdwise.plan.outlook import Outlook
from crowdwise.plan.policies import FewestLabels, InformationGain, Policy
from crowdwise.plan.promise import Promise, find_done, soften
from crowdwise.plan.skills import PlainSkills, Skills
from crowdwise.typing import AnnotationsLike, Array, Floats, GoldLike, Ints, Names, RandomState

FREE = 1e-9  # what a label costs at least
LARGE = 200_000  # annotations beyond which one fit has to do, instead of a bag of them
N_BAGS = 20  # as sure of tasks as more, and quick enough to be asked after every label


class Planner(BaseEstimator):
    """Plan the labels of a crowd: the next ones, and when to stop.

    Parameters
    ----------
    model : Aggregator, optional
        What infers truths from the labels so far. By default ``BayesBag(n_bags=20)``,
        whose confidence means what it says; for more than 200,000 annotations its base alone.
    policy : Policy, optional
        How much a label is worth; by default :class:`~crowdwise.plan.InformationGain`.
    cost : float or mapping from worker to float, default=1
        What a label costs. Gains are compared per cost.
    target : float, default=0.95
        The share of labels that should be right. Tasks that are done are left alone.
    min_labels : int, default=2
        Labels that every task gets before the policy chooses, and before it can be done: a
        single label cannot be checked by others.
    checks : float, optional
        Share of the budget for labels of tasks whose truth is known, to watch the workers. By
        default they are labeled as if nothing were known of them: only then do they show how
        right the others are, and can check a promise.
    skills : Skills, optional
        How well workers would do on tasks, where some are available: by default
        :class:`~crowdwise.plan.PlainSkills`, what their labels so far say of them.

    Attributes
    ----------
    outlook_ : Outlook
        What the last plan was made from.

    Examples
    --------
    >>> votes = {"q1": {"ann": "a", "bob": "a"}, "q2": {"ann": "a", "bob": "b"}}
    >>> Planner().next(votes, budget=1)["task"].tolist()
    ['q2']
    """

    _parameter_constraints = {
        "model": [Aggregator, None],
        "policy": [Policy, None],
        "cost": [between(0.0, np.inf), Mapping],
        "target": [between(0.0, 1.0)],
        "min_labels": [at_least(1)],
        "checks": [between(0.0, 1.0), None],
        "skills": [Skills, None],
    }

    def __init__(
        self,
        model: Aggregator | None = None,
        *,
        policy: Policy | None = None,
        cost: float | Mapping[Hashable, float] = 1.0,
        target: float = 0.95,
        min_labels: int = 2,
        checks: float | None = None,
        skills: Skills | None = None,
    ) -> None:
        self.model = model
        self.policy = policy
        self.cost = cost
        self.target = target
        self.min_labels = min_labels
        self.checks = checks
        self.skills = skills

    def look(self, annotations: AnnotationsLike, gold: GoldLike = None) -> Planner:
        """Infer where the tasks stand, from all labels so far.

        Parameters
        ----------
        annotations : Annotations, frame, array, dict or path
            All labels so far; tasks without any may be among the declared ones.
        gold : mapping, Series, frame or array, optional
            Known truths of some tasks. Their labels show how far the others can be trusted.
        """
        check_params(self)
        votes = as_annotations(annotations)
        codes = None if gold is None else as_gold(gold, votes)
        self.outlook_ = Outlook(votes, self._infer(votes, codes), codes)
        blind = self.outlook_ if codes is None else Outlook(votes, self._infer(votes, None))
        return self._see(blind)

    def take(self, votes: Annotations, posterior: Floats, gold: Ints | None = None) -> Planner:
        """Take over what a model has made of the labels, such as a live one, without a fit.

        Parameters
        ----------
        votes, posterior : Annotations and array of shape (n_tasks, n_classes)
            All labels so far and P(truth), without any gold.
        gold : array of shape (n_tasks,), optional
            Class numbers of known truths, -1 for none.
        """
        check_params(self)
        self.outlook_ = Outlook(votes, clamp(posterior, gold), gold)
        return self._see(Outlook(votes, posterior))

    def _see(self, blind: Outlook) -> Planner:
        """Compare with what the labels alone say."""
        seen = self.outlook_
        self._soft = soften(blind)
        self._right = None if seen.gold is None else judge(blind.posterior, seen.gold)
        self._ahead = seen
        if seen.gold is not None and self.checks is None:
            open_ = np.where(seen.known[:, None], blind.posterior, seen.posterior)
            self._ahead = Outlook(seen.votes, open_)
        return self

    def next(
        self,
        annotations: AnnotationsLike,
        budget: float = 100,
        *,
        available: Names | pd.DataFrame | None = None,
        tasks: Names | None = None,
        gold: GoldLike = None,
    ) -> pd.DataFrame:
        """The labels to ask for next, best first.

        Parameters
        ----------
        annotations, gold
            As in :meth:`look`.
        budget : float, default=100
            What they may cost together.
        available : list of workers, or frame with the columns task and worker, optional
            Who is there. Each gets tasks that the worker has not labeled, at most twice an
            even share. A frame has the pairs that can be asked for, where not everyone may
            label everything. By default anyone may come, and no worker is named.
        tasks : list of tasks, optional
            Which tasks may be labeled; by default all that are not done.

        Returns
        -------
        DataFrame
            Columns ``task``, ``worker`` (None for anyone), ``gain`` and ``cost``.
        """
        return self.look(annotations, gold).spend(budget, available=available, tasks=tasks)

    def spend(
        self,
        budget: float = 100,
        *,
        available: Names | pd.DataFrame | None = None,
        tasks: Names | None = None,
    ) -> pd.DataFrame:
        """As :meth:`next`, from the labels that were looked at last."""
        self._require_outlook()
        may = np.ones(self.outlook_.votes.n_tasks, dtype=bool)
        if tasks is not None:
            found = locate(self.outlook_.votes.tasks, tasks)
            may = np.isin(np.arange(len(may)), found[found >= 0])
        known = self.outlook_.known
        share = (self.checks or 0.0) if (known & may).any() else 0.0
        plan = self._spend(self._policy, may & ~self._is_done(), (1 - share) * budget, available)
        if not share:
            return plan
        watch = self._spend(FewestLabels(), may & known, share * budget, available)
        return pd.concat([plan, watch], ignore_index=True)

    def done(self) -> Promise:
        """The tasks that need no more labels, and how many of their labels are right.

        The most tasks for which the lower end of the share that is right reaches ``target``: by
        posteriors that were softened until they predict held-out labels, and by known truths
        where there are some. Labels alone cannot tell where most workers err together.
        """
        self._require_outlook()
        right, alike = self._right, self.checks is None
        return find_done(self.outlook_, self._soft, self.target, self.min_labels, right, alike)

    def forecast(
        self, budget: float, *, n_draws: int = 20, random_state: RandomState = 0
    ) -> pd.DataFrame:
        """How accurate all labels will be after spending up to ``budget`` on them.

        Truths are drawn from what is known, labels from the crowd's confusion matrix, and the
        policy chooses the tasks, ``n_draws`` times.

        Returns
        -------
        DataFrame
            ``cost``, the expected ``accuracy``, and ``low`` and ``high`` ends of 90% of draws.
        """
        self._require_outlook()
        rng = check_random_state(random_state)
        n_labels = int(budget / self._mean_cost + 1e-9)
        draws = np.array([self._imagine(n_labels, rng) for _ in range(n_draws)])
        spent = np.linspace(0, n_labels, draws.shape[1]).round() * self._mean_cost
        low, high = np.quantile(draws, [0.05, 0.95], axis=0)
        table = {"cost": spent, "accuracy": draws.mean(axis=0), "low": low, "high": high}
        return pd.DataFrame(table)

    # -- parts -------------------------------------------------------------------------

    @property
    def _policy(self) -> Policy:
        return InformationGain() if self.policy is None else self.policy

    def _infer(self, votes: Annotations, gold: Ints | None) -> Floats:
        if not votes.n_annotations:
            return np.full((votes.n_tasks, votes.n_classes), 1.0 / max(votes.n_classes, 1))
        model: Aggregator = MajorityVote()
        if self.model is not None:
            model = clone(self.model)
        else:
            large = votes.n_annotations > LARGE
            model = clone(BayesBag.default_base) if large else BayesBag(n_bags=N_BAGS)
        known = None
        if gold is not None:
            at = gold >= 0
            known = dict(zip(votes.tasks[at].tolist(), votes.classes[gold[at]], strict=True))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.asarray(model.fit(votes, known).posterior_)

    def _is_done(self) -> Array:
        """The tasks that get no more labels."""
        tasks, known = self.done().tasks.index, self.outlook_.known
        done = np.zeros(len(known), dtype=bool)
        done[locate(self.outlook_.votes.tasks, tasks.to_numpy())] = True
        if self.checks is None and known.any():  # known ones too, once they are as sure as others
            sure, others = self._soft.max(axis=1), done & ~known
            least = sure[others].min(initial=np.inf)
            done = others | (known & (sure >= least) & (self.outlook_.n_labels >= self.min_labels))
        return done

    def _spend(
        self, policy: Policy, may: Array, budget: float, available: Names | pd.DataFrame | None
    ) -> pd.DataFrame:
        """The best labels of some tasks for a budget."""
        votes, few = self._ahead.votes, self._ahead.n_labels < self.min_labels
        if available is not None:
            return self._ask(policy, may, budget, available)
        gain = policy.gain(self._ahead)
        order = np.lexsort((-gain, ~few))
        order = order[may[order]]
        n = int(budget / self._mean_cost + 1e-9)
        rows = np.resize(order, n) if len(order) else order  # once more where there is money left
        columns = {"worker": None, "gain": gain[rows], "cost": self._mean_cost}
        return pd.DataFrame({"task": votes.tasks[rows], **columns})

    def _ask(
        self, policy: Policy, may: Array, budget: float, available: Names | pd.DataFrame
    ) -> pd.DataFrame:
        """The best labels of some tasks by some workers."""
        outlook = self._ahead
        votes, few = outlook.votes, outlook.n_labels < self.min_labels
        offered = available if isinstance(available, pd.DataFrame) else None
        costs = self._costs(available if offered is None else pd.unique(offered["worker"]))
        price = np.maximum(costs.to_numpy(dtype=np.float64), FREE)
        workers = locate(votes.workers, costs.index)
        n_labels = int(budget / price.min(initial=np.inf) + 1e-9)
        if offered is None:
            order = np.lexsort((-policy.gain(outlook), ~few))
            pairs = pair_up(outlook, order[may[order]], workers, n_labels)
        else:
            task = locate(votes.tasks, offered["task"].to_numpy())
            pairs = Pairs(task, locate(costs.index.to_numpy(), offered["worker"].to_numpy()))
            pairs = pairs[(task >= 0) & may[task]]
        limit = None if offered is not None else -(-2 * n_labels // max(len(price), 1))
        skills = PlainSkills() if self.skills is None else self.skills
        gain = value_pairs(outlook, policy, skills, pairs, workers)
        order = np.lexsort((-gain / price[pairs.row], ~few[pairs.task]))
        chosen = choose(pairs, order, price, budget, limit)
        row = pairs.row[chosen]
        return pd.DataFrame(
            {
                "task": votes.tasks[pairs.task[chosen]],
                "worker": costs.index.to_numpy()[row],
                "gain": gain[chosen],
                "cost": price[row],
            }
        )

    @property
    def _mean_cost(self) -> float:
        """What a label costs, on the average of workers."""
        costs = list(self.cost.values()) if isinstance(self.cost, Mapping) else [self.cost]
        return max(float(np.mean(costs)), FREE)

    def _costs(self, available: Names) -> pd.Series:
        names = list(available)
        if not isinstance(self.cost, Mapping):
            return pd.Series(float(self.cost), index=pd.Index(names, tupleize_cols=False))
        missing = [name for name in names if name not in self.cost]
        if missing:
            raise ParameterError(
                explain(
                    f"There is no cost of the worker {missing[0]!r}.",
                    expected="a cost of every worker who is available",
                    fix="add its cost, or leave the worker out of available",
                )
            )
        prices = [float(self.cost[name]) for name in names]
        return pd.Series(prices, index=pd.Index(names, tupleize_cols=False))

    def _imagine(self, n_labels: int, rng: np.random.RandomState) -> list[float]:
        """The accuracy after each tenth of the labels, in one imagined course of events."""
        posterior, crowd = self._soft.copy(), self.outlook_.crowd
        truth = (rng.random_sample(len(posterior))[:, None] > posterior.cumsum(axis=1)).sum(axis=1)
        truth = np.minimum(truth, posterior.shape[1] - 1)
        levels, extra = crowd.cumsum(axis=1), np.zeros(len(posterior), dtype=np.int64)
        found = [float((posterior.argmax(axis=1) == truth).mean())]
        for part in np.diff(np.linspace(0, n_labels, 11).round().astype(int)):
            view = Imagined(self.outlook_.votes, posterior, self.outlook_.gold, extra)
            order = np.argsort(-self._policy.gain(view), kind="stable")[:part]
            draw = rng.random_sample(len(order))[:, None]
            label = np.minimum((draw > levels[truth[order]]).sum(axis=1), len(crowd) - 1)
            after = posterior[order] * crowd[:, label].T
            posterior[order] = after / after.sum(axis=1, keepdims=True)
            extra[order] += 1
            found.append(float((posterior.argmax(axis=1) == truth).mean()))
        return found

    def _require_outlook(self) -> None:
        if not hasattr(self, "outlook_"):
            raise ParameterError(
                explain(
                    "The planner has not seen any labels yet.",
                    fix="call look(annotations) or next(annotations) first",
                )
            )


class Imagined(Outlook):
    """An outlook with imagined labels: only their numbers are known."""

    def __init__(
        self, votes: Annotations, posterior: Floats, gold: Ints | None, extra: Ints
    ) -> None:
        super().__init__(votes, posterior, gold)
        object.__setattr__(self, "extra", extra)

    @property
    def n_labels(self) -> Ints:
        return np.asarray(self.votes.redundancy + vars(self)["extra"])


def judge(posterior: Floats, gold: Ints) -> Floats:
    """Whether each task's label is right, NaN where the truth is not known."""
    return np.where(gold >= 0, (posterior.argmax(axis=1) == gold).astype(np.float64), np.nan)
