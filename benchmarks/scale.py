"""What a fit of Dawid-Skene costs on many machines: a model fitted to measurements of this one.

python benchmarks/scale.py    # writes benchmarks/results/scale.json and .md

Processor time of reading, steps and writing is measured on one core; the costs of a step are
fitted to ranks of one process, and checked on other numbers of ranks and workers. The tables
after that are arithmetic.
"""

import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, log2
from pathlib import Path

import numpy as np
import pandas as pd
from crowds_of_size import PER_TASK
from engines import crowd
from results_files import provenance, save, table

from crowdwise import Annotations
from crowdwise.aggregate import DawidSkene
from crowdwise.inference.engines import FileEngine, run_ranks
from crowdwise.inference.engines.blocks import cut_tasks
from crowdwise.inference.engines.engine import CELL
from crowdwise.io import stream_labels
from crowdwise.laws.checks import store_without_names

CLASSES, STEPS = 4, 20
CORES, MEMORY, NETWORK, PRICE = 16, 64e9, 1.25e9, 0.8  # a node: bytes, bytes a second, $ an hour
HOURS = 1.0  # in which steps should be done, if more nodes help
SHARE = 0.7  # of a node's memory that tables may take


@dataclass(frozen=True)
class Costs:
    """Processor seconds."""

    read: float  # an annotation: from Parquet to codes on disk
    sweep: float  # an annotation and step
    cell: float  # a cell of the tables and step, on each rank: logarithms, sums of a block
    write: float  # a task: posterior and labels to Parquet


def processor(work: Callable[[], object], times: int = 3) -> float:
    """The least processor time of several."""
    taken = []
    for _ in range(times):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return min(taken)


def fit_ranks(votes: Annotations, folder: Path, size: int, steps: int) -> float:
    """Processor seconds of a step, on ranks that are threads of this process."""
    stored = store_without_names(votes, folder)

    def fit(n_steps: int) -> None:
        def work(group: object) -> None:
            model = DawidSkene(max_iter=n_steps, tol=0)
            model.fit_engine(FileEngine(stored, 1, group), stored.classes)

        run_ranks(size, work)

    return (processor(lambda: fit(1 + steps)) - processor(lambda: fit(1))) / steps


def count_cells(votes: Annotations, size: int) -> int:
    """Cells of tables that are made, and of sums that are added, on all ranks in a step."""
    cells = len(votes.pairs) * votes.n_classes
    found = np.searchsorted
    blocks = cut_tasks(
        votes.n_tasks, votes.n_annotations, lambda at: found(votes.indptr, at), cells, size
    )
    return cells * (size + len(blocks))


def measure_steps(folder: Path, n: int = 1_000_000) -> tuple[float, float, list[dict]]:
    """Costs of an annotation and of a cell from two crowds, and how well they predict others."""
    seen = []
    for n_workers in (1_000, 30_000, 100_000):
        votes = crowd(n_workers, CLASSES, n)
        for size in (1, 2, 4, 8):
            home = folder / f"{n_workers}-{size}"
            home.mkdir()
            seconds = fit_ranks(votes, home, size, 4)
            seen.append(
                {
                    "workers": n_workers,
                    "ranks": size,
                    "annotations": votes.n_annotations,
                    "cells": count_cells(votes, size),
                    "seconds": seconds,
                }
            )
            sys.stderr.write(f"{seen[-1]}\n")
    used = [one for one in seen if one["ranks"] in (1, 4) and one["workers"] != 30_000]
    design = np.array([[one["annotations"], one["cells"]] for one in used], dtype=float)
    taken = np.array([one["seconds"] for one in used])
    weight = 1.0 / taken  # relative errors count
    sweep, cell = np.linalg.lstsq(design * weight[:, None], taken * weight, rcond=None)[0]
    for one in seen:
        one["fitted"] = one in used
        one["predicted"] = float(sweep * one["annotations"] + cell * one["cells"])
    return float(sweep), float(cell), seen


def measure_files(folder: Path, n: int = 1_000_000) -> tuple[float, float]:
    """Costs of reading an annotation into codes on disk, and of writing a task's label."""
    votes = crowd(5_000, CLASSES, n)
    file = folder / "votes.parquet"
    names = {"task": votes.task, "worker": votes.worker, "label": votes.label}
    pd.DataFrame(names).sample(frac=1, random_state=0).to_parquet(file)
    place = iter(range(9))
    read = processor(lambda: Annotations.open(file, folder / f"{next(place)}.crowd"))
    model = DawidSkene(max_iter=1, tol=0, n_jobs=1).fit(Annotations.open(file, folder / "0.crowd"))
    write = processor(lambda: stream_labels(model, folder / "labels.parquet"))
    return read / votes.n_annotations, write / votes.n_tasks


