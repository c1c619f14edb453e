"""How long JudgePanel takes for a million tasks that twenty judges scored.

Judges are of five families that err together. Seconds are of one fit, posterior included: of the
clock, and of the processors, which is what they would take on a machine with nothing else to do.
The load of the machine when it began stands beside.

python benchmarks/panel_speed.py [--tasks 1000000]
"""

import argparse
import os
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "2")

import numpy as np
from results_files import provenance, save, table

from crowdwise.aggregate import JudgePanel
from crowdwise.annotations import Annotations

N_JUDGES, N_FAMILIES = 20, 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=int, default=1_000_000)
    n_tasks = parser.parse_args().tasks
    rows = []
    for what in ("labels", "scores"):
        votes, truth = simulate(n_tasks, what == "scores")
        load, start, worked = os.getloadavg()[0], time.perf_counter(), time.process_time()
        model = JudgePanel().fit(votes)
        seconds, worked = time.perf_counter() - start, time.process_time() - worked
        right = float((model.posterior_.argmax(axis=1) == truth).mean())
        times = {"seconds": seconds, "processor": worked, "load": load}
        rows.append({"from": what, **times, "accuracy": right})
    shown = ("seconds", "processor", "load")
    lines = [
        [row["from"], *[f"{row[name]:.1f}" for name in shown], f"{row['accuracy']:.3f}"]
        for row in rows
    ]
    text = f"# JudgePanel on {n_tasks:,} tasks and {N_JUDGES} judges\n\n"
    text += table(["from", "seconds", "processor seconds", "load before", "accuracy"], lines)
    sys.stdout.write(text + "\n")
    save(
        "panel-speed", provenance(f"python benchmarks/panel_speed.py --tasks {n_tasks}"), rows, text
    )


def simulate(n_tasks: int, scores: bool) -> tuple[Annotations, np.ndarray]:
    """Scores from 0 to 9 with errors that families share, and the truth."""
    rng = np.random.default_rng(0)
    truth = rng.random(n_tasks) < 0.4
    family = np.arange(N_JUDGES) % N_FAMILIES
    together = rng.standard_normal((n_tasks, N_FAMILIES), dtype=np.float32)[:, family]
    alone = rng.standard_normal((n_tasks, N_JUDGES), dtype=np.float32)
    score = np.clip(np.round(2.4 * truth[:, None] + 1.2 * together + 2 * alone + 3), 0, 9).ravel()
    votes = Annotations.from_codes(
        np.repeat(np.arange(n_tasks), N_JUDGES),
        np.tile(np.arange(N_JUDGES), n_tasks),
        (score > 4.5).astype(np.int8),
        score=score if scores else None,
    )
    return votes.with_workers({"worker": range(N_JUDGES), "family": family}), truth


if __name__ == "__main__":
    main()
