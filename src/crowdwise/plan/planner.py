"""The planner: which tasks need another label, from whom, and which are done."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from crowdwise.aggregate import BayesBag
from crowdwise.annotations import Annotations
from crowdwise.annotations.names import locate
from crowdwise.base import Aggregator, at_least, between
from crowdwise.base.params import check_params
from crowdwise.errors import ParameterError, explain
from crowdwise.inference.simplex import clamp
from crowdwise.io import as_annotations, as_gold
from crowdwise.plan.assign import FREE, Desk
from crowdwise.plan.forecast import imagine
from crowdwise.plan.outlook import Outlook, infer
from crowdwise.plan.policies import FewestLabels, InformationGain, Policy
from crowdwise.plan.promise import Promise, find_done, soften
from crowdwise.plan.skills import PlainSkills, Skills
from crowdwise.typing import AnnotationsLike, Array, Floats, GoldLike, Ints, Names, RandomState

LARGE = 200_000  # annotations beyond which one fit has to do, instead of a bag of them
N_BAGS = 20  # as sure of tasks as more, and quick enough to be asked after every label


class Planner(BaseEstimator):
    """Plan the labels of a crowd: the next ones, and when to stop.

    Parameters
    ----------
    model : Aggregator, optional
        What infers truths from the labels so far. By default ``BayesBag(n_bags=20)``,
        whose confidence means what it says; for more than 200,000 annotations its base alone.
        Where labels would tell most is judged by the mean of its base and one-coin models: an
        answer that leaves room for errors of the model hides from which worker it has been
        learned.
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
    evenly : float, default=0.3
        Share of the budget that goes to the tasks with the fewest labels, whatever the policy
        says of them: where the model is wrong about what is in doubt, no task is left behind.
    skills : Skills, optional
        How well workers would do on tasks, where some are available: by default
        :class:`~crowdwise.plan.PlainSkills`, what their labels so far say of them. With
        features, :class:`~crowdwise.plan.FeatureSkills` tells which tasks they are good at.

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
        "evenly": [between(0.0, 1.0)],
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
        evenly: float = 0.3,
        skills: Skills | None = None,
    ) -> None:
        self.model = model
        self.policy = policy
        self.cost = cost
        self.target = target
        self.min_labels = min_labels
        self.checks = checks
        self.evenly = evenly
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
        if self.model is not None:
            return self._see(blind, self.outlook_.posterior, blind.posterior)
        return self._see(blind, self.outlook_.independent, blind.independent)

    def take(self, votes: Annotations, posterior: Floats, gold: Ints | None = None) -> Planner:
        """Take over what a model has made of the labels, without fitting it again.

        Parameters
        ----------
        votes, posterior : Annotations and array of shape (n_tasks, n_classes)
            All labels so far and P(truth), without any gold.
        gold : array of shape (n_tasks,), optional
            Class numbers of known truths, -1 for none.
        """
        check_params(self)
        self.outlook_ = Outlook(votes, clamp(posterior, gold), gold)
        return self._see(Outlook(votes, posterior), self.outlook_.posterior, posterior)

    def _see(self, blind: Outlook, informed: Floats, alone: Floats) -> Planner:
        """Compare with what labels alone say; plan by the posteriors with and without gold."""
        seen = self.outlook_
        self._soft = soften(blind)
        self._right = None if seen.gold is None else judge(blind.posterior, seen.gold)
        as_others = seen.known[:, None] & (self.checks is None)  # known ones are labeled alike
        self._ahead = seen.with_posterior(np.where(as_others, alone, informed))
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

        The most tasks for which known truths show that ``target`` of the labels are right:
        44 of tasks drawn at random for 0.9, 90 for 0.95, 459 for 0.99, or more where some of
        the labels are wrong. With fewer, the most tasks for which the labels lead to expect it,
        and nothing is promised: labels alone cannot tell where most workers err together.
        """
        self._require_outlook()
        right = self._right if self.checks is None else None  # else they were labeled apart
        return find_done(self.outlook_, self._soft, self.target, self.min_labels, right)

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
        start = self.outlook_.with_posterior(self._soft)
        draws = np.array([imagine(start, self._policy, n_labels, rng) for _ in range(n_draws)])
        spent = np.linspace(0, n_labels, draws.shape[1]).round() * self._mean_cost
        low, high = np.quantile(draws, [0.05, 0.95], axis=0)
        table = {"cost": spent, "accuracy": draws.mean(axis=0), "low": low, "high": high}
        return pd.DataFrame(table)

    # -- parts -------------------------------------------------------------------------

    @property
    def _policy(self) -> Policy:
        return InformationGain() if self.policy is None else self.policy

    def _infer(self, votes: Annotations, gold: Ints | None) -> Floats:
        large = votes.n_annotations > LARGE
        default = BayesBag.default_base if large else BayesBag(n_bags=N_BAGS)
        return infer(self.model or default, votes, gold)

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
        desk = Desk(self._ahead, policy, may, self.min_labels, self.evenly)
        if available is None:
            return desk.by_anyone(budget, self._mean_cost)
        skills = PlainSkills() if self.skills is None else self.skills
        if isinstance(available, pd.DataFrame):
            price = self._prices(pd.unique(available["worker"]))
            return desk.by_offers(budget, price, skills, available)
        return desk.by_workers(budget, self._prices(available), skills)

    @property
    def _mean_cost(self) -> float:
        """What a label costs, on the average of workers."""
        costs = list(self.cost.values()) if isinstance(self.cost, Mapping) else [self.cost]
        return max(float(np.mean(costs)), FREE)

    def _prices(self, available: Names) -> pd.Series:
        """What a label by each worker costs, by worker."""
        names = list(available)
        cost = self.cost if isinstance(self.cost, Mapping) else dict.fromkeys(names, self.cost)
        missing = [name for name in names if name not in cost]
        if missing:
            raise ParameterError(
                explain(
                    f"There is no cost of the worker {missing[0]!r}.",
                    expected="a cost of every worker who is available",
                    fix="add its cost, or leave the worker out of available",
                )
            )
        prices = [max(float(cost[name]), FREE) for name in names]
        return pd.Series(prices, index=pd.Index(names, tupleize_cols=False), dtype=np.float64)

    def _require_outlook(self) -> None:
        if not hasattr(self, "outlook_"):
            raise ParameterError(
                explain(
                    "The planner has not seen any labels yet.",
                    fix="call look(annotations) or next(annotations) first",
                )
            )


def judge(posterior: Floats, gold: Ints) -> Floats:
    """Whether each task's label is right, NaN where the truth is not known."""
    return np.where(gold >= 0, (posterior.argmax(axis=1) == gold).astype(np.float64), np.nan)
