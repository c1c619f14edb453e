"""Quality of each worker, how certain it is, and which workers need a second look."""

import warnings
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from crowdwise.aggregate import BayesBag, DawidSkene, OneCoin
from crowdwise.annotations import Annotations
from crowdwise.base.aggregator import Aggregator
from crowdwise.errors import AnnotationError
from crowdwise.evaluate.draws import draw_crowds
from crowdwise.evaluate.intervals import check_interval, credible, wilson
from crowdwise.evaluate.label_counts import once_per_worker
from crowdwise.evaluate.label_uncertainty import share_right
from crowdwise.evaluate.leave_one_out import LeaveOneOut
from crowdwise.evaluate.model_posterior import model_posterior
from crowdwise.evaluate.worker_skill import measure_signal, measure_skill
from crowdwise.inference.posteriors import as_array
from crowdwise.inference.simplex import clamp
from crowdwise.io import as_gold
from crowdwise.memory import refuse_too_large
from crowdwise.typing import AnnotationsLike, Array, Floats, GoldLike, Ints, RandomState

MOST_CELLS = 20_000_000  # in all confusion matrices together, to draw them


def worker_quality(
    annotations: AnnotationsLike,
    model: Aggregator | pd.DataFrame | None = None,
    gold: GoldLike = None,
    *,
    confidence: float = 0.95,
    min_labels: int = 10,
    same_share: float = 0.98,
    min_misses: int = 5,
    max_skill: float = 0.3,
    significance: float = 0.01,
    random_state: RandomState = 0,
) -> pd.DataFrame:
    """Assess every worker from labels alone, and from gold labels if there are any.

    A worker who labels a task twice counts once, with the last label. Weights are not used,
    but annotations of weight 0 are left out.

    Parameters
    ----------
    annotations : Annotations, frame, array, dict or path
        Anything that :func:`crowdwise.io.as_annotations` accepts.
    model : fitted aggregator, optional
        Its ``probas_`` take the place of the truth (a frame of the same form is fine too);
        by default, :data:`crowdwise.aggregate.DEFAULT` is fitted here.
    gold : mapping, Series, frame or array, optional
        Known truths of some tasks.
    confidence : float, default=0.95
        Coverage of the intervals.
    min_labels : int, default=10
        "too few labels to say": fewer than this on tasks that others labeled too; or an interval
        of ``skill`` that includes both 0 and ``max_skill``.
    same_share, min_misses : float, int
        "always the same label": at least this share of a worker's labels is one class,
        although most of the others have another on this many of the tasks.
    max_skill, significance : float
        "answers as if at random": there is no sign of skill (``skill_low`` is not above 0) and
        ``skill_high`` is below ``max_skill``. "often contradicts the rest": ``skill_high``
        is below 0; or there is no sign of skill, and labels are correct less often than by
        chance; or labels look random, but ``p_random`` is below ``significance``, so they do
        depend on the truth.
    random_state : int or RandomState, default=0
        Random seed of the draws behind the intervals of accuracy.

    Returns
    -------
    DataFrame
        One row per worker; the columns are

        * n_labels, and n_shared: of these, on tasks that others labeled too;
        * accuracy, accuracy_low, accuracy_high: expected share of correct labels under the
          model's posterior, and bounds of P(right) that allow for the number of labels and for
          uncertainty about the truths and the other workers, from two labels per task on
          (``crowdwise bench coverage`` measures how often they hold); where workers times classes
          squared is above 20 million, uncertainty about the other workers is left out;
        * agreement, agreement_low, agreement_high: how often another worker of the task
          gives the same label;
        * skill, skill_low, skill_high: 0 for a worker who ignores the task, 1 for one who
          knows every truth, below 0 for one who avoids it. The truth is what the other workers
          imply, and skill allows for their errors;
        * signal: Raykar and Yu's score of the confusion matrix, 0 for a spammer of any
          kind, 1 for a worker whose labels reveal every truth;
        * p_random: p-value of the test that labels do not depend on the truth that the
          others imply;
        * n_gold, gold_accuracy, gold_low, gold_high: only with ``gold``;
        * flag: a short description, empty if there is nothing to report.

    References
    ----------
    Raykar and Yu (2012). Eliminating spammers and ranking annotators for crowdsourced
    labeling tasks. JMLR 13. https://jmlr.org/papers/v13/raykar12a.html

    Examples
    --------
    >>> import numpy as np
    >>> truth = np.tile([0, 1, 1, 0, 1], 8)
    >>> labels = np.column_stack([truth, truth, truth, np.ones(40, dtype=int)])
    >>> worker_quality(labels)["flag"].tolist()
    ['', '', '', 'always the same label']
    """
    check_interval(0, confidence)
    check_interval(0, significance)
    data = once_per_worker(annotations)
    if has_large_matrices(data):
        size = f"{data.n_classes:,} x {data.n_classes:,} classes for {data.n_workers:,} workers"
        fix = "merge rare classes into one, as crowdwise report does"
        needed = 24.0 * data.n_workers * data.n_classes**2
        refuse_too_large("The quality of workers", needed, size, fix, AnnotationError)
    known = None if gold is None else as_gold(gold, data)
    posterior = clamp(model_posterior(data, model, gold), known)
    shared = data.redundancy[data.task] > 1
    sharp = clamp(_single_model(data, model, gold, posterior), known)
    skill = measure_skill(LeaveOneOut.of(data, sharp, known), shared)
    draws = Draws(confidence, random_state)
    columns: dict[str, Array] = {
        "n_labels": np.bincount(data.worker, minlength=data.n_workers),
        "n_shared": skill.n_shared,
        **_with_interval("accuracy", *accuracy_by_worker(data, posterior, known, draws)),
        **_with_interval("agreement", *mean_pair_agreement(data, confidence)),
        **_with_interval("skill", skill.value, *skill.interval(confidence)),
        "signal": measure_signal(data, sharp),
        "p_random": skill.p_random,
    }
    if known is not None:
        columns |= _accuracy_on_gold(data, known, confidence)
    frame = pd.DataFrame(columns, index=pd.Index(data.workers, name="worker"))
    same = (skill.same >= same_share) & (skill.misses >= min_misses)
    below_chance = skill.is_below_chance(confidence)
    return frame.assign(
        flag=flag_workers(frame, same, below_chance, min_labels, max_skill, significance)
    )


