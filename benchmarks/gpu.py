"""What a GPU does: a step of Dawid-Skene, fits beside those of memory, learners.

python benchmarks/gpu.py                        # writes benchmarks/results/gpu.json and .md
python benchmarks/gpu.py --only steps --size 1e7

Times of steps are those of the GPU's own clock, the median of several; others are by the clock of
the machine. The crowd has five labels a task, four classes and power-law workers.
"""

import argparse
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from unittest.mock import patch

import numpy as np
import torch

HERE = Path(__file__).parent
PER_TASK, N_CLASSES = 5, 4
TIE = 1e-9


def without_package() -> None:
    """Let the kernels be imported where what the package needs is not installed."""
    for name in ("crowdwise", "crowdwise.inference", "crowdwise.inference.engines"):
        stub = ModuleType(name)
        stub.__path__ = [str(HERE.parent / "src" / Path(*name.split(".")))]
        sys.modules[name] = stub


def crowd(n: int, n_workers: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Starts of tasks, codes of pairs, and truths: made on the GPU, since there are many."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    rng = torch.Generator(device).manual_seed(0)
    activity = (1.0 + torch.arange(n_workers, device=device)) ** -0.8
    edges = activity.cumsum(0) / activity.sum()
    n_tasks = n // PER_TASK
    truth = torch.randint(N_CLASSES, (n_tasks,), generator=rng, device=device)
    skill = 0.45 + 0.5 * torch.rand(n_workers, generator=rng, device=device)
    code = torch.empty(n_tasks * PER_TASK, dtype=torch.int32, device=device)
    for start in range(0, len(code), 1 << 26):
        size = min(1 << 26, len(code) - start)
        at = torch.arange(start, start + size, device=device) // PER_TASK
        chance = torch.rand(size, generator=rng, device=device)
        worker = torch.searchsorted(edges, chance).clamp_max(n_workers - 1)
        right = torch.rand(size, generator=rng, device=device) < skill[worker]
        other = torch.randint(N_CLASSES, (size,), generator=rng, device=device)
        label = torch.where(right, truth[at], other)
        code[start : start + size] = (worker * N_CLASSES + label).int()
    starts = np.arange(0, len(code) + 1, PER_TASK, dtype=np.int64)
    return starts, code.cpu().numpy(), truth.cpu().numpy()


def gpu_seconds(work: Callable[[], object], times: int = 9) -> float:
    """The median time of some work on the GPU, after it was done twice."""
    work(), work()
    found = []
    for _ in range(times):
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        work()
        last.record()
        torch.cuda.synchronize()
        found.append(first.elapsed_time(last) / 1e3)
    return statistics.median(found)


def clock_seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def measure_steps(n: int, n_workers: int) -> list[dict]:
    """A step in plain torch and in fused kernels: time, and whether it is the same bits twice."""
    from crowdwise.inference.engines.fused import FusedCells
    from crowdwise.inference.engines.sorted_cells import SortedCells

    starts, code, _ = crowd(n, n_workers)
    ways = (
        ("torch, P(truth) as float64", SortedCells, torch.float64),
        ("torch, P(truth) as float32", SortedCells, torch.float32),
        ("fused, P(truth) as float64", FusedCells, torch.float64),
        ("fused, P(truth) as float32", FusedCells, torch.float32),
    )
    rows, exact = [], None
    for name, kind, stored in ways:
        row, counts = measure_way(kind, stored, starts, code, n_workers)
        exact = counts if exact is None else exact
        off = float(((counts - exact).abs() / exact.clamp_min(1)).max())
        rows.append({"what": f"step, {name}", **row, "counts_off": off})
        print(rows[-1], flush=True)
    return rows


def measure_way(kind, stored, starts, code, n_workers) -> tuple[dict, torch.Tensor]:
    """One formulation."""
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    device, n_pairs = torch.device("cuda"), n_workers * N_CLASSES
    rng = np.random.default_rng(0)
    table = torch.tensor(np.log(rng.dirichlet(np.full(N_CLASSES, 2.0), n_pairs)), device=device)
    prior = torch.full((N_CLASSES,), -np.log(N_CLASSES), dtype=torch.float64, device=device)
    start = time.perf_counter()
    cells = kind.build(
        [(starts, code, None)], (len(starts) - 1, len(code), n_pairs), device, stored
    )
    torch.cuda.synchronize()
    build = time.perf_counter() - start

    def step() -> tuple[torch.Tensor, ...]:
        sums = cells.sweep(prior, table, hard=False, n_classes=N_CLASSES, tie=TIE)
        return *sums, cells.count(sums[2])

    first, again = step(), step()
    same = all(bool((a == b).all()) for a, b in zip(first, again, strict=True))
    del again
    whole, second = gpu_seconds(step), gpu_seconds(lambda: cells.count(first[2]))
    row = {
        "annotations": len(code),
        "workers": n_workers,
        "ns": whole / len(code) * 1e9,
        "ns_counts": second / len(code) * 1e9,
        "same_twice": same,
        "build_s": build,
        "memory_gb": torch.cuda.max_memory_allocated() / 1e9,
    }
    return row, first[3]


def measure_fits(n: int, n_workers: int, steps: int = 102) -> list[dict]:
    """Whole fits by the clock: with tables sent and sums fetched in every step."""
    from crowdwise import Annotations
    from crowdwise.aggregate import IBCC, DawidSkene, OneCoin

    starts, code, _ = crowd(n, n_workers)
    task = np.repeat(np.arange(len(starts) - 1, dtype=np.int32), PER_TASK)
    worker, label = np.divmod(code, N_CLASSES)
    names = {"workers": np.arange(n_workers), "classes": np.arange(N_CLASSES)}
    votes = Annotations.from_codes(task, worker, label, **names)
    rows = []
    for method in (DawidSkene, IBCC, OneCoin):
        found, seconds = {}, {}
        for device in (None, "cuda"):
            for _ in range(2):  # kernels are compiled in the first
                model = method(max_iter=steps, tol=0, device=device)
                seconds[device] = clock_seconds(lambda m=model: m.fit(votes))
            # What a fit does once, with so many labels, takes as long as many steps.
            short = method(max_iter=2, tol=0, device=device)
            rest = clock_seconds(lambda m=short: m.fit(votes))
            found[device] = model, (seconds[device] - rest) / (steps - 2)
        (own, step), (other, host) = found["cuda"], found[None]
        rows.append(
            {
                "what": f"{method.__name__}, {steps} steps",
                "annotations": len(code),
                "workers": n_workers,
                "fit_s": seconds["cuda"],
                "fit_memory_s": seconds[None],
                "ns": step / len(code) * 1e9,
                "ns_memory": host / len(code) * 1e9,
                "posterior_off": float(np.abs(own.posterior_ - other.posterior_).max()),
                "objective_off": abs(own.objective_[-1] / other.objective_[-1] - 1),
            }
        )
        print(rows[-1], flush=True)
    return rows


def measure_methods(n: int, n_workers: int) -> list[dict]:
    """How far every method's posterior on the GPU is from that of memory."""
    from crowdwise import Annotations, aggregate

    starts, code, _ = crowd(n, n_workers)
    task = np.repeat(np.arange(len(starts) - 1), PER_TASK)
    votes = Annotations.from_codes(task, *np.divmod(code, N_CLASSES))
    rows = []
    for name in aggregate.__all__:
        method = getattr(aggregate, name)()
        known = method.get_params(deep=False)
        if "device" not in known:
            continue
        if "random_state" in known:
            method.set_params(random_state=0)
        own = [clone_fit(method, votes, device) for device in ("cuda", "cuda", None)]
        rows.append(
            {
                "what": f"{name}, defaults",
                "annotations": len(code),
                "posterior_off": float(np.abs(own[0].posterior_ - own[2].posterior_).max()),
                "labels_differ": int((own[0].label_codes_ != own[2].label_codes_).sum()),
                "same_twice": bool((own[0].posterior_ == own[1].posterior_).all()),
            }
        )
        print(rows[-1], flush=True)
    return rows


def clone_fit(method, votes, device):
    from sklearn.base import clone

    return clone(method).set_params(device=device).fit(votes)


def measure_learners(n_tasks: int = 20_000) -> list[dict]:
    """Learners on the GPU and on the processor: the same answer, and how long they take."""
    from sklearn.base import clone

    from crowdwise.learn import LIA, MLP, SpeeLFC
    from crowdwise.nets.training import Training
    from crowdwise.simulate import label_by_crowd, one_coin_confusion

    rng = np.random.default_rng(0)
    truth = rng.integers(0, N_CLASSES, n_tasks)
    X = rng.normal(size=(N_CLASSES, 64))[truth] + 2.0 * rng.normal(size=(n_tasks, 64))
    confusion = one_coin_confusion(rng.uniform(0.5, 0.95, 100), n_classes=N_CLASSES)
    votes = label_by_crowd(truth, confusion, per_task=3, random_state=0)
    short = Training(epochs=5, batch_size=4096, batch_of="tasks")
    ways = {
        "SpeeLFC()": SpeeLFC(random_state=0),
        "SpeeLFC(MLP), 5 epochs": SpeeLFC(truth=MLP((128,)), training=short, random_state=0),
        "LIA(), 5 epochs": LIA(training=short, random_state=0),
    }
    rows = []
    for name, learner in ways.items():
        found, seconds = {}, {}
        for device in ("cpu", "cuda"):
            own = clone(learner.training or type(learner).default_training)
            with patch.object(type(learner), "default_training", own.set_params(device=device)):
                found[device] = clone(learner)
                if learner.training is not None:
                    found[device].set_params(training=own)
                seconds[device] = clock_seconds(lambda m=found[device]: m.fit(X, votes))
        off = np.abs(found["cuda"].posterior_ - found["cpu"].posterior_).max()
        rows.append(
            {
                "what": f"{name} on {n_tasks:,} tasks",
                "fit_s": seconds["cuda"],
                "fit_memory_s": seconds["cpu"],
                "posterior_off": float(off),
            }
        )
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parts = ("steps", "fits", "methods", "learners")
    parser.add_argument("--only", nargs="+", choices=parts, default=parts)
    parser.add_argument("--size", type=float, default=1e8)
    parser.add_argument("--workers", type=int, default=5000)
    parser.add_argument(
        "--kernels-alone", action="store_true", help="needs numpy, torch and triton"
    )
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    if args.kernels_alone:
        without_package()
    n, rows = int(args.size), []
    if "steps" in args.only:
        rows += measure_steps(n, args.workers)
    if "fits" in args.only:
        rows += measure_fits(n, args.workers)
    if "methods" in args.only:
        rows += measure_methods(n // 200, min(args.workers, 500))
    if "learners" in args.only:
        rows += measure_learners()
    if not args.kernels_alone:
        write(rows)


def write(rows: list[dict]) -> None:
    """The rows as JSON and Markdown; parts that were not run again stay."""
    import json

    from results_files import RESULTS, provenance, save, table

    path = RESULTS / "gpu.json"
    known = json.loads(path.read_text())["rows"] if path.exists() else []
    own = {(row["what"], row.get("annotations"), row.get("workers")) for row in rows}
    rows = [
        r for r in known if (r["what"], r.get("annotations"), r.get("workers")) not in own
    ] + rows
    about = provenance("python benchmarks/gpu.py")
    about["versions"]["torch"] = torch.__version__
    if torch.cuda.is_available():
        about["machine"] = f"{torch.cuda.get_device_name()}, {about['machine']}"
    save("gpu", about, rows, "# Sweeps and fits on a GPU\n\n" + show(rows, table))


def show(rows: list[dict], table: Callable) -> str:
    lines = []
    for row in rows:
        size = f" at {row['annotations']:,}" if "annotations" in row else ""
        figures = (row.get(name) for name in ("ns", "ns_memory", "fit_s", "fit_memory_s"))
        cells = ["" if value is None else f"{value:.3g}" for value in figures]
        off = row.get("posterior_off", row.get("counts_off"))
        same = {True: "yes", False: "no"}.get(row.get("same_twice"), "")
        lines.append([row["what"] + size, *cells, "" if off is None else f"{off:.1g}", same])
    header = ["", "ns", "in memory", "fit, s", "in memory", "off by", "same twice"]
    return table(header, lines)


if __name__ == "__main__":
    main()
