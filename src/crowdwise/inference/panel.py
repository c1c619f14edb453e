"""A panel of judges who err together: how far to trust it, with or without gold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.special import expit, logit

from crowdwise.inference.averaged_logits import Average, average_priors
from crowdwise.inference.factors import guess_families, score_factors, weigh_judges
from crowdwise.inference.ratings import Correlations, Ratings
from crowdwise.inference.steepness import Votes, match_mean, measure_overlap
from crowdwise.typing import Floats, Ints


@dataclass(frozen=True)
class Scale:
    """The ratings of one view: standardized, with copies of a judge joined."""

    mean: Floats  # (worker,)
    deviation: Floats  # (worker,)
    group: Ints  # (worker,)
    table: csr_array  # (task, group)
    correlation: Floats  # (group, group)

    @classmethod
    def of(cls, ratings: Ratings, view: int) -> Scale:
        mean, deviation = ratings.by_judge(view)
        each = ratings.standardize(view, mean, deviation)
        group = Correlations.of(each).clones()
        rated = np.bincount(each.worker, minlength=len(group)) > 0
        if not rated.all():  # a judge without ratings joins the first group
            group = np.where(rated, group, group[rated.argmax()])
            group = np.unique(group, return_inverse=True)[1]
        joined = each.join(group)
        return cls(mean, deviation, group, joined.table(), Correlations.of(joined).shrink())

    def name_families(self, family: Ints | None) -> Ints:
        """Number each group's family, from 0: that of most of its members."""
        n_groups = len(self.correlation)
        if family is None:
            found = guess_families(self.correlation, self.table.shape[0])
        else:
            size = np.bincount(family)
            by_size = np.lexsort([-size[family], self.group])  # copies join the larger family
            first = np.unique(self.group[by_size], return_index=True)[1]
            found = family[by_size][first]
        if len(np.unique(found)) < 2:
            return np.arange(n_groups)
        return np.unique(found, return_inverse=True)[1]

    def fit(self, ratings: Ratings, column: int, family: Ints, target: Floats) -> Panel:
        """Weight the judges, and determine how confident the panel may be about one cut."""
        votes, n_tasks = ratings.take(column).join(self.group), self.table.shape[0]
        rate = float(votes.value.mean())
        known = float(target[0])
        if len(self.correlation) > 1:
            weight = weigh_judges(self.correlation, family, n_tasks)
            score = self.table @ weight
            own = csr_array((weight, (np.arange(len(weight)), family)))
            without = score[:, None] - (self.table @ own).toarray()
            over = Votes.of(votes.table(), without, family)
            gentle, start = over.fit_slope()
            if gentle > 0:
                steep, offset = over.fit_bounded(gentle, start)
                steep = max(steep, gentle)
                sure = expit(steep * score + offset)
                standard = votes.standardize(0, *votes.by_judge(0)).table()
                blur = measure_overlap(standard, sure, family)
                slope = steep ** (1 - blur) * gentle**blur
                mean = (1 - blur) * sure.mean() + blur * rate if np.isnan(known) else known
                shift = match_mean(slope * score, float(np.clip(mean, 1e-6, 1 - 1e-6)))
                caution = blur / 2 if np.isnan(known) else 0.0
                return Panel.single(self, slope * weight, shift, caution)
        return self.guess(votes, rate if np.isnan(known) else known)

    def guess(self, votes: Ratings, rate: float) -> Panel:
        """Return half the votes and half the rate, if no two judges rate the same tasks."""
        rate = float(np.clip(rate, 1e-6, 1 - 1e-6))
        low, high = logit(rate / 2), logit((1 + rate) / 2)
        mean, deviation = votes.by_judge(0)
        coef = (high - low) * deviation / max(len(mean), 1)
        return Panel.single(self, coef, low + (high - low) * float(mean.mean()))


@dataclass(frozen=True)
class Panel:
    """Log-odds of one cut, linear in 1 and the ratings; several if priors are averaged."""

    scale: Scale
    odds: Average  # columns: 1, then one per group of judges
    caution: float = 0.0  # weight of plain votes if ratings tell no more

    @classmethod
    def single(cls, scale: Scale, coef: Floats, intercept: float, caution: float = 0.0) -> Panel:
        coef = np.append(intercept, coef)[None]
        return cls(scale, Average(np.ones(1), coef, np.zeros((*coef.shape, 0))), caution)

    def learn(self, tasks: Ints, yes: Floats, accuracy: float) -> Panel:
        """Learn from gold, starting from the panel's log-odds without it."""
        factors = score_factors(self.scale.correlation)
        n_judges, n_factors = factors.shape
        one = np.eye(1 + n_judges)
        to_factors = np.concatenate([np.zeros((1, n_factors)), factors])
        map = np.column_stack([one[:, :1], self.odds.coef[0], to_factors, one[:, 1:]])
        columns = np.insert(self.scale.table[tasks].toarray(), 0, 1.0, axis=1)
        found = average_priors(columns @ map, yes, n_factors, accuracy)
        return Panel(self.scale, found.turn(map))
