"""Time, memory and accuracy against crowd-kit on simulated crowds of growing size.

Each fit runs in a process of its own; ours and the peer's alternate on the same data, so that
the ratio is what counts. The last columns compare a Dawid-Skene step with the least work that
any step must do: the bare compiled pass, and reading the annotations once.

python benchmarks/speed.py --peer .venv-peers/bin/python
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from crowds_of_size import N_CLASSES, draw
from results_files import provenance, save, table

from crowdwise import Annotations, aggregate
from crowdwise.inference import MemoryEngine

# Method: EM steps (0 for its own rule), and the largest size the peer is asked for: beyond
# it one fit takes the peer many minutes, or more memory than a machine has.
METHODS = {
    "MajorityVote": (0, 1e7),
    "Wawa": (0, 1e7),
    "ZeroBasedSkill": (0, 1e6),
    "DawidSkene": (20, 1e7),
    "OneCoin": (20, 1e6),
    "MACE": (20, 1e6),
    "GLAD": (1, 1e5),
    "MMSR": (0, 1e4),
}
OURS_ONLY = [name for name in aggregate.__all__ if name not in METHODS]
TOO_LARGE = {"GLAD": 1e6, "MMSR": 1e6}


def main() -> None:
    args = arguments()
    rows, limits = [], []
    with tempfile.TemporaryDirectory() as folder:
        for size in args.sizes:
            file = Path(folder) / "crowd.npz"
            np.savez(file, **draw(int(size)))
            limits.append(limit_of(file, int(size)))
            for method in args.methods:
                rows += compare(method, file, int(size), args.peer)
    command = "make bench-limit" if "1e8" in args.output else "make bench-speed"
    text = report(rows, limits)
    sys.stdout.write(text + "\n")
    save(args.output, provenance(command), [*rows, *limits], text)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", help="an interpreter that has crowd-kit")
    parser.add_argument("--sizes", type=float, nargs="+", default=[1e4, 1e5, 1e6, 1e7])
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--output", default="speed")
    return parser.parse_args()


def compare(method: str, file: Path, size: int, peer: str | None) -> list[dict[str, object]]:
    """One row for us and one for the peer, where it can be asked."""
    steps, peer_limit = METHODS[method]
    if size > TOO_LARGE.get(method, np.inf):
        return []
    tools = {"crowdwise": sys.executable}
    if method == "DawidSkene" and size <= 1e7:
        tools["crowdwise, plain"] = sys.executable
    if peer and size <= peer_limit:
        tools["crowd-kit"] = peer
    found = []
    for tool, python in tools.items():
        seen = once(python, tool, method, file, steps)
        row = {"method": method, "tool": tool, "annotations": size, "steps": steps, **seen}
        found.append(row)
        sys.stderr.write(f"{method} {tool} {size:.0e}: {seen}\n")
    return found


def once(python: str, tool: str, method: str, file: Path, steps: int) -> dict[str, object]:
    """What one fit took, or why it did not finish."""
    script = Path(__file__).with_name("speed_once.py")
    command = [python, str(script), tool.partition(",")[0], method, str(file), str(steps)]
    environment = {**os.environ, "CROWDWISE_NATIVE": "0" if "plain" in tool else "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        return {"error": done.stderr.strip().splitlines()[-1][:80] if done.stderr else "killed"}
    return dict(json.loads(done.stdout))


def limit_of(file: Path, size: int) -> dict[str, object]:
    """Nanoseconds per annotation of the bare pass and of reading the annotations once."""
    data = np.load(file)
    annotations = Annotations.from_codes(data["task"], data["worker"], data["label"])
    rng = np.random.default_rng(0)
    shape = (annotations.n_workers, N_CLASSES)
    tables = np.log(np.full(N_CLASSES, 0.25)), np.log(rng.dirichlet(np.ones(N_CLASSES), shape))
    cells, engine = annotations.cells, MemoryEngine(annotations)
    bare = min(measure_seconds(lambda: engine.sweep(*tables)) for _ in range(5))
    read = min(measure_seconds(cells.code.sum) for _ in range(5))
    nanoseconds = {"pass_ns": bare / size * 1e9, "read_ns": read / size * 1e9}
    return {"method": "limit", "annotations": size, **nanoseconds}


def measure_seconds(work) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def report(rows: list[dict], limits: list[dict]) -> str:
    ours = {
        (r["method"] + r["tool"].removeprefix("crowdwise"), r["annotations"]): r
        for r in rows
        if r["tool"].startswith("crowdwise")
    }
    peers = {(r["method"], r["annotations"]): r for r in rows if r["tool"] == "crowd-kit"}
    header = ["method", "annotations", "seconds", "ns per annotation and step", "extra MB"]
    header += ["accuracy", "crowd-kit seconds", "extra MB", "accuracy", "times faster"]
    lines = [line_of(key, row, peers.get(key)) for key, row in ours.items()]
    sizes = {size for _, size in ours}
    where = f" at {max(sizes):.0e} annotations" if len(sizes) == 1 else ""
    text = f"# Speed{where}\n\n" + table(header, lines)
    near = ["annotations", "bare pass, ns", "reading once, ns", "a step of the fit, ns"]
    steps = {size: row for (method, size), row in ours.items() if method == "DawidSkene"}
    bars = [limit_line(limit, steps.get(limit["annotations"])) for limit in limits]
    about = "\n\nHow far a Dawid-Skene step is from the limit, per annotation:\n\n"
    return text + about + table(near, bars)


def line_of(key: tuple[str, int], row: dict, peer: dict | None) -> list[str]:
    method, size = key
    if "error" in row:
        return [method, f"{size:.0e}", row["error"], *[""] * 7]
    steps = row["steps"]
    step = f"{row['seconds'] / size / steps * 1e9:.1f}" if steps else ""
    line = [method, f"{size:.0e}", f"{row['seconds']:.3g}", step, f"{row['extra_mb']:.0f}"]
    line.append(f"{row['accuracy']:.4f}")
    if peer is None:
        return [*line, "", "", "", ""]
    if "error" in peer:
        return [*line, peer["error"], "", "", ""]
    ratio = peer["seconds"] / row["seconds"]
    theirs = [f"{peer['seconds']:.3g}", f"{peer['extra_mb']:.0f}", f"{peer['accuracy']:.4f}"]
    return [*line, *theirs, f"{ratio:.0f} x"]


def limit_line(limit: dict, fit: dict | None) -> list[str]:
    size = limit["annotations"]
    step = f"{fit['seconds'] / size / fit['steps'] * 1e9:.2f}" if fit else ""
    return [f"{size:.0e}", f"{limit['pass_ns']:.2f}", f"{limit['read_ns']:.2f}", step]


if __name__ == "__main__":
    main()
