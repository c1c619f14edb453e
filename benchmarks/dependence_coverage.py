"""How often the interval of the effective number of judges covers it, in simulated panels.

Eight judges err independently, in two blocks, or by one factor they all share. The effective
number of a panel is taken from 200,000 tasks with their truths; intervals come from 50 or 200.
Without truths there is only a point: its bias stands beside, from 1,000 tasks.

python benchmarks/dependence_coverage.py [--repeats 400]
"""

import argparse
import os
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from results_files import provenance, save, table
from scipy.special import ndtri

from crowdwise.annotations import Annotations
from crowdwise.evaluate import dependence

N_JUDGES = 8
BLOCK = np.arange(N_JUDGES) // 4
LOADING = np.linspace(0.3, 0.9, N_JUDGES)
PANELS = {  # correlation of what errors come from
    "independent": np.eye(N_JUDGES),
    "two blocks": np.where(BLOCK[:, None] == BLOCK, 0.7, 0.0),
    "one factor": np.outer(LOADING, LOADING),
}
WRONG = np.linspace(0.15, 0.4, N_JUDGES)
N_KNOWN, N_UNKNOWN, N_MANY = (50, 200), 1000, 200_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=400)
    repeats = parser.parse_args().repeats
    rows = [measure(panel, what, repeats) for panel in PANELS for what in ("labels", "scores")]
    header = [
        "panel",
        "from",
        "number",
        *[f"coverage, {n} truths" for n in N_KNOWN],
        "bias without",
    ]
    lines = [
        [
            row["panel"],
            row["from"],
            f"{row['number']:.2f}",
            *[f"{row[f'coverage {n}']:.3f}" for n in N_KNOWN],
            f"{row['bias']:+.0%}",
        ]
        for row in rows
    ]
    text = "# Intervals of the effective number of judges\n\n" + table(header, lines)
    sys.stdout.write(text + "\n")
    command = f"python benchmarks/dependence_coverage.py --repeats {repeats}"
    save("dependence-coverage", provenance(command), rows, text)


def measure(panel: str, what: str, repeats: int) -> dict[str, object]:
    votes, truth = simulate(panel, what, N_MANY, -1)
    number = dependence(votes, truth, n_resamples=0).effective_number.value
    number = float(N_JUDGES) if panel == "independent" else number
    row: dict[str, object] = {"panel": panel, "from": what, "number": number}
    for n_tasks in N_KNOWN:
        inside = []
        for seed in range(repeats):
            found = dependence(*simulate(panel, what, n_tasks, seed)).effective_number
            inside.append(found.low <= number <= found.high)
        row[f"coverage {n_tasks}"] = float(np.mean(inside))
    drawn = [simulate(panel, what, N_UNKNOWN, seed)[0] for seed in range(max(repeats // 20, 2))]
    points = [float(dependence(votes).effective_number) for votes in drawn]
    row["bias"] = float(np.mean(points)) / number - 1
    return row


def simulate(panel: str, what: str, n_tasks: int, seed: int) -> tuple[Annotations, np.ndarray]:
    """Two classes; scores are normal within a class, labels wrong at the judge's rate."""
    rng = np.random.default_rng([seed + 1, n_tasks])
    truth = rng.integers(0, 2, n_tasks)
    correlation = PANELS[panel].copy()
    np.fill_diagonal(correlation, 1.0)
    z = rng.standard_normal((n_tasks, N_JUDGES)) @ np.linalg.cholesky(correlation).T
    wrong = z < ndtri(WRONG)
    labels = np.where(wrong, 1 - truth[:, None], truth[:, None])
    score = None if what == "labels" else (z + 1.5 * truth[:, None]).ravel()
    if score is not None:
        labels = (score > 0.75).astype(int)
    task, judge = np.indices((n_tasks, N_JUDGES))
    return Annotations.from_codes(
        task.ravel(), judge.ravel(), labels.ravel(), classes=[0, 1], score=score
    ), truth


if __name__ == "__main__":
    main()
