"""How closely crowdwise.compat matches crowd-kit, cleanlab and Snorkel: labels, keys, types.

The same script calls the library and our module of its name; only the import differs.

python benchmarks/same_as_peers.py --crowdkit PYTHON --cleanlab PYTHON --snorkel PYTHON
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import real_crowds
from results_files import RESULTS, provenance, save, table

from crowdwise.simulate import confused_crowd, one_coin_confusion

SETS = ("wordsim", "mgc", "bluebirds", "rte", "sentiment_tweets", "product")
SEEDS = range(3)
ONCE = Path(__file__).with_name("peers_once.py")
WHY = """\
*alike*: the share of labels that are the same, for tables of labels; else whether all numbers are
within 1e-4. *largest* is the largest difference of any number. Kind, names of axes, names on them
and the type of values are the same everywhere except where *shape* says otherwise; the order of
workers and tasks may differ.

crowd-kit: votes, Dawid-Skene and its one-coin variant are the same computation; a row of a
confusion matrix without mass is filled in differently where EM meets one (mgc). GLAD's M-step is
inexact in both. MACE differs because crowd-kit's is misaligned between workers; M-MSR because
crowd-kit starts at random and divides scores by sums that may be negative. cleanlab: the same
computation, except for cleanlab 2.9's counts of labels: they are floats there, and its
`value_counts` gives [1, 1, 0, 0] for the labels 0.0 and 2.0 of four classes. *mended* is cleanlab
with that function fixed.
Snorkel: the same descent from the same start, in double precision instead of single."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for library in MAKERS:
        parser.add_argument(
            f"--{library}",
            help="an interpreter that has it; without one, the last results are kept",
        )
    peers = vars(parser.parse_args())
    rows = []
    for library, make in MAKERS.items():
        if peers[library] is None:
            rows += [row for row in earlier() if row["library"] == library]
            continue
        for name, fill in make():
            with tempfile.TemporaryDirectory() as folder:
                fill(Path(folder))
                found = {
                    side: call(library, side, python, Path(folder))
                    for side, python in (("ours", sys.executable), ("theirs", peers[library]))
                }
            rows += [{"library": library, "data": name, **row} for row in compare(**found)]
            sys.stderr.write(f"{library} {name}: {len(rows)} comparisons\n")
    save("same-as-peers", provenance("make bench-peers"), rows, report(rows))


def earlier() -> list[dict]:
    """The rows of the last run."""
    file = RESULTS / "same-as-peers.json"
    return json.loads(file.read_text())["rows"] if file.exists() else []


