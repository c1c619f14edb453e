"""How often intervals of ``evaluate.estimate`` cover the truth, in simulated panels of judges.

Eight judges err independently, in two blocks, by one factor they all share, or guess. Gold labels
are drawn uniformly, or twice as often among tasks that the judges dispute, which weights undo.
The share of a class is estimated, its difference between two groups of tasks, and a mean rating.
What an interval should cover is the value over all tasks the panel could meet; "of the pool",
that of the tasks at hand. Widths are relative to the same gold labels alone.

python benchmarks/estimate_coverage.py [--repeats 500]
"""

import argparse
import os
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from dependence_coverage import N_JUDGES, PANELS, simulate
from results_files import provenance, save, table

from crowdwise.annotations import Annotations
from crowdwise.evaluate import estimate

N_TASKS, N_GOLD = 1000, (50, 200)
SHARE = 0.5  # of class 1 among all tasks
DEPENDENT = ("two blocks", "one factor")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=500)
    repeats = parser.parse_args().repeats
    rows = []
    for panel in (*PANELS, "guesses"):
        for what in ("labels", "scores") if panel in DEPENDENT else ("labels",):
            rows += [measure(panel, what, "share", n, repeats) for n in N_GOLD]
    for kind in ("share of the pool", "share, disputed tasks drawn more", "difference", "mean"):
        rows.append(measure("two blocks", "scores", kind, 100, repeats))
    header = ["panel", "from", "what", "gold", "coverage", "relative width", "widest"]
    lines = [
        [
            *[str(row[name]) for name in header[:4]],
            f"{row['coverage']:.3f}",
            f"{row['width']:.3f}",
            f"{row['widest']:.3f}",
        ]
        for row in rows
    ]
    text = "# Intervals of numbers estimated from a little gold\n\n" + table(header, lines)
    sys.stdout.write(text + "\n")
    command = f"python benchmarks/estimate_coverage.py --repeats {repeats}"
    save("estimate-coverage", provenance(command), rows, text)


def measure(panel: str, what: str, kind: str, n_gold: int, repeats: int) -> dict[str, object]:
    inside, width = [], []
    for seed in range(repeats):
        votes, truth = guess(seed) if panel == "guesses" else simulate(panel, what, N_TASKS, seed)
        rng = np.random.default_rng([seed, n_gold, 7])
        chance = np.ones(N_TASKS)
        if "disputed" in kind:
            split = votes.votes()
            chance += np.abs(split[:, 0] - split[:, 1]) < N_JUDGES / 2
        drawn = rng.choice(N_TASKS, n_gold, replace=False, p=chance / chance.sum())
        weights = dict(zip(drawn.tolist(), (1.0 / chance[drawn]).tolist(), strict=True))
        options: dict[str, object] = {"weights": weights} if "disputed" in kind else {}
        values, aim, of = truth, SHARE, "share"
        if kind == "difference":
            options["groups"] = dict(enumerate((np.arange(N_TASKS) % 2).tolist()))
            aim, of = 0.0, "difference"
        elif kind == "mean":
            values, aim, of = 3.0 + 2.0 * truth + rng.normal(size=N_TASKS), 4.0, "mean"
        elif kind == "share of the pool":
            options["finite"], aim = True, float(truth.mean())
        gold = dict(zip(drawn.tolist(), values[drawn].tolist(), strict=True))
        found = estimate(votes, gold, of, random_state=seed, **options)
        inside.append(found.low <= aim <= found.high)
        width.append((found.high - found.low) / (found.alone.high - found.alone.low))
    return {
        "panel": panel,
        "from": what,
        "what": kind,
        "gold": n_gold,
        "coverage": float(np.mean(inside)),
        "width": float(np.mean(width)),
        "widest": float(np.max(width)),
        "repeats": repeats,
    }


def guess(seed: int) -> tuple[Annotations, np.ndarray]:
    """Judges whose labels have nothing to do with the truth."""
    votes, _ = simulate("independent", "labels", N_TASKS, seed)
    return votes, np.random.default_rng([seed, 8]).integers(0, 2, N_TASKS)


if __name__ == "__main__":
    main()
