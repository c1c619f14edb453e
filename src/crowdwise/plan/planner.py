"""The planner: which tasks need another label, from whom, and which are done."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from crowdwise.aggregate import BayesBag
from crowdwise.annotations import Annotations, drop_weightless
from crowdwise.annotations.names import locate
from crowdwise.base import Aggregator, at_least, between
from crowdwise.base.params import check_params
from crowdwise.errors import ParameterError, explain
from crowdwise.inference.simplex import clamp
from crowdwise.io import as_annotations, as_gold
from crowdwise.plan.assign import Desk
from crowdwise.plan.forecast import count_labels, imagine
from crowdwise.plan.outlook import Outlook, infer
from crowdwise.plan.policies import FewestLabels, InformationGain, Policy
from crowdwise.plan.prices import as_amount, list_prices, mean_price, read_offers
from crowdwise.plan.promise import Promise, find_done, soften
from crowdwise.plan.skills import PlainSkills, Skills
from crowdwise.typing import AnnotationsLike, Array, Floats, GoldLike, Ints, Names, RandomState

LARGE = 200_000  # annotations above which a single fit is used instead of a bag
N_BAGS = 20  # as good as more for planning, and fast enough to plan after every label


class Planner(BaseEstimator):
    """Plan the labels of a crowd: the next ones, and when to stop.

    Parameters
    ----------
    model : Aggregator, optional
        Infers truths from the labels so far. By default ``BayesBag(n_bags=20)``,
        whose confidence is calibrated; for more than 200,000 annotations, its base alone.
        The value of more labels is judged by the mean of its base and one-coin models, since
        a bag's answer, which allows for errors of the model, does not show which workers it
        was learned from.
    policy : Policy, optional
        How much a label is worth; by default :class:`~crowdwise.plan.InformationGain`.
    cost : float or mapping from worker to float, default=1
        Price of a label. Gains are compared per cost.
    target : float, default=0.95
        The share of labels that should be right. No labels are asked for on done tasks.
    min_labels : int, default=2
        Minimum number of labels per task before the policy chooses, and before the task can be
        done: a single label cannot be checked by others.
    checks : float, optional
        Share of the budget for labels of tasks with a known truth, to watch the workers. By
        default these are labeled as if their truths were unknown: only then do they show how
        often the others are right, and can confirm a promise.
    evenly : float, default=0
        Share of the budget that goes to the tasks with the fewest labels, whatever the policy
        says. By default only the gains decide; these count less, the more labels a task has, so
        that no task is left behind for long.
    skills : Skills, optional
        How well workers would do on tasks, if certain workers are available: by default
        :class:`~crowdwise.plan.PlainSkills`, estimated from their labels so far. With
        features, :class:`~crowdwise.plan.FeatureSkills` tells which tasks they are good at.

    Attributes
    ----------
    outlook_ : Outlook
        The basis of the last plan.

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
        evenly: float = 0.0,
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
        """Infer the current state of the tasks, from all labels so far.

        Parameters
        ----------
        annotations : Annotations, frame, array, dict or path
            All labels so far; declared tasks without labels are allowed.
        gold : mapping, Series, frame or array, optional
            Known truths of some tasks. Their labels show how far the others can be trusted.
        """
        check_params(self)
        votes = drop_weightless(as_annotations(annotations))
        if not votes.n_tasks or not votes.n_classes:
            fix = "declare them when the annotations are made, with tasks=[…] and classes=[…]"
            raise ParameterError(
                explain("There are no tasks, or no classes, to plan for.", fix=fix)
            )
        codes = None if gold is None else as_gold(gold, votes)
        self.outlook_ = Outlook(votes, self._infer(votes, codes), codes)
        blind = self.outlook_ if codes is None else Outlook(votes, self._infer(votes, None))
        if self.model is not None:
            return self._see(blind, self.outlook_.posterior, blind.posterior)
        return self._see(blind, self.outlook_.independent, blind.independent)

    def take(self, votes: Annotations, posterior: Floats, gold: Ints | None = None) -> Planner:
        """Take over a model's results, without fitting it again.

        Parameters
        ----------
        votes, posterior : Annotations and array of shape (n_tasks, n_classes)
            All labels so far, and P(truth) without any gold.
        gold : array of shape (n_tasks,), optional
            Class numbers of known truths, -1 for none.
        """
        check_params(self)
        votes = drop_weightless(votes)
        refuse_misfit(posterior, votes)
        self.outlook_ = Outlook(votes, clamp(posterior, gold), gold)
        return self._see(Outlook(votes, posterior), self.outlook_.posterior, posterior)

    def _see(self, blind: Outlook, informed: Floats, alone: Floats) -> Planner:
        """Compare with the labels alone; plan by the posteriors with and without gold."""
        seen = self.outlook_
        self._soft = soften(blind)
        self._right = None if seen.gold is None else judge(blind.posterior, seen.gold)
        as_others = seen.known[:, None] & (
            self.checks is None
        )  # known ones are labeled like the others
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
        """Plan the labels to ask for next, best first.

        Parameters
        ----------
        annotations, gold
            As in :meth:`look`.
        budget : float, default=100
            Total amount they may cost.
        available : list of workers, or frame with the columns task and worker, optional
            Available workers. Each gets tasks that the worker has not labeled, and those of a
            list at most twice an even share. A frame has the pairs that can be asked for, if not
            everyone may label everything. By default anyone may label, and no worker is named.
        tasks : list of tasks, optional
            Tasks that may be labeled; by default all that are not done.

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
        """Do :meth:`next` with the labels of the last :meth:`look`."""
        self._require_outlook()
        budget = as_amount(budget, "budget")
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
        """Find the tasks that need no more labels, and how many of their labels are right.

        These are as many tasks as possible for which known truths show that ``target`` of the
        labels are right. This takes 44 truths of tasks drawn at random for 0.9, 90 for 0.95, 459
        for 0.99; more if some of the labels are wrong, or if there are few tasks
        (``truths_needed(0.99, 1_000)`` is 683). With fewer, they are as many tasks as
        the labels lead to expect, and nothing is promised: labels alone cannot show errors that
        most workers share.
        """
        self._require_outlook()
        right = (
            self._right if self.checks is None else None
        )  # otherwise they were labeled separately
        return find_done(self.outlook_, self._soft, self.target, self.min_labels, right)

    def forecast(
        self, budget: float, *, n_draws: int = 20, random_state: RandomState = 0
    ) -> pd.DataFrame:
        """Forecast the accuracy of all labels after spending up to ``budget`` on them.

        Truths are drawn from the posterior, labels from the crowd's confusion matrix, and the
        policy chooses the tasks, ``n_draws`` times.

        Returns
        -------
        DataFrame
            ``cost``, the expected ``accuracy``, and ``low`` and ``high`` ends of 90% of draws.
        """
        self._require_outlook()
        rng, price = check_random_state(random_state), mean_price(self.cost)
        n_labels = count_labels(as_amount(budget, "budget") / price, self.outlook_)
        start = self.outlook_.with_posterior(self._soft)
        draws = np.array([imagine(start, self._policy, n_labels, rng) for _ in range(n_draws)])
        spent = np.linspace(0, n_labels, draws.shape[1]).round() * price
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
        """Return which tasks get no more labels."""
        tasks, known = self.done().tasks.index, self.outlook_.known
        done = np.zeros(len(known), dtype=bool)
        done[locate(self.outlook_.votes.tasks, tasks.to_numpy())] = True
        if (
            self.checks is None and known.any()
        ):  # including known ones, once they are as certain as others
            sure, others = self._soft.max(axis=1), done & ~known
            least = sure[others].min(initial=np.inf)
            done = others | (known & (sure >= least) & (self.outlook_.n_labels >= self.min_labels))
        return done

    def _spend(
        self, policy: Policy, may: Array, budget: float, available: Names | pd.DataFrame | None
    ) -> pd.DataFrame:
        """Choose the best labels of some tasks for a budget."""
        desk = Desk(self._ahead, policy, may, self.min_labels, self.evenly)
        if available is None:
            return desk.by_anyone(budget, mean_price(self.cost))
        skills = PlainSkills() if self.skills is None else self.skills
        if isinstance(available, pd.DataFrame):
            offers = read_offers(available)
            prices = list_prices(self.cost, offers["worker"])
            return desk.by_offers(budget, prices, skills, offers)
        return desk.by_workers(budget, list_prices(self.cost, available), skills)

    def _require_outlook(self) -> None:
        if not hasattr(self, "outlook_"):
            raise ParameterError(
                explain(
                    "The planner has not seen any labels yet.",
                    fix="call look(annotations) or next(annotations) first",
                )
            )


def judge(posterior: Floats, gold: Ints) -> Floats:
    """Return whether each task's label is right, NaN if the truth is unknown."""
    return np.where(gold >= 0, (posterior.argmax(axis=1) == gold).astype(np.float64), np.nan)


def refuse_misfit(posterior: Floats, votes: Annotations) -> None:
    """Refuse anything but a probability of each class for each task."""
    if np.shape(posterior) != (votes.n_tasks, votes.n_classes) or not np.isfinite(posterior).all():
        raise ParameterError(
            explain(
                f"posterior has shape {np.shape(posterior)}, or is not finite.",
                expected=f"finite numbers in the shape {(votes.n_tasks, votes.n_classes)}",
                fix="give P(truth) of every task, in the order of annotations.tasks",
            )
        )
