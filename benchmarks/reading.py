"""Seconds and memory to read a CSV file, with names as ids, into Annotations.

python benchmarks/reading.py
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from crowds_of_size import draw
from results_files import provenance, save, table

from crowdwise.io import read

WORDS = np.array(["cat", "dog", "horse", "sheep"], dtype=object)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, nargs="+", default=[1e5, 1e6, 1e7])
    parser.add_argument("--once", help="read this file in this process, and print what it took")
    args = parser.parse_args()
    if args.once:
        sys.stdout.write(json.dumps(read_once(args.once)))
        return
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for size in args.rows:
            file = Path(folder) / "votes.csv"
            write(int(size), file)
            command = [sys.executable, __file__, "--once", str(file)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            rows.append({"rows": int(size), "megabytes": file.stat().st_size / 1e6})
            rows[-1] |= json.loads(done.stdout)
            sys.stderr.write(f"{rows[-1]}\n")
    lines = [
        [f"{r['rows']:.0e}", f"{r['megabytes']:.0f}", f"{r['seconds']:.1f}", f"{r['peak_mb']:.0f}"]
        for r in rows
    ]
    text = "# Reading\n\n" + table(["rows", "file, MB", "seconds", "peak MB of the process"], lines)
    save("reading", provenance("make bench-reading"), rows, text)


def write(size: int, file: Path) -> None:
    """A CSV such as a platform exports, rows in no order."""
    crowd = draw(size)
    order = np.random.default_rng(1).permutation(len(crowd["task"]))
    for start in range(0, len(order), 1_000_000):
        some = order[start : start + 1_000_000]
        frame = pd.DataFrame(
            {
                "task": "task-" + pd.Series(crowd["task"][some]).astype(str),
                "worker": "worker-" + pd.Series(crowd["worker"][some]).astype(str),
                "label": WORDS[crowd["label"][some]],
            }
        )
        mode, header = ("w", True) if start == 0 else ("a", False)
        frame.to_csv(file, index=False, mode=mode, header=header)


def read_once(file: str) -> dict[str, float]:
    start = time.perf_counter()
    annotations = read(file)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": seconds, "peak_mb": peak, "annotations": annotations.n_annotations}


if __name__ == "__main__":
    main()