class Draws(NamedTuple):
    """Settings of the draws behind intervals."""

    confidence: float
    random_state: RandomState


def accuracy_by_worker(
    data: Annotations, posterior: Floats, gold: Ints | None, settings: Draws
) -> tuple[Floats, Array, Array]:
    """Return expected accuracy by worker, with bounds that allow for uncertain truths."""
    share = share_right(data, posterior)
    if not data.n_annotations:
        return share, share, share
    if has_large_matrices(data):
        return expected_accuracy(data, posterior, settings.confidence)
    drawn = draw_crowds(data, posterior, gold, random_state=settings.random_state)
    low, high = drawn.interval("accuracy", settings.confidence)
    return share, np.fmin(low, share), np.fmax(high, share)


def has_large_matrices(data: Annotations) -> bool:
    """Return whether confusion matrices are too large to be drawn many times."""
    return data.n_workers * data.n_classes**2 > MOST_CELLS


def expected_accuracy(
    data: Annotations, posterior: Floats, confidence: float
) -> tuple[Floats, Array, Array]:
    """Return expected accuracy; uncertainty about the truth counts as fewer labels."""
    right = posterior[data.task, data.label]
    n = np.bincount(data.worker, minlength=data.n_workers).astype(np.float64)
    total = np.bincount(data.worker, right, minlength=data.n_workers)
    doubt = np.bincount(data.worker, right * (1 - right), minlength=data.n_workers)
    share = np.divide(total, n, out=np.full(len(n), np.nan), where=n > 0)
    # A share of n labels has variance s (1 - s) / n; uncertain truths add uncertainty / n^2.
    own = (total + 0.5) * (n - total + 0.5) / (n + 1)
    worth = n * own / (own + doubt)
    low, high = credible(np.nan_to_num(share) * worth, worth, confidence)
    return share, low, high


def mean_pair_agreement(data: Annotations, confidence: float) -> tuple[Floats, Array, Array]:
    """Measure how often another worker of the same task gives the same label."""
    size = data.redundancy[data.task]
    shared = size > 1
    same = (data.votes()[data.task, data.label] - 1)[shared] / (size[shared] - 1)
    total = np.bincount(data.worker[shared], same, minlength=data.n_workers)
    n = np.bincount(data.worker[shared], minlength=data.n_workers)
    low, high = wilson(total, n, confidence)
    return np.divide(total, n, out=np.full(len(n), np.nan), where=n > 0), low, high


def flag_workers(
    frame: pd.DataFrame,
    same: Array,
    below_chance: Array,
    min_labels: int,
    max_skill: float,
    significance: float,
) -> Array:
    """Describe each worker in a few words, empty if there is nothing to report."""
    low, high = frame["skill_low"].to_numpy(), frame["skill_high"].to_numpy()
    unproven = ~(low > 0)
    random = unproven & (high < max_skill)
    depends = frame["p_random"].to_numpy() < significance
    contrary = (high < 0) | (unproven & below_chance & ~random) | (random & depends)
    cases = {
        "too few labels to say": frame["n_shared"].to_numpy() < min_labels,
        "always the same label": unproven & same,
        "often contradicts the rest": contrary,
        "answers as if at random": random,
    }
    words = np.select(list(cases.values()), list(cases), default="").astype(object)
    words[(words == "") & unproven] = "too few labels to say"
    return words


def _single_model(
    data: Annotations, model: Aggregator | pd.DataFrame | None, gold: GoldLike, posterior: Floats
) -> Floats:
    """Return the posterior to compare workers with, not a bagged one: bags blur skill."""
    if data.n_annotations and (model is None or isinstance(model, BayesBag)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            single = OneCoin() if has_large_matrices(data) else DawidSkene()
            return as_array(single.fit(data, gold).posterior_)
    return posterior


def _with_interval(name: str, value: Floats, low: Array, high: Array) -> dict[str, Array]:
    return {name: value, f"{name}_low": low, f"{name}_high": high}


def _accuracy_on_gold(data: Annotations, gold: Ints, confidence: float) -> dict[str, Array]:
    truth = gold[data.task]
    asked = truth >= 0
    n = np.bincount(data.worker[asked], minlength=data.n_workers)
    right = np.bincount(data.worker[asked & (data.label == truth)], minlength=data.n_workers)
    share = np.divide(right, n, out=np.full(len(n), np.nan), where=n > 0)
    low, high = wilson(right, n, confidence)
    return {"n_gold": n, "gold_accuracy": share, "gold_low": low, "gold_high": high}
