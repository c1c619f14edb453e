"""How near one machine is to its limit: ratios within one run, each measured in turn.

python benchmarks/engines.py                     # writes benchmarks/results/engines.json and .md
python benchmarks/engines.py --only sweep glad   # some of them; the other results stay

What takes memory is measured in a process of its own. A machine may be busy with other things:
times are those of the processor, of all threads together, and the least of several counts.
"""

import argparse
import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from functools import partial
from pathlib import Path

import numpy as np
from crowds_of_size import PER_TASK, draw
from results_files import provenance, save, table

from crowdwise import Annotations, compiled
from crowdwise.aggregate import GLAD, DawidSkene, MinimaxEntropy, OneCoin
from crowdwise.annotations import Pairs, StoredAnnotations
from crowdwise.annotations.store import StoreWriter
from crowdwise.inference import MemoryEngine, normalize
from crowdwise.inference.engines.blocks import count_threads
from crowdwise.inference.glad_steps import Abilities, at_ease, expect
from crowdwise.inference.logistic import Shape, ascend, at_scale, normal_prior, responses_of

HERE = Path(__file__).parent
RESULT = HERE / "results" / "engines.json"


def seconds(work: Callable[[], object]) -> float:
    """Processor time of all threads: a busy machine stretches it far less than the clock's."""
    start = time.process_time()
    work()
    return time.process_time() - start


def in_turn(times: int, **works: Callable[[], object]) -> dict[str, float]:
    """The least time of each, measured one after the other, several times."""
    least = dict.fromkeys(works, np.inf)
    for _ in range(times):
        for name, work in works.items():
            least[name] = min(least[name], seconds(work))
    return least