def plan(costs: Costs, n: float, n_workers: float) -> dict:
    """Nodes, hours and dollars of a fit, and what breaks first."""
    cells = min(n_workers * CLASSES, n) * CLASSES
    tables = CELL * cells
    per_step = costs.sweep * n  # on one core
    nodes = max(ceil(STEPS * per_step / CORES / 3600 / HOURS), 1)
    sharded = tables > SHARE * MEMORY
    if sharded:  # each node keeps the tables of some workers, and fetches the rows that it needs
        nodes = max(nodes, ceil(tables / (SHARE * MEMORY)))
        rows = min(cells, CLASSES * n / nodes)
        network = 2 * 8 * rows / NETWORK
    else:
        network = 2 * ceil(log2(nodes)) * 8 * cells / NETWORK
    own = cells / nodes if sharded else 2 * cells  # tables are made on every node, or on one
    step = per_step / CORES / nodes + costs.cell * own / (CORES if sharded else 1) + network
    once = (costs.read * n + costs.write * n / PER_TASK) / CORES / nodes
    parts = {"reading and writing": once, "sweeps": STEPS * per_step / CORES / nodes}
    parts |= {"network": STEPS * network, "tables": STEPS * costs.cell * own}
    hours = (once + STEPS * step) / 3600
    first = "memory of a node: tables must be shared out by worker" if sharded else "nothing"
    return {
        "annotations": n,
        "workers": n_workers,
        "nodes": nodes,
        "hours": hours,
        "dollars": hours * nodes * PRICE,
        "table_gb": tables / 1e9 / (nodes if sharded else 1),
        "network_gb": 8 * cells / 1e9 if not sharded else 2 * 8 * rows / 1e9,
        "disk_gb": (4 + 1 / PER_TASK) * n / nodes / 1e9,
        "breaks": first,
        "most": max(parts, key=parts.__getitem__),
    }


def main() -> None:
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as home:
        sweep, cell, seen = measure_steps(Path(home))
        read, write = measure_files(Path(home))
    costs = Costs(read, sweep, max(cell, 0.0), write)
    plans = [plan(costs, n, w) for n in (1e9, 1e10, 1e11) for w in (1e4, 1e5, 1e6, 1e7, 1e8)]
    text = "# Scale on paper\n\n" + costs_text(costs) + "\n\n" + check_text(seen) + "\n\n"
    save(
        "scale",
        provenance("make bench-scale"),
        [vars(costs), *seen, *plans],
        text + plan_text(plans),
    )


def costs_text(costs: Costs) -> str:
    rows = [
        ["reading: Parquet to codes on disk", "annotation", costs.read],
        ["sweep", "annotation and step", costs.sweep],
        ["tables and sums", "cell of a table and step, on each rank", costs.cell],
        ["posterior and labels to Parquet", "task", costs.write],
    ]
    lines = [[what, of, f"{1e9 * value:.3g}"] for what, of, value in rows]
    return table(["part", "for each", "processor ns"], lines)


def check_text(seen: list[dict]) -> str:
    lines = [
        [
            f"{one['workers']:,}",
            str(one["ranks"]),
            f"{1e3 * one['seconds']:.0f}",
            f"{1e3 * one['predicted']:.0f}",
            f"{one['predicted'] / one['seconds']:.2f}",
            "yes" if one["fitted"] else "no",
        ]
        for one in seen
    ]
    head = ["workers", "ranks", "processor ms of a step", "by the model", "ratio", "fitted to it"]
    return table(head, lines)


def plan_text(plans: list[dict]) -> str:
    lines = [
        [
            f"{one['annotations']:.0e}",
            f"{one['workers']:.0e}",
            f"{one['nodes']:,}",
            f"{one['hours']:.2f}",
            f"{one['dollars']:,.2f}",
            f"{one['table_gb']:.2g}",
            f"{one['network_gb']:.2g}",
            f"{one['disk_gb']:.0f}",
            one["most"],
            one["breaks"],
        ]
        for one in plans
    ]
    head = ["annotations", "workers", "nodes", "hours", "dollars", "tables, GB a node"]
    head += ["sent a step and node, GB", "disk, GB a node", "most time", "breaks first"]
    return table(head, lines)


if __name__ == "__main__":
    main()
