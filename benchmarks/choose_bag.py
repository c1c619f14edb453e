"""How the settings of BayesBag were chosen: on the real crowds, leaving out one at a time.

    python benchmarks/choose_bag.py

Scores every setting of a grid on every set once, one set per core. Then, for each set in turn,
takes the setting that the other sets would choose (see RULE) and reports its scores on the set
left out. Scores are kept in benchmarks/results/choose-bag.json: a second run continues where the
first stopped.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import product
from typing import NamedTuple, TypeVar

import numpy as np
from results_files import RESULTS, provenance, save, table
from sklearn.base import clone

from crowdbench.sets import crowd
from crowdbench.tables.calibration import LOSSES, N_BINS
from crowdbench.tables.truth_inference import SETS
from crowdwise.aggregate import DawidSkene
from crowdwise.aggregate.bayes_bag import HALF, WHOLE, suitable_bags
from crowdwise.aggregate.shared_errors import Dependence, measure_dependence
from crowdwise.annotations import Annotations
from crowdwise.annotations.names import locate
from crowdwise.base import Aggregator
from crowdwise.evaluate.calibration import bin_edges, bin_rows, calibration_error
from crowdwise.evaluate.scores import brier_score, log_loss
from crowdwise.inference import Confidence, MemoryEngine, draw_weights, fingerprint
from crowdwise.inference.engines.blocks import in_order
from crowdwise.inference.posteriors import as_array, share_right
from crowdwise.typing import Floats, Ints

NAME, SEEDS = "choose-bag", 2
RULE = (
    "the setting of lowest mean Brier score. (It is proper as the log loss is, but no few sets or "
    "tasks decide it.)"
)
SEEN = (
    "The grid and this rule were settled with the results of earlier ones in view, so the scores "
    "on sets left out are not blind either. A measured dependence is that of `BayesBag`, from the "
    "labels alone. Bags have a class prior of their own here; the default takes that of IBCC on "
    "the whole crowd."
)
METRICS = ("accuracy", *LOSSES.values())
FITS = [  # pooling, smoothing, whether weights are stratified
    *((pooling, (1.0, 0.25), True) for pooling in (1.0, 3.0, 10.0, 30.0)),
    *((pooling, (4.0, 1.0), True) for pooling in (3.0, 10.0)),
    *((pooling, (1.0, 0.25), False) for pooling in (3.0, 10.0)),
]
SHARES, WHOLES = (0.05, 0.1, 0.15), (0.0, 0.05)
DEPENDENCES = (0.0, 0.04, 0.1, None)  # None: measured

LARGE = ("fact_eval", "relevance", "labelme", "adult", "medical_causes", "medical_treats", "mgc")
LARGEST_FIRST = (*LARGE, *(name for name in SETS if name not in LARGE))

Result = TypeVar("Result")
Scores = dict[str, dict[str, dict[str, float]]]  # set, setting, metric
Fit = tuple[float, tuple[float, float], bool]  # as in FITS
Draw = Callable[[Annotations, int, int], Floats]


class Setting(NamedTuple):
    """One cell of the grid."""

    pooling: float
    smoothing: tuple[float, float]
    stratified: bool
    whole: float  # weight of the crowd as it is, without random weights
    dependence: float | None
    shares: float

    def __str__(self) -> str:
        drawn = "stratified" if self.stratified else "independent"
        right, wrong = self.smoothing
        dependence = "measured" if self.dependence is None else f"{self.dependence:g}"
        return (
            f"pooling {self.pooling:g}, smoothing ({right:g}, {wrong:g}), {drawn}, "
            f"whole {self.whole:g}, dependence {dependence}, shares {self.shares:g}"
        )


class Bags(NamedTuple):
    """Posteriors of the tasks with a truth, (task, class), over the bags of one base."""

    mean: Floats
    whole: Floats  # of the crowd as it is
    share: Floats  # of labels
    n_labels: Floats
    measured: Dependence


class Scored(NamedTuple):
    """A crowd, which of its tasks are scored, and what labels say of its workers' errors."""

    votes: Annotations
    place: Ints
    truth: Ints
    measured: Dependence


