"""How closely our MajorityVote, DawidSkene and GLAD match crowd-kit's, data set by data set.

Both get the same rows, the same start and the same number of steps; a task counts as equal
when the two most probable labels agree or are tied. The text explains the differences.

python benchmarks/same_as_crowdkit.py --peer .venv-peers/bin/python
"""

import argparse
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import real_crowds
from results_files import provenance, save, table

from crowdwise.aggregate import GLAD, DawidSkene, MajorityVote

STEPS = 20
GLAD_AT_MOST = 8_000  # annotations; crowd-kit's GLAD takes minutes beyond
METHODS = {
    "MajorityVote": (MajorityVote(), 0),
    "DawidSkene": (DawidSkene(smoothing=1e-10, max_iter=STEPS, tol=0.0), STEPS),
    "GLAD": (GLAD(max_iter=STEPS, tol=0.0), STEPS),
}
WHY = """\
Majority vote is the same computation. Dawid-Skene starts from the same shares and takes the same
20 steps; crowd-kit raises counts below 1e-10 to 1e-10 and spreads the rest over the labels that
the worker used, we add 1e-10 and spread it over all classes; this shows where a worker has
hardly any label of a class. GLAD's M-step is inexact in both (conjugate gradients there, Newton
steps here), so parameters agree to that accuracy. Left to themselves the two stop at different
points: crowd-kit's bound for Dawid-Skene counts the prior once per label, and its GLAD stops by
an expected value that EM does not raise; both can stop too early. crowd-kit's MACE is not
compared: its counts are misaligned between workers, and its result changes with the order of the
rows."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", required=True, help="an interpreter that has crowd-kit")
    peer = parser.parse_args().peer
    rows = []
    for name in real_crowds.names():
        crowd = real_crowds.load(name)
        for method in METHODS:
            if method == "GLAD" and crowd.annotations.n_annotations > GLAD_AT_MOST:
                continue
            rows.append({"set": name, "method": method, **compare(method, crowd, peer)})
            sys.stderr.write(f"{rows[-1]}\n")
    header = [
        "set",
        "method",
        "equal labels",
        "mean difference",
        "largest",
        "accuracy",
        "crowd-kit's",
    ]
    lines = [
        [r["set"], r["method"], f"{r['equal']:.4f}", f"{r['mean']:.1e}", f"{r['largest']:.1e}"]
        for r in rows
    ]
    for line, r in zip(lines, rows, strict=True):
        line += [f"{r['accuracy']:.4f}", f"{r['theirs']:.4f}"]
    text = f"# The same as crowd-kit 1.4.2\n\n{table(header, lines)}\n\n{WHY}"
    save("same-as-crowdkit", provenance("make bench-same"), rows, text)


def compare(method: str, crowd: real_crowds.RealCrowd, peer: str) -> dict[str, float]:
    """How alike the two posteriors are, and how accurate each is."""
    model, steps = METHODS[method]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = model.fit(crowd.annotations).probas_
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "votes.csv", Path(folder) / "probas.csv"
        crowd.annotations.to_frame().to_csv(source, index=False)
        script = Path(__file__).with_name("crowdkit_once.py")
        command = [peer, str(script), method, str(source), str(target), str(steps)]
        subprocess.run(command, check=True, capture_output=True)
        theirs = pd.read_csv(target, dtype={"task": str}, keep_default_na=False, index_col="task")
    theirs = theirs.reindex(index=ours.index, columns=ours.columns, fill_value=0.0)
    gap = np.abs(ours.to_numpy() - theirs.to_numpy())
    mine, other = best(ours), best(theirs)
    truth = pd.get_dummies(crowd.truth).reindex(columns=ours.columns, fill_value=False)
    places = ours.index.get_indexer(crowd.truth.index)
    right = truth.to_numpy()
    return {
        "equal": float((mine & other).any(axis=1).mean()),
        "mean": float(gap.max(axis=1).mean()),
        "largest": float(gap.max()),
        "accuracy": float(
            (right * mine[places] / mine[places].sum(1, keepdims=True)).sum(1).mean()
        ),
        "theirs": float(
            (right * other[places] / other[places].sum(1, keepdims=True)).sum(1).mean()
        ),
    }


def best(probas: pd.DataFrame) -> np.ndarray:
    values = probas.to_numpy()
    return values >= values.max(axis=1, keepdims=True) - 1e-9


if __name__ == "__main__":
    main()
