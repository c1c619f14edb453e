"""The alternative annotator test: whether a model's labels may replace people's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.sparse import csr_array, hstack
from scipy.stats import false_discovery_control, ttest_1samp, wilcoxon

from crowdwise.annotations import TIE, Annotations
from crowdwise.annotations.names import as_names, locate
from crowdwise.annotations.order import as_numbers
from crowdwise.errors import AnnotationError, ParameterError, explain, plural
from crowdwise.evaluate.intervals import NAN, Estimate, bootstrap
from crowdwise.evaluate.label_counts import once_per_worker
from crowdwise.inference.rows import sum_by_group
from crowdwise.io.gold import find_truths
from crowdwise.io.truths import align_truths
from crowdwise.typing import AnnotationsLike, Array, Floats, GoldLike, Ints, RandomState

FEW = 30  # tasks below which Wilcoxon's test replaces the t test
LEAST_PEOPLE = 3
ASSUMES = (
    "Assumes that these people represent those whose labels count, and these tasks, drawn at "
    "random, those to be labeled; that people labeled without seeing the model's labels or "
    "each other's; and that people are right on average: the test compares with people, not with "
    "the truth, so a mistake that most of them share counts in favor of whoever makes it. A model "
    "may win and still be wrong where people agree."
)


@dataclass(frozen=True)
class Replacement:
    """How a model compares with each person.

    Attributes
    ----------
    replaceable : bool
        Whether the model wins against at least half of the people.
    winning_rate : float
        Share of people against whom it wins (omega).
    advantage : Estimate
        How often, averaged over people, the model agrees with the other people at least as
        well as the person does (rho); the interval is over tasks.
    people : DataFrame
        By person: n_tasks, on which others labeled too; advantage, and person_advantage, the
        same with the roles exchanged; p_value of a model that is worse by ``epsilon`` or more,
        and whether the model wins. There is no p_value below ``min_tasks`` tasks.
    note : str
        What the result assumes.
    """

    replaceable: bool
    winning_rate: float
    advantage: Estimate
    people: pd.DataFrame
    note: str


def replaceable(
    model: GoldLike,
    people: AnnotationsLike,
    *,
    epsilon: float = 0.15,
    false_discovery: float = 0.05,
    min_tasks: int = FEW,
    n_resamples: int = 1000,
    confidence: float = 0.95,
    random_state: RandomState = 0,
) -> Replacement:
    """Test whether a model's labels may replace a person's.

    Each person is left out in turn. On each of the person's tasks, the model's label and the
    person's are compared with those of the other people: by the share that agrees or, for
    scores, by the root mean squared distance. The model wins against the person if it is at
    least as close significantly more often than the person is, less ``epsilon``; tests are
    corrected for the number of people. It may replace people if it wins against half of them.

    Parameters
    ----------
    model : mapping, Series, frame or array
        The model's label of each task, or its score if ``people`` have scores.
    people : Annotations, frame, array, dict or path
        Labels of three people or more, two or more per task.
    epsilon : float, default=0.15
        How much worse than a person the model may be because it is cheaper: in the paper, 0.2
        for experts, 0.15 for skilled annotators and 0.1 for crowd workers.
    false_discovery : float, default=0.05
        Expected share of false wins, under any dependence of the tests (Benjamini and Yekutieli).
    min_tasks : int, default=30
        People with fewer tasks are not compared. Below 30, Wilcoxon's signed-rank test is used.
    n_resamples, confidence, random_state
        Of the interval of ``advantage``; see :func:`bootstrap`.

    References
    ----------
    Calderon, Reichart and Dror (2025). The alternative annotator test for LLM-as-a-judge. ACL.
    doi:10.18653/v1/2025.acl-long.782

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(0, 2, (200, 1))
    >>> people = np.where(rng.random((200, 5)) < 0.25, 1 - truth, truth)
    >>> model = np.where(rng.random((200, 1)) < 0.2, 1 - truth, truth).ravel()
    >>> found = replaceable(model, people)
    >>> found.replaceable, found.winning_rate
    (True, 1.0)
    """
    refuse_shares(epsilon, false_discovery)
    duels = Duels.of(once_per_worker(people), model)
    table = duels.test(epsilon, min_tasks)
    tested = table["p_value"].notna()
    if tested.sum() < LEAST_PEOPLE:
        most = plural(int(table["n_tasks"].max()) if len(table) else 0, "task")
        raise AnnotationError(
            explain(
                f"{plural(int(tested.sum()), 'person', 'people')} can be compared.",
                found=f"at most {most} of a person that other people and the model label too",
                expected=f"{LEAST_PEOPLE} people with {min_tasks} such tasks each",
                fix="have more tasks labeled by several people, or lower min_tasks",
            )
        )
    adjusted = false_discovery_control(table.loc[tested, "p_value"], method="by")
    table.loc[tested, "wins"] = adjusted <= false_discovery
    rate = float(table.loc[tested, "wins"].mean())
    low, high = bootstrap(
        duels.by_task(np.flatnonzero(tested)),
        mean_share,
        n_resamples=n_resamples,
        confidence=confidence,
        random_state=random_state,
    )
    mean = float(table.loc[tested, "advantage"].mean())
    advantage = Estimate(mean, low, high, len(np.unique(duels.task)))
    return Replacement(rate >= 0.5, rate, advantage, table, ASSUMES)


def refuse_shares(epsilon: float, false_discovery: float) -> None:
    """Refuse numbers that are not shares."""
    if not 0 <= epsilon < 1 or not 0 < false_discovery < 1:
        raise ParameterError(
            explain(
                f"epsilon={epsilon} and false_discovery={false_discovery} are out of range.",
                expected="shares below 1",
                fix="give shares such as 0.05",
            )
        )


@dataclass(frozen=True)
class Duels:
    """Model and person compared on a task: which is closer to the other people."""

    votes: Annotations
    task: Ints
    person: Ints
    model_level: Array  # whether the model is at least as close as the person
    person_level: Array  # whether the person is at least as close as the model

    @classmethod
    def of(cls, votes: Annotations, model: GoldLike) -> Duels:
        """Make a duel for each person's label on a task that others and the model label."""
        place, said = take_labels(votes, model)
        known = np.zeros(votes.n_tasks, dtype=bool)
        known[place] = True
        kept = (known & (votes.redundancy > 1))[votes.task]
        if votes.score is None:
            label = np.full(votes.n_tasks, -1)
            label[place] = locate(votes.classes, said)
            own, other = share_agreeing(votes, label)
        else:
            score = np.full(votes.n_tasks, NAN)
            score[place] = said
            own, other = measure_closeness(votes, score)
        own, other = own[kept], other[kept]
        task, person = votes.task[kept], votes.worker[kept]
        return cls(votes, task, person, other >= own - TIE, own >= other - TIE)

    def test(self, epsilon: float, min_tasks: int) -> pd.DataFrame:
        """Compute by person how often each is level, and the p-value of the losses."""
        rows = []
        for person in range(self.votes.n_workers):
            mine = self.person == person
            model, own = (
                level[mine].astype(float) for level in (self.model_level, self.person_level)
            )
            n = len(own)
            means = (model.mean(), own.mean()) if n else (NAN, NAN)
            enough = n >= max(min_tasks, 2)
            rows.append((n, *means, find_p_value(own - model, epsilon) if enough else NAN, False))
        index = pd.Index(self.votes.workers, name="worker", tupleize_cols=False)
        columns = ["n_tasks", "advantage", "person_advantage", "p_value", "wins"]
        return pd.DataFrame(rows, index=index, columns=columns)

    def by_task(self, people: Ints) -> csr_array:
        """Return for each task, by person, how often the model was level and how many duels."""
        used = np.isin(self.person, people)
        task = np.unique(self.task[used], return_inverse=True)[1]
        column = np.searchsorted(people, self.person[used])
        shape = (int(task.max(initial=-1)) + 1, len(people))
        level = csr_array((self.model_level[used].astype(float), (task, column)), shape=shape)
        met = csr_array((np.ones(len(task)), (task, column)), shape=shape)
        return csr_array(hstack([level, met]))