def load(name: str) -> Scored:
    data = crowd(name)
    votes = data.annotations.without_repeats("last")
    place = locate(votes.tasks, data.truth.index.to_numpy())
    truth = locate(votes.classes, data.truth.to_numpy())
    engine = MemoryEngine(votes)
    measured = measure_dependence(engine, fingerprint(engine))
    return Scored(votes, place[place >= 0], truth[place >= 0], measured)


def draw_independent(votes: Annotations, n_bags: int, seed: int) -> Floats:
    """Exponential weights, (bag, worker), each on its own."""
    return np.random.RandomState(seed).exponential(size=(n_bags, votes.n_workers))


def fit_bags(data: Scored, base: Aggregator, seed: int, draw: Draw = draw_weights) -> Bags:
    """The bags of a base, as in BayesBag without its early end."""
    votes, share, everyone = data.votes, data.votes.shares(), MemoryEngine(data.votes)
    n_bags = suitable_bags(votes.n_annotations)
    weights = np.vstack([np.ones(votes.n_workers), draw(votes, n_bags, seed)])

    def fit(number: int) -> Floats:
        bag = clone(base)
        bag.tasks_, bag.workers_, bag.classes_ = votes.tasks, votes.workers, votes.classes
        engine = everyone.reweighted(weights[number], n_threads=1)
        return as_array(bag._fit(engine))[data.place]

    bags = in_order(fit, range(n_bags + 1))
    n_labels = votes.redundancy[data.place].astype(float)
    whole, mean = next(bags), sum(bags) / n_bags
    return Bags(mean, whole, share[data.place], n_labels, data.measured)


def answer(
    bags: Bags, part: float = WHOLE, dependence: float | None = None, shares: float = 0.05
) -> Floats:
    """What BayesBag makes of its bags."""
    if dependence is None:
        part += (HALF - part) * bags.measured.independent
        dependence = bags.measured.correlation
    mean = (1 - part) * bags.mean + part * bags.whole
    return Confidence(dependence, shares).answer(mean, bags.share, bags.n_labels)


def answers(fit: Fit, bags: Bags) -> Iterator[tuple[Setting, Floats]]:
    """Every setting that these bags serve, with its answer."""
    for part, dependence, shares in product(WHOLES, DEPENDENCES, SHARES):
        yield Setting(*fit, part, dependence, shares), answer(bags, part, dependence, shares)


def measure(posterior: Floats, truth: Ints) -> dict[str, float]:
    """Accuracy and the losses of `crowdwise bench calibration`."""
    rows = bin_rows(posterior, truth, bin_edges(posterior, N_BINS, "width"))
    error = calibration_error(rows.sum(axis=0)[None])[0]
    found = share_right(posterior, truth).mean(), log_loss(posterior, truth), error
    found = *found, brier_score(posterior, truth)
    return {metric: float(value) for metric, value in zip(METRICS, found, strict=True)}


def add_up(sums: dict[str, Counter[str]], name: str, found: dict[str, float]) -> None:
    """Add the scores of one seed."""
    sums.setdefault(name, Counter()).update({m: v / SEEDS for m, v in found.items()})


def rounded(sums: dict[str, Counter[str]]) -> dict[str, dict[str, float]]:
    return {name: {m: round(float(v), 4) for m, v in own.items()} for name, own in sums.items()}


def score_set(name: str) -> dict[str, dict[str, float]]:
    """The mean scores of every setting on one set, over the seeds."""
    data, sums = load(name), dict[str, Counter[str]]()
    for (pooling, smoothing, stratified), seed in product(FITS, range(SEEDS)):
        base = DawidSkene(smoothing=smoothing, pooling=pooling, max_iter=40, tol=1e-4)
        draw = draw_weights if stratified else draw_independent
        bags = fit_bags(data, base, seed, draw)
        for setting, posterior in answers((pooling, smoothing, stratified), bags):
            add_up(sums, str(setting), measure(posterior, data.truth))
    return rounded(sums)


