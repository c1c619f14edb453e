"""Draws of truths, workers and class shares that could be behind the labels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
from sklearn.utils import check_random_state

from crowdwise.aggregate.families import measure_families
from crowdwise.annotations import Annotations
from crowdwise.evaluate.family_draws import draw_family_chain
from crowdwise.evaluate.misled import Misled
from crowdwise.evaluate.worker_draws import Draw, draw_truths, draw_workers
from crowdwise.inference import MemoryEngine, fingerprint, one_hot
from crowdwise.typing import Array, Floats, Ints, RandomState

MOST, FEWEST, WORK = 2_000, 120, 4_000_000  # steps of the chain, and annotations times steps
BURN = 6  # one step in this many is burn-in
KEPT = 200  # maximum number of draws kept
ALONE = 3  # one draw in this many is of independent workers, if labels show families
MOST_CELLS = 4_000_000  # tasks times pairs of classes, for draws of families
GOLDEN = (5.0**0.5 - 1.0) / 2  # multiples of it are spread evenly over [0, 1)


@dataclass(frozen=True)
class CrowdDraws:
    """Possible workers and class shares, one row per draw."""

    accuracy: Floats  # (draw, worker): P(right) on a task drawn from the class shares
    shares: Floats  # (draw, class)
    right: Floats  # (draw,): share of the labeled tasks whose most probable class is true
    confusion: Array | None  # (draw, worker, truth, label), if asked for

    def interval(self, name: str, confidence: float = 0.95) -> tuple[Array, Array]:
        """Return bounds of one of the above with this coverage.

        A new draw is below the k-th of n with probability k / (n + 1), so these levels are used:
        numpy's default quantiles lie further inside, and cover 92 % instead of 95 % at 60 draws.
        """
        tail = (1.0 - confidence) / 2
        levels = [tail, 1.0 - tail]
        low, high = np.quantile(getattr(self, name), levels, axis=0, method="weibull")
        return low, high


def draw_crowds(
    data: Annotations,
    posterior: Floats,
    gold: Ints | None = None,
    *,
    confusion: bool = False,
    random_state: RandomState = 0,
) -> CrowdDraws:
    """Draw truths and workers that could be behind the labels.

    A chain draws workers given truths and truths given workers, as if workers erred
    independently, so its draws are as spread out as the labels allow. If labels show families of
    workers who err together, most draws come from a chain that has families, too. But where all
    workers are misled together, labels do not show it. So in one drawn crowd of five, the truths
    of some tasks differ from what the workers mean; see
    :class:`~crowdwise.evaluate.misled.Misled`.

    Parameters
    ----------
    data : Annotations
        One label per worker and task.
    posterior : ndarray of shape (n_tasks, n_classes)
        P(truth | labels), whose most probable classes may be right or wrong.
    gold : ndarray of shape (n_tasks,), optional
        Class number of known truths, -1 for the others.
    confusion : bool, default=False
        Whether to keep the confusion matrices of all draws.
    random_state : int or RandomState, default=0
        Random seed.
    """
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    engine, misled = MemoryEngine(data, gold), Misled.of(data, gold)
    right = float(posterior[data.task, data.label].mean()) if data.n_annotations else 0.5
    labeled = np.flatnonzero(data.redundancy > 0)
    label = posterior[labeled].argmax(axis=1)
    accuracy, shares, agree, matrices = [], [], [], []
    level = rng.random()
    for answers, meant, often in draw_both(data, gold, posterior, right, rng):
        matrix, share = meant, often
        level = (level + GOLDEN) % 1.0
        rate = misled.rate(level, np.log(share), np.log(matrix))
        truth = misled.draw_truths(answers.argmax(axis=1), rate, gold, rng)
        if rate:
            truths = one_hot(truth, posterior.shape[1])
            given = float(truths[data.task, data.label].mean())
            matrix, share = draw_workers(engine, truths, given, rng)
        accuracy.append(np.einsum("wkk,k->w", matrix, share))
        shares.append(share)
        agree.append((truth[labeled] == label).mean())
        if confusion:
            matrices.append(matrix.astype(np.float32))
    kept = np.array(matrices) if confusion else None
    return CrowdDraws(np.array(accuracy), np.array(shares), np.array(agree), kept)


def draw_both(
    data: Annotations,
    gold: Ints | None,
    posterior: Floats,
    right: float,
    rng: np.random.Generator,
) -> Iterator[Draw]:
    """Draw crowds of independent workers, and mostly of families if labels show some."""
    engine = MemoryEngine(data, gold)
    families = measure_families(engine, fingerprint(engine))
    if not len(families) or data.n_tasks * data.n_classes**2 > MOST_CELLS:
        yield from draw_chain(engine, posterior, right, rng)
        return
    alone = list(islice(draw_chain(engine, posterior, right, rng), 0, None, ALONE))
    yield from alone
    n_draws = (ALONE - 1) * len(alone)
    yield from draw_family_chain(data, gold, posterior, right, families, n_draws, rng)


def draw_chain(
    engine: MemoryEngine, posterior: Floats, right: float, rng: np.random.Generator
) -> Iterator[Draw]:
    """Draw truths given workers and class shares, and these given truths, in turn.

    Workers and truths hold one another in place, so the chain moves slowly, most of all with few
    labels per task: it makes many steps where they are cheap.
    """
    n_steps = int(np.clip(WORK // max(engine.annotations.n_annotations, 1), FEWEST, MOST))
    apart = max(n_steps // KEPT, 1)
    for step in range(n_steps):
        truths = draw_truths(posterior, rng)
        matrices, shares = draw_workers(engine, truths, right, rng)
        posterior = engine.posterior(np.log(shares), np.log(matrices))
        if step >= n_steps // BURN and step % apart == 0:
            yield truths, matrices, shares


def sample_tasks(data: Annotations, most: int, random_state: RandomState) -> Ints:
    """Return the rows of all tasks, or of random ones with about ``most`` annotations."""
    if data.n_annotations <= most:
        return np.arange(data.n_tasks)
    n_tasks = max(int(data.n_tasks * most / data.n_annotations), 1)
    return np.sort(check_random_state(random_state).permutation(data.n_tasks)[:n_tasks])