def call(library: str, side: str, python: str, folder: Path) -> dict[str, dict]:
    target = folder / f"{side}.json"
    command = [python, str(ONCE), library, side, str(folder), str(target)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
    return json.loads(target.read_text())


def crowds():
    """Real crowds as long tables."""
    for name in SETS:
        if name in real_crowds.names():
            crowd = real_crowds.load(name)

            def fill(folder: Path, crowd=crowd) -> None:
                crowd.annotations.to_frame().to_csv(folder / "votes.csv", index=False)
                truth = crowd.truth.rename("label").rename_axis("task").reset_index()
                truth.to_csv(folder / "truth.csv", index=False)

            yield name, fill


def panels():
    """Simulated panels with a classifier's probabilities, some examples with one label."""
    for seed in SEEDS:

        def fill(folder: Path, seed=seed) -> None:
            rng = np.random.default_rng(seed)
            crowd = panel(seed)
            labels = crowd.annotations.to_matrix().to_numpy(dtype=float)
            noise = rng.dirichlet(np.ones(4), len(labels))
            probs = 0.5 * np.eye(4)[crowd.truth] + 0.5 * noise
            np.savez(folder / "cleanlab.npz", labels=labels, pred_probs=probs,
                     unlabeled=rng.dirichlet(np.ones(4), 50))  # fmt: skip

        yield f"simulated, seed {seed}", fill


def panel(seed: int):
    confusion = one_coin_confusion([0.9, 0.8, 0.7, 0.6, 0.5, 0.4], n_classes=4)
    sizes = np.random.RandomState(seed).randint(1, 5, 300)
    return confused_crowd(confusion, 300, sizes, prior=[0.5, 0.25, 0.15, 0.1], random_state=seed)


def matrices():
    """Simulated labeling functions that abstain, of two and three classes."""
    for seed, n_classes in ((0, 2), (1, 2), (2, 3)):

        def fill(folder: Path, seed=seed, n_classes=n_classes) -> None:
            rng = np.random.default_rng(seed)
            truth = rng.choice(n_classes, 1000, p=[0.6, 0.4] if n_classes == 2 else [0.5, 0.3, 0.2])
            skill = np.linspace(0.85, 0.6, 8)
            right = rng.random((1000, 8)) < skill
            wrong = (truth[:, None] + rng.integers(1, n_classes, (1000, 8))) % n_classes
            L = np.where(right, truth[:, None], wrong)
            L[rng.random(L.shape) > rng.uniform(0.3, 0.9, 8)] = -1
            np.savez(folder / "snorkel.npz", L=L, Y=truth)

        yield f"simulated, {n_classes} classes, seed {seed}", fill


MAKERS = {"crowdkit": crowds, "cleanlab": panels, "snorkel": matrices}


def compare(ours: dict[str, dict], theirs: dict[str, dict]) -> list[dict]:
    """Each result of theirs beside ours of the same name."""
    rows = []
    for name, peer in theirs.items():
        if name.endswith(".error"):
            rows.append({"result": name, "alike": None, "largest": None, "shape": "theirs fails"})
            continue
        if name not in ours:
            rows.append({"result": name, "alike": None, "largest": None, "shape": "not in ours"})
            continue
        alike, largest = difference(frame(ours[name]), frame(peer))
        rows.append({"result": name, "alike": alike, "largest": largest,
                     "shape": misfits(ours[name], peer)})  # fmt: skip
    return rows


def frame(value: dict) -> pd.DataFrame:
    """Any result as a frame, to be lined up by its names."""
    values = np.array(value["values"]["values"], dtype=object)
    values = values.reshape(len(values) if values.ndim else 1, -1)
    index = value.get("index", {}).get("values", range(len(values)))
    columns = value.get("columns", {}).get("values", range(values.shape[1]))
    return pd.DataFrame(values, index=list(map(str, index)), columns=list(map(str, columns)))


def difference(ours: pd.DataFrame, theirs: pd.DataFrame) -> tuple[float, float | None]:
    mine = ours.reindex(index=theirs.index, columns=theirs.columns).to_numpy()
    other = theirs.to_numpy()
    if isinstance(other.flat[0], str) or all(isinstance(cell, int) for cell in other.flat):
        return float(np.mean(mine == other)), None
    gap = np.abs(mine.astype(float) - other.astype(float))
    missing = np.isnan(mine.astype(float)) & np.isnan(other.astype(float))
    gap[missing] = 0.0
    largest = float(np.nan_to_num(gap, nan=np.inf).max())
    return float(largest < 1e-4), largest


def misfits(ours: dict, theirs: dict) -> str:
    """What differs in kind, names or types."""
    found = []
    for part in ("kind", "name"):
        if ours.get(part) != theirs.get(part):
            found.append(f"{part}: {ours.get(part)}, theirs {theirs.get(part)}")
    for axis in ("index", "columns"):
        mine, other = ours.get(axis, {}), theirs.get(axis, {})
        if mine.get("names") != other.get("names"):
            found.append(f"{axis} named {mine.get('names')}, theirs {other.get('names')}")
        if sorted(mine.get("values", [])) != sorted(other.get("values", [])):
            found.append(f"other {axis}")
    if ours["values"]["kind"] != theirs["values"]["kind"]:
        found.append(f"type {ours['values']['kind']}, theirs {theirs['values']['kind']}")
    return "; ".join(found)


def report(rows: list[dict]) -> str:
    """One line for each result, over all data."""
    data = pd.DataFrame(rows)
    lines = []
    for (library, result), part in data.groupby(["library", "result"], sort=False):
        alike, largest = part["alike"].astype(float), part["largest"].astype(float)
        gap = "" if largest.isna().all() else f"{largest.max():.1e}"
        shown = "" if alike.isna().all() else f"{alike.mean():.4f}"
        notes = sorted({note for note in part["shape"] if note})
        lines.append([library, f"`{result}`", str(len(part)), shown, gap, "; ".join(notes)])
    header = ["library", "result", "data sets", "alike", "largest", "shape"]
    return f"# The same as other libraries\n\n{table(header, lines)}\n\n{WHY}"


if __name__ == "__main__":
    main()
