"""Why no interval fits all crowds: what labels show of crowds that need different ones.

    python benchmarks/coverage_limits.py

Simulated crowds of 20 workers with 3 labels per task (60 labels of each worker), who err
independently, on uneven tasks, or together on a share of tasks; and others of independent
workers. How much workers err together, as labels show it, is compared with the first kind: the
probability that a crowd shows more than a plain one (half: labels do not tell them apart). Then
bounds of ``mean - a * sd`` and ``mean + b * sd`` of the draws for independent workers, with the
same a and b for all of the first four kinds: those that cover nearest to 95 % in each of the
four. They are then tried on the others. Writes benchmarks/results/coverage-limits.{json,md}.
"""

from __future__ import annotations

import sys
import warnings
from itertools import product

import numpy as np
from results_files import provenance, save, table

from crowdbench.tables.coverage import simulate
from crowdwise.aggregate import BayesBag
from crowdwise.aggregate.shared_errors import measure_shared_errors
from crowdwise.evaluate.draws import draw_chain
from crowdwise.inference import MemoryEngine, fingerprint

NAME, RUNS, FIRST = "coverage-limits", 24, 2000
SMALL = {"n_workers": 20, "per_task": 3}
KINDS = {
    "plain": SMALL,
    "uneven tasks": SMALL | {"spread": 1.0},
    "5 % traps": SMALL | {"traps": 0.05},
    "15 % traps": SMALL | {"traps": 0.15},
    "5 workers, 2 labels": {"n_workers": 5, "per_task": 2},
    "3 classes, one of them rare": {"n_workers": 20, "per_task": 3, "n_classes": 3, "rare": 0.05},
    "10 classes": {"n_workers": 20, "per_task": 3, "n_classes": 10},
    "a large clique": {"n_workers": 20, "per_task": 3, "clique": 0.5},
}
ALIKE = tuple(KINDS)[:4]


def run(name: str, seed: int) -> dict[str, object]:
    """Measure the visible correlation, and how far off workers' accuracies are, in sds."""
    data = simulate(seed, **KINDS[name])
    votes = data.annotations
    engine, posterior = MemoryEngine(votes), np.asarray(BayesBag().fit(votes).posterior_)
    shared = measure_shared_errors(engine, fingerprint(engine))
    assert shared is not None
    right = float(posterior[votes.task, votes.label].mean())
    chain = draw_chain(engine, posterior, right, np.random.default_rng(seed))
    drawn = np.array([np.einsum("wkk,k->w", matrices, shares) for _, matrices, shares in chain])
    off = (data.accuracy - drawn.mean(axis=0)) / drawn.std(axis=0)
    return {"crowd": name, "shown": shared.excess, "off": off.round(4).tolist()}


def choose_bounds(off: dict[str, np.ndarray]) -> tuple[float, float]:
    """Return a and b that cover nearest to 95 % in each of the kinds that look alike."""
    grid = product(np.arange(1.5, 5.0, 0.05), np.arange(1.0, 4.0, 0.05))
    return min(grid, key=lambda ends: max(abs(cover(off[k], *ends) - 0.95) for k in ALIKE))


def cover(off: np.ndarray, below: float, above: float) -> float:
    return float(np.mean((off >= -below) & (off <= above)))


def describe(rows: list[dict[str, object]]) -> str:
    shown = {k: np.array([row["shown"] for row in rows if row["crowd"] == k]) for k in KINDS}
    off = {k: np.array([row["off"] for row in rows if row["crowd"] == k]).ravel() for k in KINDS}
    ends = choose_bounds(off)
    lines = [
        [
            name,
            str(len(shown[name])),
            f"{np.mean(shown[name][:, None] > shown['plain']):.2f}" if name in ALIKE[1:] else "",
            f"{off[name].mean():+.2f}",
            f"{cover(off[name], 1.96, 1.96):.3f}",
            f"{cover(off[name], *ends):.3f}",
        ]
        for name in KINDS
    ]
    head = ["crowd", "runs", "shows more than plain", "mean error, sds", "±1.96 sd"]
    head.append(f"-{ends[0]:.2f} to +{ends[1]:.2f} sd")
    about = (__doc__ or "").split("\n\n")[2].replace("\n", " ").split(" Writes")[0]
    return "\n\n".join(["# What labels show of crowds that mislead", about, table(head, lines)])


def main() -> None:
    warnings.simplefilter("ignore")
    rows = [run(name, seed) for name in KINDS for seed in range(FIRST, FIRST + RUNS)]
    text = describe(rows)
    save(NAME, provenance("python benchmarks/coverage_limits.py"), rows, text)
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    main()
