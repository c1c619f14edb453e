"""How far a live model is from a fit to all labels so far, and what a label costs.

Real crowds come in small pieces: one whose labels have times in their order (read from
$CROWDWISE_DATA where it is set), others in a random one. Whenever 1,000 labels more have come,
the posterior is compared with that of a fit to all of them, and once more 500 labels later.
Then a simulated crowd of a million labels goes on label by label.

python benchmarks/live.py [--labels 1000000]
"""

import argparse
import os
import sys
import time
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "2")

import numpy as np
import pandas as pd
from results_files import provenance, save, table
from sklearn.base import clone

from crowdwise.aggregate import IBCC, DawidSkene, HardDawidSkene, MajorityVote, OneCoin, Wawa
from crowdwise.annotations import Annotations
from crowdwise.datasets import load

METHODS = [DawidSkene(), IBCC(), HardDawidSkene(), OneCoin(), Wawa(), MajorityVote()]
SETS = ("rte", "dog", "sentiment_tweets", "weather_amt", "zencrowd_us")
TIMED = "time_medical_relex"
PIECE = 100  # labels of an update
MOST = 6_000  # labels of a crowd
ONE_BY_ONE = 2_000  # labels that are timed: two fits to all labels are due among them


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--labels", type=int, default=1_000_000)
    n_labels = parser.parse_args().labels
    near = [compare(method, *crowd) for crowd in crowds() for method in METHODS]
    costs = [
        cost(method, n_labels, wait) for method in (DawidSkene(), IBCC()) for wait in (True, False)
    ]
    save("live", provenance("python benchmarks/live.py"), near + costs, page(near, costs))


def crowds() -> list[tuple[str, str, pd.DataFrame]]:
    """Name, order and rows of each crowd."""
    found = []
    folder = Path(os.environ.get("CROWDWISE_DATA", "")) / TIMED
    if (folder / "annotations.csv.gz").exists():
        rows = pd.read_csv(folder / "annotations.csv.gz").sort_values("created_at", kind="stable")
        cause = rows["label"].str.split("|").map(lambda names: "CAUSES" in names)
        rows = rows.assign(label=np.where(cause, "causes", "no"))
        rows = rows.drop_duplicates(["task", "worker"])[["task", "worker", "label"]]
        found.append((TIMED, "time", rows[:MOST].reset_index(drop=True)))
    for name in SETS:
        rows = load(name, progress=False).annotations.without_repeats("last").to_frame()
        rows = rows[["task", "worker", "label"]].sample(frac=1, random_state=0)
        found.append((name, "random", rows[:MOST].reset_index(drop=True)))
    return found


def compare(method, name: str, order: str, rows: pd.DataFrame) -> dict[str, object]:
    """The largest difference from a fit after every 1,000 labels, and in between."""
    live, at, between = clone(method), [], []
    for start in range(0, len(rows) - PIECE, PIECE):
        seen = start + PIECE
        live.update(rows[start:seen])
        if seen % 1_000 == 0:
            at.append(differ(live, method, rows[:seen]).max())
        elif seen % 1_000 == 500:
            between.append(differ(live, method, rows[:seen]).mean())
    sys.stderr.write(f"{name}, {method}: {max(at):.1e}\n")
    return {
        "set": name,
        "order": order,
        "method": type(method).__name__,
        "labels": seen,
        "largest difference at thousands": float(max(at)),
        "mean difference in between": float(np.mean(between)),
    }


def differ(live, method, rows: pd.DataFrame) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = clone(method).fit(rows).probas_
    return np.abs(live.probas_.loc[fitted.index, fitted.columns] - fitted).to_numpy()


def cost(method, n_labels: int, wait: bool) -> dict[str, object]:
    """Milliseconds for each label that follows on many."""
    rng = np.random.default_rng(0)
    n_tasks, n_workers, k = n_labels // 5, 1_000, 4
    truth, skill = rng.integers(0, k, n_tasks), rng.uniform(0.5, 0.95, n_workers)
    task = rng.permutation(np.repeat(np.arange(n_tasks), 5))
    worker = rng.integers(0, n_workers, len(task))
    right = rng.random(len(task)) < skill[worker]
    label = np.where(right, truth[task], rng.integers(0, k, len(task)))
    first = len(task) - ONE_BY_ONE
    columns = [column[:first] for column in (task, worker, label)]
    live = clone(method).update(Annotations.from_codes(*columns))
    clock, processor = [], time.process_time()
    for row in zip(task[first:], worker[first:], label[first:], strict=True):
        one = [[name] for name in map(int, row)]
        start = time.perf_counter()
        votes = Annotations.from_codes([0], [0], [0], tasks=one[0], workers=one[1], classes=one[2])
        live.update(votes, wait=wait)
        clock.append(1e3 * (time.perf_counter() - start))
    processor = 1e3 * (time.process_time() - processor) / ONE_BY_ONE
    sys.stderr.write(f"{method}: {np.mean(clock):.1f} ms a label\n")
    return {
        "method": type(method).__name__,
        "labels": len(task),
        "waits": wait,
        "ms a label": float(np.mean(clock)),
        "processor ms a label": processor,
        "99th percentile": float(np.quantile(clock, 0.99)),
        "largest": float(np.max(clock)),
        "load": os.getloadavg()[0],
    }


def page(near: list[dict[str, object]], costs: list[dict[str, object]]) -> str:
    first = [
        [
            f"{row['set']}, {row['order']} order",
            str(row["method"]),
            f"{row['labels']:,}",
            f"{row['largest difference at thousands']:.1e}",
            f"{row['mean difference in between']:.1e}",
        ]
        for row in near
    ]
    second = [
        [
            f"{row['method']}{'' if row['waits'] else ', without waiting'}",
            f"{row['labels']:,}",
            *(f"{row[key]:.1f}" for key in COST_KEYS),
        ]
        for row in costs
    ]
    return "\n\n".join(
        [
            "# Live models beside fits to all labels so far",
            "Largest difference of a probability from that of a fit, over all tasks, after every "
            f"1,000 labels; and the mean difference 500 labels later. Updates of {PIECE} labels.",
            table(["set", "method", "labels", "at thousands", "in between, mean"], first),
            f"Milliseconds for each of {ONE_BY_ONE:,} labels that come one by one, the fits that "
            "are due among them included. Without waiting they are made in a thread. The machine "
            "was shared; load is the number of processes that wanted one of its cores.",
            table(["method", "labels", *COST_KEYS], second),
        ]
    )


COST_KEYS = ("ms a label", "processor ms a label", "99th percentile", "largest", "load")

if __name__ == "__main__":
    main()