def mean_share(sums: Floats) -> Floats:
    """Return the mean over people of the share of level duels, from sums of both."""
    level, met = np.split(sums, 2, axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        found: Floats = (level / met).mean(axis=1)
    return found


def find_p_value(loss: Floats, epsilon: float) -> float:
    """Compute P(loss this low) if its mean were ``epsilon`` or more."""
    if np.ptp(loss) == 0:  # constant, which no test can handle
        return 0.0 if loss[0] < epsilon else 1.0
    if len(loss) < FEW:
        return float(wilcoxon(loss - epsilon, alternative="less").pvalue)
    return float(ttest_1samp(loss, epsilon, alternative="less").pvalue)


def take_labels(votes: Annotations, model: GoldLike) -> tuple[Ints, Array]:
    """Return which tasks the model labeled, and its labels; numbers if people gave scores."""
    if votes.score is None:
        return find_truths(model, votes)
    if not isinstance(model, Mapping | pd.Series | pd.DataFrame):
        model = pd.Series(np.asarray(model), index=votes.tasks)
    place, said = align_truths(model, votes.tasks)
    number = as_numbers(as_names(said))
    if number is None:
        raise AnnotationError(
            explain(
                "The model's scores are not numbers.",
                first=repr(said.iloc[0]),
                expected="a score for each task, on the same scale as people's",
                fix="give the scores as numbers",
            )
        )
    return place, number


def share_agreeing(votes: Annotations, label: Ints) -> tuple[Floats, Floats]:
    """Return the share of other people who agree with each annotation, and with the model."""
    count, others = votes.votes(), np.maximum(votes.redundancy - 1, 1)[votes.task]
    model = label[votes.task]
    own = count[votes.task, votes.label] - 1
    other = np.where(model < 0, 0.0, count[votes.task, model]) - (model == votes.label)
    return own / others, other / others


def measure_closeness(votes: Annotations, score: Floats) -> tuple[Floats, Floats]:
    """Return the negated RMS distance of person and model to the other people's scores."""
    assert votes.score is not None
    task, value, others = votes.task, votes.score, np.maximum(votes.redundancy - 1, 1)[votes.task]
    total, square = (sum_by_group(task, v, votes.n_tasks)[task] - v for v in (value, value**2))
    found = []
    for mine in (value, score[task]):
        distance = mine**2 - 2 * mine * total / others + square / others
        found.append(-np.sqrt(np.maximum(distance, 0.0)))
    return found[0], found[1]
