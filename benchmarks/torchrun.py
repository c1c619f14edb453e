"""Two processes of torchrun beside one process with two threads: SpeeLFC by the clock.

python benchmarks/torchrun.py                   # writes benchmarks/results/torchrun.json and .md

Each fit is a process of its own, started in turn; the time is that of ``fit`` alone, with one
settings and seed. What both learn is compared.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from results_files import provenance, save, table

N_CLASSES, WIDTH = 4, 64


def crowd(n_tasks: int):
    from crowdwise.simulate import label_by_crowd, one_coin_confusion

    rng = np.random.default_rng(0)
    truth = rng.integers(0, N_CLASSES, n_tasks)
    X = rng.normal(size=(N_CLASSES, WIDTH))[truth] + 2.0 * rng.normal(size=(n_tasks, WIDTH))
    confusion = one_coin_confusion(rng.uniform(0.5, 0.95, 100), n_classes=N_CLASSES)
    return X.astype(np.float32), label_by_crowd(truth, confusion, per_task=3, random_state=0)


def fit_once(n_tasks: int, which: str, home: Path) -> None:
    """What each process does."""
    from crowdwise.learn import MLP, SpeeLFC
    from crowdwise.nets.training import Training

    warnings.simplefilter("ignore")
    X, votes = crowd(n_tasks)
    batches = Training(epochs=2, batch_size=4096, batch_of="tasks", device="cpu")
    model = {
        "given strength": SpeeLFC(penalty=0.01, prior=1.0, random_state=0),
        "searched strength": SpeeLFC(random_state=0),
        "MLP in batches": SpeeLFC(truth=MLP((128,)), training=batches, random_state=0),
    }[which]
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        from crowdwise.nets.ranks import find_ranks

        find_ranks().agree("the start", 0.0)  # processes have started and wait for each other
    start = time.perf_counter()
    model.fit(X, votes)
    seconds = time.perf_counter() - start
    if os.environ.get("RANK", "0") == "0":
        np.savez(home / "found.npz", seconds=seconds, posterior=model.posterior_)


def run(n_tasks: int, which: str, n_processes: int) -> tuple[float, np.ndarray]:
    """Fit in one process with two threads, or in two with one each."""
    env = {**os.environ, "OMP_NUM_THREADS": "1" if n_processes > 1 else "2"}
    launch = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={n_processes}"]
    with tempfile.TemporaryDirectory() as folder:
        own = [__file__, "--once", which, "--tasks", str(n_tasks), "--home", folder]
        command = [sys.executable, *(launch if n_processes > 1 else []), *own]
        done = subprocess.run(command, env=env, check=False, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            sys.exit(f"{done.stderr}\n{which}: {n_processes} ended with {done.returncode}")
        found = np.load(Path(folder) / "found.npz")
        return float(found["seconds"]), found["posterior"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=float, default=1e5)
    parser.add_argument("--times", type=int, default=2)
    parser.add_argument("--once", help=argparse.SUPPRESS)
    parser.add_argument("--home", type=Path, help=argparse.SUPPRESS)
    ways = ("given strength", "MLP in batches", "searched strength")
    parser.add_argument("--only", nargs="+", choices=ways, default=ways)
    args = parser.parse_args()
    n_tasks = int(args.tasks)
    if args.once:
        fit_once(n_tasks, args.once, args.home)
        return
    rows = []
    for which in args.only:
        least, posterior = {1: np.inf, 2: np.inf}, {}
        for _ in range(args.times):
            for n in (1, 2):
                seconds, posterior[n] = run(n_tasks, which, n)
                least[n] = min(least[n], seconds)
        rows.append(
            {
                "what": f"SpeeLFC, {which}, {n_tasks:,} tasks",
                "one_process_s": least[1],
                "two_processes_s": least[2],
                "ratio": least[2] / least[1],
                "posterior_off": float(np.abs(posterior[1] - posterior[2]).max()),
                "busy": os.getloadavg()[0],
            }
        )
        print(rows[-1], flush=True)
    write(rows)


def write(rows: list[dict]) -> None:
    from results_files import RESULTS

    path = RESULTS / "torchrun.json"
    known = json.loads(path.read_text())["rows"] if path.exists() else []
    own = {row["what"] for row in rows}
    rows = [row for row in known if row["what"] not in own] + rows
    header = [
        "",
        "one process, two threads, s",
        "two processes, s",
        "ratio",
        "posteriors differ by",
        "processes that wanted to run",
    ]
    names = ("one_process_s", "two_processes_s", "ratio")
    lines = [
        [
            r["what"],
            *(f"{r[n]:.2f}" for n in names),
            f"{r['posterior_off']:.0e}",
            f"{r['busy']:.0f}" if "busy" in r else "",
        ]
        for r in rows
    ]
    text = "# Learners in two processes\n\n" + table(header, lines)
    save("torchrun", provenance("python benchmarks/torchrun.py"), rows, text)


if __name__ == "__main__":
    main()
