"""How long a plan takes for a million tasks with five labels each.

Seconds are of one plan, the fit included: of the clock, and of the processors, which is what they
would take on a machine with nothing else to do.

python benchmarks/plan_speed.py [--tasks 1000000]
"""

import argparse
import os
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "2")

import numpy as np
from results_files import provenance, save, table

from crowdwise.annotations import Annotations
from crowdwise.plan import Planner

PER_TASK, N_WORKERS, N_CLASSES, TARGET = 5, 5_000, 4, 0.99
PLANS = {
    "1,000 labels by anyone": (1_000, 0),
    "1,000 labels by 1,000 workers": (1_000, 1_000),
    "100,000 labels by 1,000 workers": (100_000, 1_000),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=int, default=1_000_000)
    votes = draw(parser.parse_args().tasks)
    rows = []
    for name, (budget, n_workers) in PLANS.items():
        available = list(range(n_workers)) if n_workers else None
        clock, processor = time.perf_counter(), time.process_time()
        plan = Planner(target=TARGET).next(votes, budget, available=available)
        assert 0 < len(plan) <= budget
        rows.append(
            {
                "plan": name,
                "tasks": votes.n_tasks,
                "labels": votes.n_annotations,
                "planned": len(plan),
                "seconds": time.perf_counter() - clock,
                "processor": time.process_time() - processor,
                "load": os.getloadavg()[0],
            }
        )
        sys.stderr.write(f"{name}: {rows[-1]['processor']:.1f} s of the processor\n")
    cells = [
        [
            str(row["plan"]),
            *(f"{row[key]:,}" for key in ("tasks", "labels")),
            *(f"{row[key]:.1f}" for key in ("seconds", "processor", "load")),
        ]
        for row in rows
    ]
    text = (
        "# How long a plan takes\n\nSeconds by the clock and of the processors, fit included.\n\n"
    )
    head = ["plan", "tasks", "labels", "seconds", "processor seconds", "load"]
    save(
        "plan-speed", provenance("python benchmarks/plan_speed.py"), rows, text + table(head, cells)
    )


def draw(n_tasks: int) -> Annotations:
    rng = np.random.default_rng(0)
    truth, skill = rng.integers(0, N_CLASSES, n_tasks), rng.uniform(0.5, 0.95, N_WORKERS)
    task = np.repeat(np.arange(n_tasks), PER_TASK)
    worker = rng.integers(0, N_WORKERS, len(task))
    right = rng.random(len(task)) < skill[worker]
    label = np.where(right, truth[task], rng.integers(0, N_CLASSES, len(task)))
    return Annotations.from_codes(task, worker, label)


if __name__ == "__main__":
    main()
