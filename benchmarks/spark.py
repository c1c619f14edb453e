"""A step of Dawid-Skene on Spark, in both forms, against the same step in one process.

python benchmarks/spark.py --sizes 1e6,1e7

Four classes, five labels a task, workers of very different activity. Spark runs on this machine
with a rank for each core, and the process beside it has as many threads. A step is timed where
the loop runs, so that starting a stage, reading and encoding do not count; they are shown apart.
The loop in one process ends with the posterior, which Spark makes later: less than a step, shared
by all of them.
"""

import argparse
import os
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from results_files import provenance, save, table

from crowdwise import Annotations
from crowdwise.aggregate import DawidSkene

LIMITS = {("barrier", 10**6): 2.5, ("barrier", 10**7): 1.3, ("steps", 10**7): 20.0}


class Timed(DawidSkene):
    """Dawid-Skene that knows how long its loop took."""

    def _fit(self, engine):
        start = time.perf_counter()
        found = super()._fit(engine)
        self.seconds_ = time.perf_counter() - start
        return found


def draw(n, seed=0):
    """Annotations as columns of numbers."""
    rng = np.random.default_rng(seed)
    n_tasks, n_workers = n // 5, 1000
    truth = rng.integers(0, 4, n_tasks)
    task = np.repeat(np.arange(n_tasks, dtype=np.int64), 5)
    worker = np.minimum(rng.pareto(1.0, len(task)) * 5, n_workers - 1).astype(np.int64)
    right = rng.random(len(task)) < 0.5 + 0.4 * (worker % 7) / 6
    label = np.where(right, truth[task], rng.integers(0, 4, len(task)))
    return pd.DataFrame({"task": task, "worker": worker, "label": label})


def time_local(votes, n_steps, n_threads):
    columns = (votes[name].to_numpy() for name in ("task", "worker", "label"))
    data = Annotations.from_codes(*columns)
    model = Timed(max_iter=n_steps, tol=0, n_jobs=n_threads)
    return min(model.fit(data).seconds_ for _ in range(3)) / n_steps


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="1e6,1e7")
    parser.add_argument("--output", default="spark")
    args = parser.parse_args()
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    from crowdwise.spark import CrowdAggregator

    cores = len(os.sched_getaffinity(0))
    builder = SparkSession.builder.master(f"local[{cores}]").config("spark.ui.enabled", "false")
    host = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    for name, value in {**host, "spark.driver.memory": "4g", "spark.log.level": "ERROR"}.items():
        builder = builder.config(name, value)
    spark, rows = builder.getOrCreate(), []
    for n in (int(float(size)) for size in args.sizes.split(",")):
        votes = draw(n)
        n_steps = {"barrier": 200 if n <= 10**6 else 50, "steps": 20}
        local = time_local(votes, n_steps["barrier"], cores)
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "votes.parquet")
            votes.to_parquet(path, row_group_size=1 << 18)
            frame = spark.read.parquet(path)
            for form, number in n_steps.items():
                start = time.perf_counter()
                method = Timed(max_iter=number, tol=0)
                model = CrowdAggregator(method, form=form).fit(frame)
                whole = time.perf_counter() - start
                step = model.method.seconds_ / number
                row = {
                    "annotations": n,
                    "form": form,
                    "local step, ms": round(1e3 * local, 2),
                    "Spark step, ms": round(1e3 * step, 2),
                    "ratio": round(step / local, 2),
                    "at most": LIMITS.get((form, n)),
                    "rest of the fit, s": round(whole - model.method.seconds_, 1),
                }
                print(row, flush=True)
                rows.append(row)
    spark.stop()
    report(args.output, rows, f"python benchmarks/spark.py --sizes {args.sizes}")


def report(name, rows, command):
    """Write the rows as JSON and as a page."""
    header = list(rows[0])
    cells = [["" if row[key] is None else str(row[key]) for key in header] for row in rows]
    busy = f"On average {os.getloadavg()[1]:.0f} processes wanted to run meanwhile."
    text = "\n\n".join(["# Dawid-Skene on Spark", busy, table(header, cells)])
    save(name, provenance(command), rows, text)


if __name__ == "__main__":
    main()