def choose(scores: Scores, sets: list[str]) -> str:
    """The setting that these sets choose, by RULE."""

    def mean(setting: str) -> float:
        return float(np.mean([scores[name][setting]["Brier"] for name in sets]))

    return min(scores[sets[0]], key=mean)


def leave_one_out(scores: Scores) -> dict[str, str]:
    """What the other sets choose for each one."""
    sets = list(scores)
    return {name: choose(scores, [other for other in sets if other != name]) for name in sets}


def mean_line(name: str, scores: Scores, setting: Mapping[str, str]) -> list[str]:
    """Mean scores, each set under its own setting."""
    means = [np.mean([scores[one][setting[one]][m] for one in scores]) for m in METRICS]
    return [name, *(f"{value:.4f}" for value in means)]


def describe(scores: Scores) -> str:
    """The page: scores when left out, those of the setting chosen most, and who chose what."""
    chosen = leave_one_out(scores)
    votes = Counter(chosen.values()).most_common()
    head = ["", *(f"mean {metric}" for metric in METRICS)]
    lines = [
        mean_line("chosen by the other sets", scores, chosen),
        *(
            mean_line(f"{setting} (chosen by {n} of {len(scores)})", scores,
                      dict.fromkeys(scores, setting))
            for setting, n in votes
        ),
    ]  # fmt: skip
    by_set = [
        [name, *(f"{scores[name][chosen[name]][metric]:.4f}" for metric in METRICS)]
        for name in scores
    ]
    return "\n\n".join(
        [
            "# How the settings of BayesBag were chosen",
            f"Mean over {SEEDS} seeds of {len(next(iter(scores.values())))} settings on "
            f"{len(scores)} real crowds. A set is left out, the others choose: {RULE}",
            SEEN,
            table(head, lines),
            "Each set under the setting that the other sets chose:",
            table(["set", *METRICS], by_set),
        ]
    )


def stored() -> Scores:
    """What an earlier run has scored."""
    file = RESULTS / f"{NAME}.json"
    rows = json.loads(file.read_text())["rows"] if file.exists() else []
    return {
        row["set"]: {
            setting: {metric: row[metric][i] for metric in METRICS}
            for i, setting in enumerate(rows[0]["settings"])
        }
        for row in rows[1:]
    }


def write(scores: Scores) -> None:
    """Results so far: the names of the settings once, then the scores of each set."""
    settings = list(next(iter(scores.values())))
    rows = [
        {"set": name, **{metric: [own[one][metric] for one in settings] for metric in METRICS}}
        for name, own in scores.items()
    ]
    text = describe(scores) if len(scores) > 1 else ""
    save(NAME, provenance("python benchmarks/choose_bag.py"), [{"settings": settings}, *rows], text)


def side_by_side(
    work: Callable[[str], Result], names: Iterable[str]
) -> Iterator[tuple[str, Result]]:
    """``(name, work(name))`` as they are done, one per core; long ones should come first."""
    with ProcessPoolExecutor(os.cpu_count(), initializer=warnings.simplefilter,
                             initargs=("ignore",)) as pool:  # fmt: skip
        found = {pool.submit(work, name): name for name in names}
        for done in as_completed(found):
            sys.stderr.write(f"{found[done]}\n")
            yield found[done], done.result()


def in_order_of_sets(found: Mapping[str, Result]) -> dict[str, Result]:
    return {name: found[name] for name in SETS if name in found}


def main() -> None:
    scores = stored()
    for name, own in side_by_side(score_set, [one for one in LARGEST_FIRST if one not in scores]):
        scores[name] = own
        write(in_order_of_sets(scores))
    sys.stdout.write(describe(in_order_of_sets(scores)) + "\n")


if __name__ == "__main__":
    main()