def crowd(n_workers: int, n_classes: int, n: int, seed: int = 0) -> Annotations:
    """Five labels a task by workers whose activity falls as a power of their rank."""
    rng = np.random.default_rng(seed)
    edges = np.cumsum((1.0 + np.arange(n_workers)) ** -0.8)
    task = np.repeat(np.arange(n // PER_TASK, dtype=np.int32), PER_TASK)
    worker = np.searchsorted(edges / edges[-1], rng.random(len(task))).astype(np.int32)
    truth = rng.integers(0, n_classes, n // PER_TASK)
    right = rng.random(len(task)) < rng.uniform(0.45, 0.95, n_workers)[worker]
    label = np.where(right, truth[task], rng.integers(0, n_classes, len(task)))
    names = {"workers": np.arange(n_workers), "classes": np.arange(n_classes)}
    return Annotations.from_codes(task, np.minimum(worker, n_workers - 1), label, **names)


# -- against a loop in C -----------------------------------------------------------------------


def build_yardstick(folder: Path) -> ctypes.CDLL:
    library = folder / "yardstick.so"
    source = HERE / "yardstick.c"
    subprocess.run(
        ["cc", "-O3", "-march=native", "-ffast-math", "-shared", "-fPIC", source, "-o", library],
        check=True,
    )
    return ctypes.CDLL(str(library))


def run_yardstick(library: ctypes.CDLL, votes: Annotations, n_threads: int) -> Callable[[], None]:
    """A step of Dawid-Skene as the least of C can do it."""
    rng, code = np.random.default_rng(0), votes.cells.code
    table_ = np.log(rng.dirichlet(np.ones(4), votes.n_workers * 4)).astype(np.float32)
    prior = np.log(np.full(4, 0.25, dtype=np.float32))
    edges = np.linspace(0, votes.n_tasks, n_threads + 1).astype(int)

    def pointer(array: np.ndarray) -> ctypes.c_void_p:
        return ctypes.c_void_p(array.ctypes.data)

    def one(number: int) -> None:
        counts, truths = np.zeros_like(table_), np.zeros(4)
        some = (ctypes.c_int64(edges[number]), ctypes.c_int64(edges[number + 1]))
        tables = (pointer(prior), pointer(table_), pointer(counts), pointer(truths))
        library.step(pointer(code), *some, ctypes.c_int64(PER_TASK), *tables)

    def work() -> None:
        with ThreadPoolExecutor(n_threads) as pool:
            list(pool.map(one, range(n_threads)))

    return work


def measure_sweep(size: int = 10_000_000) -> list[dict]:
    """A sweep and the start of a fit at 10^7."""
    data, n_threads = draw(size), count_threads()
    columns = data["task"], data["worker"], data["label"]
    votes = Annotations.from_codes(*columns)
    engine = MemoryEngine(votes)
    rng = np.random.default_rng(0)
    tables = np.log(np.full(4, 0.25)), np.log(rng.dirichlet(np.ones(4), (votes.n_workers, 4)))
    rows = votes.pairs.take(tables[1])

    def start() -> None:  # codes and votes, as a fit finds them
        for name in ("cells", "pair_cells", "pairs"):
            vars(votes).pop(name, None)
        MemoryEngine(votes).tally_pairs()

    with tempfile.TemporaryDirectory() as folder:
        yardstick = run_yardstick(build_yardstick(Path(folder)), votes, n_threads)
        least = in_turn(
            7, c=yardstick, sweep=lambda: engine.sweep_pairs(tables[0], rows), start=start
        )
    nano = {name: value / size * 1e9 for name, value in least.items()}
    return [
        row(
            "D&S sweep ÷ C yardstick at 10^7, same threads", least["sweep"] / least["c"], 1.6, nano
        ),
        row("start of a fit ÷ one sweep at 10^7", least["start"] / least["sweep"], 1.2, nano),
    ]


# -- against how it was done before ------------------------------------------------------------


def former_dawid_skene(votes: Annotations, steps: int) -> None:
    """Dawid-Skene with tables of all pairs, as it was: the tables of every step are whole."""
    sizes, cells = (votes.n_workers, votes.n_classes), votes.cells
    counts, truths = former_pass(cells, np.zeros(sizes[1]), np.zeros((*sizes, sizes[1])))
    for _ in range(steps):
        prior, confusion = normalize(truths + 0.01), normalize(counts + 0.01)
        log_confusion = np.log(confusion)
        counts, truths = former_pass(cells, np.log(prior), log_confusion)
        float((0.01 * log_confusion).sum())
    normalize(counts + 0.01), counts + 0.01  # confusion_ and counts_
    former_pass(cells, np.log(prior), log_confusion)


def former_pass(cells, log_prior, log_confusion) -> tuple[np.ndarray, np.ndarray]:
    n_workers, k, _ = log_confusion.shape
    rows = np.ascontiguousarray(log_confusion.swapaxes(1, 2)).reshape(-1, k)
    truths, counts = np.zeros(k), np.zeros_like(rows)
    columns = cells.indptr, cells.code, cells.value, log_prior, rows, None
    nothing = np.zeros((0, k))
    compiled.native.em_pass(*columns, nothing, truths, counts, 0, cells.n_tasks, False)
    return counts.reshape(n_workers, k, k).swapaxes(1, 2), truths


def measure_many_workers() -> list[dict]:
    """10^5 workers x 10 classes, 10^6 annotations, 20 steps."""
    ours, former = (once(f"workers-{which}") for which in ("now", "former"))
    share = ours["seconds"] / former["seconds"], ours["extra_mb"] / former["extra_mb"]
    notes = {"now": ours, "former": former}
    what = "10^5 workers x 10 classes, 10^6 annotations: "
    return [
        row(what + "time ÷ with tables of all pairs", share[0], 0.45, notes),
        row(what + "memory ÷ the same", share[1], 0.5, notes),
    ]


def measure_many_classes() -> list[dict]:
    found = once("classes")
    what = "10^5 workers x 100 classes, 2·10^5 annotations: extra memory, MB"
    return [row(what, found["extra_mb"], 1000, found)]


def measure_one_coin() -> list[dict]:
    found = once("coins")
    nano = found["seconds"] / count_threads() / 1e6 / 20 * 1e9  # all threads are busy
    what = "one-coin 10^5 x 1,000 classes, 10^6 annotations: "
    return [
        row(what + "ns per annotation and step, on all cores", nano, 30, found),
        row(what + "extra memory, MB", found["extra_mb"], 200, found),
    ]


def measure_glad(size: int = 1_000_000) -> list[dict]:
    """GLAD, and the same in plain numpy, which is how it was done before."""
    data = draw(size)
    votes = Annotations.from_codes(data["task"], data["worker"], data["label"])

    def fit() -> None:
        GLAD(max_iter=10, tol=0).fit(votes)

    least = in_turn(3, now=fit, plain=lambda: former_glad(votes, 10))
    nano = {name: value / size / 10 * 1e9 for name, value in least.items()}
    # It was done on one core; by the clock, ours takes as long as its share of each.
    share = least["now"] / least["plain"]
    return [
        row("GLAD ÷ as it was, at 10^6", share, 0.3, nano),
        row("the same, ours shared by all cores", share / count_threads(), 0.3, nano),
    ]


def former_glad(votes: Annotations, steps: int) -> None:
    """GLAD in plain numpy over all annotations at once, as it was."""
    rows = responses_of(MemoryEngine(votes)._load((0, votes.n_tasks)), votes.pairs.worker)
    normal, prior = normal_prior((1.0, 1.0), "prior"), np.full(votes.n_classes, 0.25)
    skill, log_ease = np.ones(votes.n_workers), np.ones(votes.n_tasks)
    posterior, _ = expect(rows, Abilities(prior, skill, log_ease))
    for _ in range(steps):
        right, ease = posterior.ravel()[rows.cell], np.exp(log_ease)[rows.task]

        def by_skill(at: np.ndarray, right=right, ease=ease) -> Shape:
            return normal.added_to(at_scale(at, ease, rows.worker, rows, right), at)

        skill = ascend(skill, by_skill)
        by_ease = partial(at_ease, rows=rows, right=right, skill=skill, prior=normal)
        log_ease = ascend(log_ease, by_ease)
        posterior, _ = expect(rows, Abilities(prior, skill, log_ease))
        normal.penalty(skill).sum() + normal.penalty(log_ease).sum()


def measure_minimax() -> list[dict]:
    found = once("minimax")
    nano = found["seconds"] / 1e5 / 3 * 1e9
    return [
        row("MinimaxEntropy, ns per annotation and round (was 4,690)", nano, 470, found),
        row("MinimaxEntropy, bytes an annotation", found["extra_mb"] * 10.0, 100, found),
    ]


def measure_reading(size: int = 10_000_000) -> list[dict]:
    """Names of text in any order, to annotations; polars reads the columns as they are."""
    from reading import write

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "votes.csv"
        write(size, file)
        ours = min(once("reading", str(file))["seconds"] for _ in range(2))
        raw = min(once("polars", str(file))["seconds"] for _ in range(2))
    notes = {"ours": ours, "polars": raw}
    return [row(f"reading {size:.0e} CSV rows ÷ polars' raw read", ours / raw, 4.5, notes)]


def measure_disk(size: int = 1_000_000_000, steps: int = 20) -> list[dict]:
    """Dawid-Skene of 10^9 annotations from disk, and of a tenth of them in memory."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        home, tenth = Path(folder) / "votes.crowd", Path(folder) / "tenth.crowd"
        draw_store(size // 10, tenth)
        memory_ = once("memory", str(tenth))
        draw_store(size, home)
        disk = once("disk", str(home))
    nano = disk["seconds"] / size / (steps + 2) * 1e9
    notes = {"disk": disk, "memory": memory_, "processor ns per annotation and sweep": nano}
    what = f"{size:.0e} annotations from disk, {steps} steps: "
    share = disk["seconds"] / (10 * memory_["seconds"])
    return [
        row(what + "peak memory, MB", disk["peak_mb"], 600, notes),
        row(what + "time ÷ (10 times a tenth of them in memory)", share, 1.4, notes),
    ]


def draw_store(size: int, home: Path) -> None:
    """Annotations on disk, drawn ten million at a time."""
    home.mkdir()
    writer, n_workers, at_once = StoreWriter(home), 5000, 10_000_000
    for start in range(0, size, at_once):
        data = draw(min(at_once, size - start), seed=start)
        code = data["worker"] % n_workers * 4 + data["label"]
        writer.append(None, np.bincount(data["task"]), code)
    writer.finish(np.arange(n_workers), np.arange(4), Pairs.all_of(n_workers, 4))


def fit_store(name: str, home: str) -> Callable[[], object]:
    stored = StoredAnnotations.load(home)
    model = DawidSkene(max_iter=20, tol=0)
    if name == "disk":

        def work() -> None:
            for _ in model.fit(stored).posterior_.blocks():
                pass

        return work
    cells = stored.cells(0, stored.n_tasks)
    task = np.repeat(np.arange(stored.n_tasks, dtype=np.int32), np.diff(cells.indptr))
    worker, label = np.divmod(cells.code, 4)
    votes = Annotations.from_codes(task, worker, label.astype(np.int8))
    return lambda: model.fit(votes)


MEASURES = {
    "disk": measure_disk,
    "sweep": measure_sweep,
    "workers": measure_many_workers,
    "classes": measure_many_classes,
    "coins": measure_one_coin,
    "glad": measure_glad,
    "minimax": measure_minimax,
    "reading": measure_reading,
}


# -- in a process of its own -------------------------------------------------------------------


def fit_once(name: str) -> Callable[[], object]:
    if name.startswith("workers"):
        votes = crowd(100_000, 10, 1_000_000)
        if name == "workers-former":
            return lambda: former_dawid_skene(votes, 20)
        return lambda: DawidSkene(max_iter=20, tol=0).fit(votes)
    if name == "classes":
        votes = crowd(100_000, 100, 200_000)
        return lambda: DawidSkene(max_iter=5, tol=0).fit(votes)
    if name == "coins":
        votes = crowd(100_000, 1_000, 1_000_000)
        return lambda: OneCoin(max_iter=20, tol=0).fit(votes)
    data = draw(100_000)
    votes = Annotations.from_codes(data["task"], data["worker"], data["label"])
    return lambda: MinimaxEntropy(max_iter=3, tol=0).fit(votes)


def read_once(name: str, file: str) -> Callable[[], object]:
    if name == "polars":
        import polars

        return lambda: polars.read_csv(file)
    from crowdwise.io import read

    return lambda: read(file)


def once(name: str, *file: str) -> dict[str, float]:
    """Seconds and extra memory of one measurement, in another process."""
    command = [sys.executable, __file__, "--once", name, *file]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def peak_mb() -> float:
    """The most memory that this process has held since it was last asked to forget."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def measure_once(name: str, *file: str) -> dict[str, float]:
    if name in ("disk", "memory"):
        work = fit_store(name, *file)
    else:
        work = read_once(name, *file) if file else fit_once(name)
    Path("/proc/self/clear_refs").write_text("5")
    before, start = peak_mb(), time.perf_counter()
    taken = seconds(work)
    clock = time.perf_counter() - start
    peak = peak_mb()
    return {
        "seconds": taken,
        "by the clock": clock,
        "extra_mb": peak - before,
        "peak_mb": peak,
    }


def row(what: str, value: float, at_most: float, notes: dict) -> dict:
    return {"what": what, "value": value, "at_most": at_most, "notes": notes}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="+", choices=MEASURES, help="some; the other results stay")
    parser.add_argument("--once", nargs="+", help="one measurement, in this process")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    if args.once:
        sys.stdout.write(json.dumps(measure_once(*args.once)))
        return
    known = json.loads(RESULT.read_text())["rows"] if args.only and RESULT.is_file() else []
    rows = {one["what"]: one for one in known}
    for name in args.only or MEASURES:
        for one in MEASURES[name]():
            busy = f"{os.getloadavg()[0]:.0f} on {count_threads()}"
            rows[one["what"]] = one | {"date": date.today().isoformat(), "busy": busy}
            sys.stderr.write(f"{one}\n")
        report(list(rows.values()))  # at once: the next may take long


def report(rows: list[dict]) -> None:
    lines = [
        [
            r["what"],
            f"{r['value']:.3g}",
            f"{r['at_most']:g}",
            "yes" if holds(r) else "no",
            r.get("date", "earlier"),
            r.get("busy", "6 on 2"),
        ]
        for r in rows
    ]
    about = (
        "Times are the processor's, of all threads. Rows may be of different days; the last column "
        "says how many processes wanted to run, on how many cores, when a row was done."
    )
    text = f"# Engines on one machine\n\n{about}\n\n"
    text += table(["", "found", "at most", "holds", "measured", "busy"], lines)
    save("engines", provenance("make bench-engines"), rows, text)


def holds(one: dict) -> bool:
    return one["value"] <= one["at_most"]


if __name__ == "__main__":
    main()
