"""JudgePanel: judges who err together, weighted by what families have in common."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from crowdwise.annotations import Annotations
from crowdwise.annotations.order import as_numbers
from crowdwise.base import Aggregator, Traits, between, by_worker, one_of
from crowdwise.errors import AnnotationError, FormatError, ParameterError, explain
from crowdwise.inference import Engine, normalize
from crowdwise.inference.averaged_logits import Average
from crowdwise.inference.panel import Panel, Scale
from crowdwise.inference.ratings import Ratings
from crowdwise.typing import Array, Floats, Ints

MOST_JUDGES = 1000
NEAR = 0.9  # share of the distance by chance below which differing labels are on a scale


class JudgePanel(Aggregator):
    """Infer truths from judges whose errors are dependent, such as language models.

    Judges who err together agree for the wrong reasons, and models of independent workers mistake
    that for skill. Here a judge counts by what it has in common with the whole panel beyond its
    own family (the main factor of all ratings), copies of a judge count once, and the panel's
    confidence is learned from how well the others predict one family's votes. Scores
    (``annotations.score``) are used if there are any, and labels otherwise. Some gold labels
    calibrate the panel and refine the weights of its judges.

    Parameters
    ----------
    families : mapping from worker to family, optional
        Which judges are likely to err together: models of one maker, or prompts of one model. If
        not given, the column ``family`` of ``annotations.about_workers``; without one, judges
        are grouped by how much they agree beyond the rest.
    ordered : {"auto"} or bool, default="auto"
        Whether classes are steps of a scale, in order. By default, if there are more than two
        numbers, and differing labels are closer together than by chance.
    prior : float or array of shape (n_classes,), optional
        Share of each class, or of the last of two, if known. Without gold labels, nothing
        else determines the panel's threshold; by default its own rate is used.
    gold_accuracy : float, default=1
        Probability that a gold label is right: less than 1 if gold is a person's label.

    Attributes
    ----------
    ordered_ : bool
        Whether classes were treated as steps of a scale.
    caution_ : ndarray of shape (n_cuts,)
        Additional weight of plain vote shares: up to half, for labels without a gap between the
        classes, without gold or a prior.
    families_ : Series
        The family of each judge, as a number if it was guessed.
    weights_ : Series
        Share of each judge in the panel's score; copies of a judge have the same.
    center_, spread_ : ndarray of shape (n_workers, n_views)
        Mean and standard deviation of each judge's ratings; one view for scores and ordered
        classes, else one per class.
    group_ : ndarray of shape (n_workers, n_views)
        A number for each judge, the same for copies.
    coef_ : ndarray of shape (n_workers, n_cuts, n_members)
        Effect of a judge's standardized rating on the log-odds of each cut: a class against the
        rest, or classes above a step. Several members if priors are averaged.
    intercept_, share_ : ndarray of shape (n_cuts, n_members)
        Log-odds of an average task, and the weight of each member.
    root_ : ndarray of shape (n_cuts, n_members, n_groups + 1, …)
        ``root @ root.T`` is the covariance of a member's intercept and coefficients, by group.

    Notes
    -----
    The maths, for one cut::

        score[i] = sum over judges j of weight[j] * rating[i, j]
        weight = (loadings loadings' + noise)^-1 * main loadings, of a factor model of all ratings
        vote of j on i ~ Bernoulli(sigmoid(a * score[i] without j's family + c))
        P(truth of i is yes) = sigmoid(a * score[i] + b)

    where b makes the mean probability the panel's rate, or the prior. With gold, the log-odds are
    the start of a logistic regression on factors and judges, averaged over 48 priors by evidence.

    Works when most judges rate most tasks, and there are several families that err differently.

    Fails when half of the panel errs as one block that no name reveals: the block is then treated
    as right. The class shares cannot be learned without gold. Judges who label few tasks
    each, as people in a crowd do, are better aggregated by DawidSkene or IBCC.

    References
    ----------
    Zhao, Shin, Huang, Namburi and Sala (2026). CARE: confounder-aware aggregation for reliable
    LLM evaluation. doi:10.48550/arXiv.2603.00039. MacKay (1992). The evidence framework applied
    to classification networks. Neural Computation 4(5). doi:10.1162/neco.1992.4.5.720

    Examples
    --------
    >>> labels = [[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1], [0, 0, 1], [1, 1, 1]]
    >>> JudgePanel().fit_predict(labels).tolist()  # tasks x judges
    [0, 1, 0, 1, 0, 1]
    """

    _axes = {
        **Aggregator._axes,
        "center_": ("workers_", "views"),
        "spread_": ("workers_", "views"),
        "group_": ("workers_", "views"),
        "coef_": ("workers_", "cuts", "members"),
        "intercept_": ("cuts", "members"),
        "share_": ("cuts", "members"),
        "root_": ("cuts", "members", "groups", "rank"),
        "caution_": ("cuts",),
    }
    traits = Traits(learns_from_gold=True, ordinal=True, blockwise=False)
    _parameter_constraints = {
        "families": [Mapping, pd.Series, None],
        "ordered": [one_of("auto"), "boolean"],
        "prior": [between(0.0, 1.0), "array-like", None],
        "gold_accuracy": [between(0.5, 1.0)],
    }

    def __init__(
        self,
        *,
        families: Mapping[Hashable, Hashable] | None = None,
        ordered: str | bool = "auto",
        prior: float | ArrayLike | None = None,
        gold_accuracy: float = 1.0,
    ) -> None:
        self.families = families
        self.ordered = ordered
        self.prior = prior
        self.gold_accuracy = gold_accuracy

    @property
    def weights_(self) -> pd.Series:
        check_is_fitted(self)
        size = np.abs(np.einsum("wcm,cm->w", self.coef_, self.share_))
        return by_worker(normalize(size[None])[0], self.workers_, "weight")

    def _fit(self, engine: Engine) -> Floats:
        annotations, gold = engine.collect()
        self.ordered_ = is_scale(annotations) if self.ordered == "auto" else bool(self.ordered)
        views, votes = self._look(annotations)
        family = self._find_families(annotations.workers, annotations.about_workers)
        targets = cumulate(self._class_shares(), self._ordered())
        both = rate(annotations, np.concatenate([views, votes], axis=1))
        panels: list[Panel] = []
        scales: list[Scale] = []
        guesses: list[Ints] = []
        for cut in range(votes.shape[1]):
            view = min(cut, views.shape[1] - 1)
            if view == len(scales):
                scales.append(Scale.of(both, view))
                guesses.append(scales[-1].name_families(family))
            panel = scales[view].fit(both, views.shape[1] + cut, guesses[view], targets[cut])
            if annotations.score is not None:  # which tell more than votes
                panel = replace(panel, caution=0.0)
            if gold is not None and (gold >= 0).any():
                yes = cumulate(np.eye(annotations.n_classes)[gold], self._ordered())[cut]
                panel = panel.learn(np.flatnonzero(gold >= 0), yes[gold >= 0], self.gold_accuracy)
            panels.append(panel)
        self._keep(panels, scales, guesses)
        return self._posterior(engine)

    def _keep(self, panels: list[Panel], scales: list[Scale], families: list[Ints]) -> None:
        """Store what was learned, by worker."""
        self.center_ = np.stack([scale.mean for scale in scales], axis=1)
        self.spread_ = np.stack([scale.deviation for scale in scales], axis=1)
        self.group_ = np.stack([scale.group for scale in scales], axis=1)
        every = [panel.odds for panel in panels]
        self.share_ = join([odds.share for odds in every])
        self.intercept_ = join([odds.coef[:, 0] for odds in every])
        by_judge = [p.odds.coef[:, 1:].T[p.scale.group] for p in panels]  # (worker, member)
        self.coef_ = join(by_judge).swapaxes(0, 1)
        self.root_ = join([odds.root for odds in every])
        self.caution_ = np.array([panel.caution for panel in panels])
        self.families_ = by_worker(families[0][scales[0].group], self.workers_, "family")
        if self.families is not None:
            named = pd.Series(dict(self.families)).reindex(self.workers_)
            self.families_ = by_worker(named.to_numpy(), self.workers_, "family")

    def _posterior(self, engine: Engine) -> Floats:
        annotations, _ = engine.collect()
        views, votes = self._look(annotations)
        both, yes = rate(annotations, np.concatenate([views, votes], axis=1)), []
        for cut in range(len(self.share_)):
            view = min(cut, views.shape[1] - 1)
            group = self.group_[:, view]
            if len(group) < annotations.n_workers:  # an average judge represents unknown ones
                group = np.append(group, group.max(initial=-1) + 1)
            mean, deviation = self.center_[:, view], self.spread_[:, view]
            table = both.standardize(view, mean, deviation).join(group).table()
            found = self._odds(cut, group).predict_table(table)
            if self.caution_[cut]:
                shares = both.take(views.shape[1] + cut).join(group).shares(self._pseudo(cut))
                found += self.caution_[cut] * (shares - found)
            yes.append(found)
        return spread(np.stack(yes, axis=1), annotations.n_classes, self._ordered())

    def _pseudo(self, cut: int) -> tuple[float, float]:
        """Return half a vote for each class, on either side of a cut."""
        n_classes = len(self.classes_)
        above = n_classes - 1 - cut if self._ordered() else 1
        return above / 2, (n_classes - above) / 2

    def _odds(self, cut: int, group: Ints) -> Average:
        """Return the log-odds of a cut, over 1 and the groups of judges."""
        coef = np.zeros((self.share_.shape[1], group.max(initial=-1) + 2))
        coef[:, 0], coef[:, 1 + group] = self.intercept_[cut], self.coef_[:, cut].T
        root = np.zeros((*coef.shape, self.root_.shape[-1]))
        known = min(coef.shape[1], self.root_.shape[2])
        root[:, :known] = self.root_[cut][:, :known]
        return Average(self.share_[cut], coef, root)

    def _refuse_forged(self) -> None:
        n_cuts = max(len(self.classes_) - self._ordered(), 1)
        n_views, group = self.center_.shape[1], self.group_
        if len(self.share_) != n_cuts or n_views != (1 if self._ordered() else n_cuts):
            raise FormatError(
                f"{len(self.share_)} cuts and {n_views} views do not match the classes."
            )
        if group.dtype.kind not in "iu" or group.min(initial=0) < 0 or (group >= len(group)).any():
            raise FormatError("group_ names unknown groups of judges.")
        if np.abs(self.share_.sum(axis=1) - 1.0).max() > 1e-6 or (self.spread_ <= 0).any():
            raise FormatError("share_ does not sum to 1, or spread_ is not positive.")

    def _worker_rows(self) -> Mapping[str, Floats]:
        return {"center_": self.center_, "spread_": self.spread_, "coef_": self.coef_}

    # -- ratings and votes -------------------------------------------------------------------

    def _refuse(self, data: Annotations) -> None:
        super()._refuse(data)
        if data.n_workers > MOST_JUDGES:
            raise AnnotationError(
                explain(
                    f"There are {data.n_workers:,} judges.",
                    expected=f"a panel of {MOST_JUDGES:,} at most, who rate most of the tasks",
                    fix="choose a method for crowds, such as DawidSkene",
                )
            )

    def _note_order(self, classes: Array) -> None:
        if self.ordered is True:
            super()._note_order(classes)

    def _ordered(self) -> bool:
        if len(self.classes_) < 3:
            return True
        return self.ordered_

    def _look(self, annotations: Annotations) -> tuple[Floats, Floats]:
        """Return ratings, (annotation, view), and the votes from them, (annotation, cut)."""
        votes = self._votes(annotations)
        if not self._ordered():
            return votes, votes
        score, position = annotations.score, votes.sum(axis=1)
        if score is None or not np.isfinite(score).all():
            return position[:, None], votes
        down = ((score - score.mean()) * (position - position.mean())).sum() < 0
        return (-score if down else score)[:, None], votes

    def _votes(self, annotations: Annotations) -> Floats:
        """Return the votes of each annotation, (annotation, cut)."""
        if annotations.soft is not None:
            shares = cumulate(annotations.soft.astype(np.float64), self._ordered())
            return np.stack(shares, axis=1)
        label, classes = annotations.label[:, None], np.arange(annotations.n_classes)
        if not self._ordered() or len(classes) < 2:
            return (label == classes).astype(np.float64)
        return (label > classes[:-1]).astype(np.float64)

    def _find_families(self, workers: Array, about: pd.DataFrame | None) -> Ints | None:
        """Number each judge's family; None if nothing is known about them."""
        named = None if self.families is None else pd.Series(dict(self.families), dtype=object)
        if named is None and about is not None and "family" in about:
            named = about["family"].astype(object)
        if named is None:
            return None
        codes, _ = pd.factorize(named.reindex(pd.Index(workers, tupleize_cols=False)))
        own = codes.max(initial=-1) + 1 + np.arange(len(codes))
        return np.where(codes < 0, own, codes).astype(np.int64)

    def _class_shares(self) -> Floats:
        """Return the given share of each class, (1, class); NaN if none was given."""
        if self.prior is None:
            return np.full((1, len(self.classes_)), np.nan)
        prior = np.asarray(self.prior, dtype=np.float64)
        if prior.ndim == 0 and len(self.classes_) == 2:
            prior = np.array([1.0 - prior, prior])
        if prior.shape != (len(self.classes_),) or not (prior > 0).all():
            raise ParameterError(
                explain(
                    f"prior={self.prior!r} does not match {len(self.classes_)} classes.",
                    expected="a positive share per class, or that of the last of two classes",
                    fix="give one number for two classes, or one per class",
                )
            )
        return normalize(prior[None])


def rate(annotations: Annotations, value: Floats) -> Ratings:
    """Return values of annotations as ratings, one for each task and judge."""
    weight = annotations.weight
    weight = np.ones(annotations.n_annotations) if weight is None else weight
    return Ratings.average(annotations.task, annotations.worker, value, weight, annotations.shape)


def is_scale(annotations: Annotations) -> bool:
    """Return whether classes are rising numbers, and judges mostly differ by little."""
    values, n = as_numbers(annotations.classes), annotations.n_classes
    if n < 3 or values is None or (np.diff(values) <= 0).any():
        return False
    votes = annotations.votes()
    differ = ~np.eye(n, dtype=bool)
    met = (votes.T @ votes)[differ]
    by_chance = np.outer(votes.sum(axis=0), votes.sum(axis=0))[differ]
    apart = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))[differ]
    if not met.sum():
        return False
    return bool(met @ apart / met.sum() < NEAR * (by_chance @ apart) / by_chance.sum())


def cumulate(shares: Floats, ordered: bool) -> list[Floats]:
    """Convert shares of the classes, (row, class), to those of each cut."""
    if not ordered or shares.shape[1] < 2:
        return list(shares.T)
    return list((1.0 - np.cumsum(shares, axis=1)).T[:-1])


def spread(yes: Floats, n_classes: int, ordered: bool) -> Floats:
    """Convert probabilities of the cuts, (task, cut), to a distribution over the classes."""
    if not ordered or n_classes < 2:
        return normalize(yes)
    above = np.minimum.accumulate(yes, axis=1)
    ends = np.ones((len(yes), 1)), np.zeros((len(yes), 1))
    return -np.diff(np.concatenate([ends[0], above, ends[1]], axis=1), axis=1)


def join(parts: list[Floats]) -> Floats:
    """Join arrays along a new first axis, with zeros where one of them is shorter."""
    shape = np.max([part.shape for part in parts], axis=0)
    whole = np.zeros((len(parts), *shape))
    for row, part in zip(whole, parts, strict=True):
        row[tuple(map(slice, part.shape))] = part
    return whole
