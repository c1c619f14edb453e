"""The default learner: a committee of penalized regressions, chosen without truths."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from crowdwise.annotations import Annotations
from crowdwise.base.fitting import column_names, refuse_flat, refuse_other_columns, refuse_width
from crowdwise.base.params import at_least
from crowdwise.base.traits import LearnerTraits
from crowdwise.errors import AnnotationError, explain, plural
from crowdwise.inference import count_labels, normalize
from crowdwise.learn.batch_refit import teach_all
from crowdwise.learn.committee_search import (
    Designs,
    Found,
    first_round,
    last_round,
    next_rounds,
)
from crowdwise.learn.confusion_learner import ConfusionLearner
from crowdwise.learn.isolated_folds import Folds, find_counting
from crowdwise.learn.label_stacking import Sharpening, Stack
from crowdwise.learn.penalty_path import add_ones, predict_path
from crowdwise.learn.plain_regressions import TARGETS, Blend, PlainRegressions
from crowdwise.learn.softmax_regression import Matrix
from crowdwise.learn.views import SAMPLE, KernelAxes, PrincipalAxes, as_rows, identify, sample_rows
from crowdwise.learn.worker_bags import pool
from crowdwise.nets.features import rows_at_once
from crowdwise.typing import FeaturesLike, Floats, Ints, RandomState

N_SEARCH = 5000  # tasks to find a committee with; it is then fitted to all of them
VIEWS = {
    "standardized": "standardized features",
    "plain": "unscaled features",
    "kernel": "similarity to other tasks",
}


class AutoClassifier(ConfusionLearner):
    """Learn a classifier from disagreeing labels, with all settings chosen without truths.

    Softmax regressions with many penalties, on unscaled features, on standardized ones and on a
    kernel of them, are judged by how likely they make the labels of held-out tasks, given what is
    known about the workers. The best ones form a committee, which is calibrated on these labels.
    Its predictions for a task, together with the task's labels, give the truths for the next
    round: with classes as frequent as labels say, if they say so clearly, and less certain where
    workers err together. Three plain regressions, on majority labels, on shares of labels and on
    IBCC's truths, are averaged with the committee, with equal weight if labels cannot tell which
    is best.

    Parameters
    ----------
    n_rounds : int, default=4
        How often to alternate between learning and inferring truths; 1 is fast, and nearly as
        good if tasks have many labels.
    n_folds : int, default=5
        Number of folds of the tasks, at least 3. The predictions that choices are based on come
        from regressions that have not seen the labels of their fold in any round.
    random_state : int or RandomState, optional
        Random seed of folds, bags, and the rows that a kernel compares others with.

    Attributes
    ----------
    search_ : DataFrame
        The committee: view, penalty, power and weight of each member.
    blend_ : Series
        Weight of the committee and of each plain regression; the committee alone if it was
        found on a sample of very many tasks.
    posterior_ : ndarray of shape (n_tasks, n_classes)
        P(truth | features, labels) of the training tasks; the regressions behind it have not
        seen the task's labels.
    confusion_ : ndarray of shape (n_workers, n_classes, n_classes)
        P(label | truth); the axes are worker, truth, label.
    worker_accuracy_ : Series
        How often each worker is right on the training tasks.

    Notes
    -----
    The maths::

        P(truth | x) = b[0] * C(x) + sum over plain regressions j of b[j] * softmax(z(x) @ V[j])
        C(x) = sharpen(sum over m of a[m] * sharpen(softmax(z_m(x) @ W[m]), τ[m]), τ)
        sharpen(p, τ) proportional to c * p^τ, with c that keeps classes as frequent as they are
        W[m] lowers cross-entropy to P(truth | labels, features) + penalty[m] / 2 |W[m]|^2
        a, τ raise sum over i of log sum over k of
            P(truth = k | x_i) * prod over labels of i of confusion[worker, k, label],
            where P and confusion come from fits without the fold of i
        b[j] = the mean of softmax(that sum / 4)[j] over random weights of its tasks

    Works when classes are nearly linear in the features, in their scaled values or in the
    similarity to other tasks; with few labels per task, since tasks inform one another.

    Fails when only deep features separate the classes: use the embeddings of a pretrained
    network instead of pixels or words. Errors that labels share on all tasks are believed.

    References
    ----------
    Dawid and Skene (1979). doi:10.2307/2346806. Raykar et al. (2010). Learning from crowds.
    JMLR 11. Breiman (1996). Stacked regressions. doi:10.1007/BF00117832. Yao, Vehtari, Simpson
    and Gelman (2018). Using stacking to average Bayesian predictive distributions.
    doi:10.1214/17-BA1091

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from crowdwise.simulate import label_by_crowd, one_coin_confusion
    >>> X, truth = load_iris(return_X_y=True)
    >>> confusion = one_coin_confusion([0.9, 0.7, 0.6, 0.5], n_classes=3)
    >>> votes = label_by_crowd(truth, confusion, per_task=3, random_state=0)
    >>> model = AutoClassifier(random_state=0).fit(X, votes)
    >>> bool(model.score(X, truth) > 0.9)
    True
    >>> print(model.summary().splitlines()[0])
    Learned from 150 tasks with 450 labels by 4 workers, 3 classes.
    """

    _axes = {
        **ConfusionLearner._axes,
        "factors_": ("members", "classes_"),
        "last_factors_": ("last", "classes_"),
    }
    _parameter_constraints = {
        "n_rounds": [at_least(1)],
        "n_folds": [at_least(3)],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        n_rounds: int = 4,
        n_folds: int = 5,
        random_state: RandomState = None,
    ) -> None:
        self.n_rounds = n_rounds
        self.n_folds = n_folds
        self.random_state = random_state

    @property
    def traits(self) -> LearnerTraits:
        return LearnerTraits(random_per=("task",))

    def _fit(self, X: FeaturesLike, votes: Annotations, gold: Ints | None) -> tuple[Floats, Floats]:
        if X is None:
            refuse_flat(())
        rng, rows = check_random_state(self.random_state), as_rows(X)
        self.n_features_in_, self.n_labels_ = rows.shape[1], votes.n_annotations
        self._learn_views(rows, rng)
        labeled = np.flatnonzero(find_counting(votes, gold))
        if len(labeled) < 2:
            raise AnnotationError(
                explain(
                    f"Only {plural(len(labeled), 'task')} with features and a label that counts.",
                    expected="two or more, one of which is held out",
                    fix="check that tasks have the same names in both files, or label more tasks",
                )
            )
        if len(labeled) <= N_SEARCH * 3 // 2:
            posterior = self._search_all(rows, votes, gold, rng)
        else:
            posterior = self._search_some(rows, votes, gold, labeled, rng)
        return posterior, normalize(pool(count_labels(votes, posterior)))

    def _search(self, designs: Designs, folds: Folds) -> Found:
        """Find a committee, and its predictions for tasks that it has not seen."""
        found, more = first_round(designs, folds), self.n_rounds - 1
        return next_rounds(designs, folds, found, more) if more else found

    def _search_all(
        self, rows: Matrix, votes: Annotations, gold: Ints | None, rng: np.random.RandomState
    ) -> Floats:
        """Find a committee and the plain regressions, and keep them; returns P(truth)."""
        folds = Folds.deal(votes, gold, identify(rows), self.n_folds, rng)
        designs = self._designs(rows)
        found = self._search(designs, folds)
        plain = PlainRegressions.fit(designs["standardized"], folds)
        blend, found = Blend.choose(plain, found, folds, rng)
        found, posterior = last_round(designs, folds, found)
        self._keep(found, blend)
        return posterior

    def _search_some(
        self,
        rows: Matrix,
        votes: Annotations,
        gold: Ints | None,
        labeled: Ints,
        rng: np.random.RandomState,
    ) -> Floats:
        """Find a committee on some of the tasks, and refit it to all of them."""
        some, judges, *_ = np.split(rng.permutation(labeled), [N_SEARCH, 3 * N_SEARCH // 2])
        part, known = rows[some], None if gold is None else gold[some]
        folds = Folds.deal(votes[some], known, identify(part), self.n_folds, rng)
        designs = self._designs(part)
        found, _ = last_round(designs, folds, self._search(designs, folds))
        self._keep(found)
        prior = self._predict(rows)
        prior[some] = found.proba  # by regressions that have not seen the task
        fold = np.ones(votes.n_tasks, dtype=np.int64)
        fold[some], fold[judges] = 0, 2
        folds = Folds.of(votes, gold, fold, 3, rng)
        found, posterior = teach_all(
            found, prior, folds, lambda batch: self._designs(rows[batch]), rng
        )
        self._keep(found)
        return posterior

    def _learn_views(self, rows: Matrix, rng: np.random.RandomState) -> None:
        rows = sample_rows(rows, SAMPLE, rng)
        scaled = PrincipalAxes(random_state=rng).fit(rows)
        plain = PrincipalAxes(standardize=False, random_state=rng).fit(rows)
        kernel = KernelAxes(random_state=rng).fit(scaled.transform(rows))
        self.views_: dict[str, PrincipalAxes | KernelAxes] = {
            "standardized": scaled,
            "plain": plain,
            "kernel": kernel,
        }

    def _designs(self, rows: Matrix) -> dict[str, Floats]:
        """Return coordinates of every row in each view, with a column of ones."""
        seen: dict[str, Floats] = {}
        for name, view in self.views_.items():  # a kernel is one of scaled features
            seen[name] = view.transform(seen["standardized"] if name == "kernel" else rows)
        return {name: add_ones(coordinates) for name, coordinates in seen.items()}

    def _keep(self, found: Found, blend: Blend | None = None) -> None:
        """Store what predictions need."""
        self.weights_ = {view: own.weights[:, 0] for view, own in found.views.items()}
        needed = {*self.weights_, "standardized"}  # which a kernel needs too
        names = ["committee", *TARGETS] if blend else ["committee"]
        self.blend_ = pd.Series(blend.weight if blend else 1.0, index=names, name="weight")
        self.plain_weights_ = blend.plain.weights if blend else None
        self.views_ = {view: own for view, own in self.views_.items() if view in needed}
        stack = found.stack.cautious()
        self.evidence_, self.last_power_ = found.evidence, float(stack.last.power[0])
        self.factors_, self.last_factors_ = stack.each.factor, stack.last.factor
        members = [f"{view}, penalty {penalty:.0e}" for view, penalty in found.members]
        columns = {
            "penalty": [penalty for _, penalty in found.members],
            "power": stack.each.power,
            "weight": stack.weight,
        }
        self.search_ = pd.DataFrame(columns, index=pd.Index(members, name="member"))

    def predict_proba(self, X: FeaturesLike) -> Floats:
        """Return P(truth | features) of every row, shape (n_rows, n_classes)."""
        check_is_fitted(self)
        refuse_other_columns(column_names(X), getattr(self, "feature_names_in_", None))
        rows = as_rows(X)
        refuse_width(rows.shape[1], self.n_features_in_)
        return self._predict(rows)

    def _predict(self, rows: Matrix) -> Floats:
        """Do the same for rows that need no check, some at a time."""
        at_once = rows_at_once(max(rows.shape[1], 1000))
        proba = np.empty((rows.shape[0], len(self.classes_)))
        for start in range(0, rows.shape[0], at_once):
            some = slice(start, start + at_once)
            proba[some] = self._predict_rows(rows[some])
        return proba

    def _predict_rows(self, rows: Matrix) -> Floats:
        designs = self._designs(rows)
        members = np.concatenate(
            [predict_path(designs[view], own) for view, own in self.weights_.items()], axis=1
        )  # (row, member, class)
        each = Sharpening(self.search_["power"].to_numpy(), self.factors_)
        last = Sharpening(np.array([self.last_power_]), self.last_factors_)
        said = Stack(each, self.search_["weight"].to_numpy(), last).mix(members.astype(np.float64))
        if self.plain_weights_ is None:
            return said
        plain = predict_path(designs["standardized"], self.plain_weights_)
        all_of_them = np.concatenate([said[:, None], plain], axis=1)
        return np.einsum("imk,m->ik", all_of_them, self.blend_.to_numpy())

    def summary(self) -> str:
        """Describe in plain words what was learned from, and what was chosen."""
        check_is_fitted(self)
        return "\n".join(self._sentences())

    def _sentences(self) -> list[str]:
        member = self.search_
        sentences = [
            f"Learned from {plural(len(self.tasks_), 'task')} with "
            f"{plural(self.n_labels_, 'label')} by {plural(len(self.workers_), 'worker')}, "
            f"{plural(len(self.classes_), 'class', 'classes')}.",
            f"A committee of {plural(len(member), 'softmax regression')}, weighted by how likely "
            "they make the labels of held-out tasks:",
        ]
        views = member.index.str.partition(",").get_level_values(0)
        for view, own in member.groupby(views, sort=False):
            low, high = own["penalty"].min(), own["penalty"].max()
            range_ = f"penalty {low:.1g}" if low == high else f"penalties {low:.1g} to {high:.1g}"
            sentences.append(f"- {own['weight'].sum():.0%} on {VIEWS[str(view)]} ({range_});")
        plain = [f"{name} ({share:.2f})" for name, share in self.blend_.iloc[1:].items()]
        beside = [
            f"It is best with probability {self.blend_.iloc[0]:.2f}, which is its weight; the "
            f"rest goes to plain regressions: on {', '.join(plain)}."
        ]
        power = self.last_power_
        change = "left unchanged" if power == 1 else "softened" if power < 1 else "sharpened"
        return [
            *sentences,
            f"Their mean is {change} (power {power:.2g}).",
            *(beside if plain else []),
            f"With features, the labels of an unseen task are {np.exp(self.evidence_):.2f} times "
            "as likely as with class frequencies alone.",
        ]
