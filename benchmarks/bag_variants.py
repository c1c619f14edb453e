"""What was tried beside the default of BayesBag, on the real crowds.

    python benchmarks/bag_variants.py

Each variant changes the base or the weights; the answer is made as in BayesBag. Scores are in
benchmarks/results/bag-variants.json: a second run continues where the first stopped.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from choose_bag import (
    LARGEST_FIRST,
    METRICS,
    Bags,
    Draw,
    Scored,
    Scores,
    add_up,
    answer,
    draw_weights,
    fit_bags,
    in_order_of_sets,
    load,
    measure,
    rounded,
    side_by_side,
)
from results_files import RESULTS, provenance, save, table
from scipy.special import gammaincinv

from crowdwise.aggregate import GLAD, IBCC, BayesBag, DawidSkene, OneCoin
from crowdwise.annotations import Annotations
from crowdwise.base import Aggregator, ConfusionModel, Traits
from crowdwise.inference import Engine, expected_log, normalize, worker_prior
from crowdwise.inference.posteriors import as_array
from crowdwise.typing import Floats

NAME, SEEDS = "bag-variants", 2
EVEN = 0.05


class EasyHard(ConfusionModel):
    """Each class has two subtypes, of easy and hard tasks, with a matrix each per worker."""

    traits = Traits()

    def _fit(self, engine: Engine) -> Floats:
        def split(share: Floats, _: int) -> Floats:
            return np.stack([share**2, share * (1 - share)], axis=2).reshape(len(share), -1)

        prior = np.repeat(worker_prior((4.0, 1.0), engine.n_classes), 2, axis=0)
        step = engine.tally_votes(split)
        for _ in range(40):
            log_prior, before = np.log(normalize(step.truths + 1.0)), step.counts
            table = expected_log(before + prior)
            step = engine.sweep(log_prior, table)
            if np.abs(step.counts - before).sum() < 1e-3 * before.sum():
                break
        return as_array(engine.posterior(log_prior, table))


class Variant(NamedTuple):
    """A base for a crowd, how its workers are weighted, and what the bags make of it."""

    base: Callable[[Annotations], Aggregator]
    draw: Draw = draw_weights
    answer: Callable[[Scored, Bags, int], Floats] = lambda _, bags, __: answer(bags)


def with_part_of(base: Aggregator, part: float) -> Callable[[Scored, Bags, int], Floats]:
    """A part of the answer comes from the bags of another base."""

    def make(data: Scored, bags: Bags, seed: int) -> Floats:
        return (1 - part) * answer(bags) + part * answer(fit_bags(data, base, seed))

    return make


def more_stable(base: Aggregator) -> Callable[[Scored, Bags, int], Floats]:
    """The answer of the base whose mean is surer: bags that differ cancel each other out."""

    def make(data: Scored, bags: Bags, seed: int) -> Floats:
        other = fit_bags(data, base, seed)
        return answer(max(bags, other, key=lambda one: one.mean.max(axis=1).mean()))

    return make


def dawid_skene(**settings: object) -> DawidSkene:
    return DawidSkene(smoothing=(4.0, 1.0), pooling=3.0, max_iter=40, tol=1e-4, **settings)


def with_classes_of(model: Aggregator, even: float) -> Callable[[Annotations], Aggregator]:
    """Bags with the class prior of a model of the whole crowd, a part of it even."""

    def make(votes: Annotations) -> Aggregator:
        prior = model.fit(votes).prior_
        return dawid_skene(class_prior=(1 - even) * prior + even / len(prior))

    return make


def with_classes_over_bags(even: float) -> Callable[[Annotations], Aggregator]:
    """Bags with the mean class prior of bags that have each their own."""

    def make(votes: Annotations) -> Aggregator:
        first = BayesBag(dawid_skene(), n_bags=20, dependence=0.0).fit(votes)
        prior = np.mean([bag.prior_ for bag in first.bags_[1:]], axis=0)
        return dawid_skene(class_prior=(1 - even) * prior + even / len(prior))

    return make


def draw_milder(votes: Annotations, n_bags: int, seed: int) -> Floats:
    """Gamma weights of shape 2: less spread than exponential ones."""
    return gammaincinv(2.0, np.exp(-draw_weights(votes, n_bags, seed))) / 2.0 + 1e-6


VARIANTS = {
    "own class prior in each bag": Variant(lambda _: dawid_skene()),
    "the same, a fixed dependence of 0.04": Variant(
        lambda _: dawid_skene(), answer=lambda _, bags, __: answer(bags, dependence=0.04)
    ),
    "class prior of IBCC on the whole crowd": Variant(
        with_classes_of(IBCC(max_iter=40, tol=1e-4), 0.0)
    ),
    "the same, 5 % of it even (as in the default)": Variant(
        with_classes_of(IBCC(max_iter=40, tol=1e-4), EVEN)
    ),
    "class prior of the pooled model on the whole crowd": Variant(
        with_classes_of(dawid_skene(), 0.0)
    ),
    "class prior learned over bags, 5 % of it even": Variant(with_classes_over_bags(EVEN)),
    "milder weights, Gamma(2)": Variant(lambda _: dawid_skene(), draw_milder),
    "bags of IBCC": Variant(lambda _: IBCC(max_iter=40, tol=1e-4)),
    "bags of one-coin models": Variant(lambda _: OneCoin(max_iter=40, tol=1e-4)),
    "bags of GLAD, with the difficulty of tasks": Variant(lambda _: GLAD(max_iter=30, tol=1e-4)),
    "bags of easy and hard subtypes": Variant(lambda _: EasyHard()),
    "a fifth from easy and hard subtypes": Variant(
        lambda _: dawid_skene(), answer=with_part_of(EasyHard(), 0.2)
    ),
    "a fifth from one-coin models": Variant(
        lambda _: dawid_skene(), answer=with_part_of(OneCoin(max_iter=40, tol=1e-4), 0.2)
    ),
    "subtypes where they are more stable": Variant(
        lambda _: dawid_skene(), answer=more_stable(EasyHard())
    ),
}


def score_set(name: str) -> dict[str, dict[str, float]]:
    """The mean scores of every variant on one set, over the seeds."""
    data, sums = load(name), dict[str, Counter[str]]()
    for about, variant in VARIANTS.items():
        base = variant.base(data.votes)
        for seed in range(SEEDS):
            bags = fit_bags(data, base, seed, variant.draw)
            add_up(sums, about, measure(variant.answer(data, bags, seed), data.truth))
    return rounded(sums)


def describe(scores: Scores) -> str:
    lines = [
        [about, *(f"{np.mean([own[about][metric] for own in scores.values()]):.4f}"
                  for metric in METRICS)]
        for about in VARIANTS
    ]  # fmt: skip
    return "\n\n".join(
        [
            "# What was tried beside the default of BayesBag",
            f"Means over {len(scores)} real crowds and {SEEDS} seeds.",
            table(["", *METRICS], lines),
        ]
    )


def main() -> None:
    about, file = provenance("python benchmarks/bag_variants.py"), RESULTS / f"{NAME}.json"
    scores: Scores = json.loads(file.read_text())["rows"][0] if file.exists() else {}
    for name, own in side_by_side(score_set, [one for one in LARGEST_FIRST if one not in scores]):
        scores[name] = own
        save(NAME, about, [in_order_of_sets(scores)], describe(scores))
    sys.stdout.write(describe(scores) + "\n")


if __name__ == "__main__":
    main()
