"""The default answer on crowds outside the 20 sets of the accuracy benchmark.

    CROWDWISE_DATA=FOLDER python benchmarks/outside_crowds.py

No setting was chosen with these in view. One is a panel of language models; the others rate
headlines from 0 to 100 for six emotions, here present above 0, and from -100 to 100 for valence,
here its sign, as are the published truths. Writes
benchmarks/results/outside-crowds.{json,md}.
"""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from results_files import provenance, save, table

from crowdbench.tables.calibration import LOSSES, N_BINS
from crowdwise.aggregate import IBCC, BayesBag, DawidSkene, MajorityVote
from crowdwise.evaluate import score, uncertainty

NAME = "outside-crowds"
EMOTIONS = ("anger", "disgust", "fear", "joy", "sadness", "surprise", "valence")
METHODS = (BayesBag, IBCC, DawidSkene, MajorityVote)


def load(name: str) -> tuple[pd.DataFrame, pd.Series]:
    """Votes (task, worker, label) and truths by task."""
    name, _, part = name.partition(":")
    folder = Path(os.environ["CROWDWISE_DATA"]) / name
    end = f"_{part}.csv" if part else ".csv"
    file = folder / f"annotations{end}"
    votes = pd.read_csv(file if file.exists() else f"{file}.gz")[["task", "worker", "label"]]
    truth = pd.read_csv(folder / f"truth{end}").set_index("task")["label"]
    if part:
        votes["label"], truth = np.sign(votes["label"]), np.sign(truth)
    return votes, truth[truth.index.isin(votes["task"])]


def measure(name: str) -> list[dict[str, object]]:
    votes, truth = load(name)
    rows = []
    for method in METHODS:
        model = method().fit(votes)
        own = score(model, truth, n_resamples=2, n_bins=N_BINS, bins="width")["value"]
        right = uncertainty(votes, model).accuracy if method is BayesBag else None
        losses = {loss: float(own[key]) for key, loss in LOSSES.items()}
        bounds = {"expected": right.value, "low": right.low, "high": right.high} if right else {}
        accuracy = {"accuracy": float(own["accuracy"])}
        rows.append({"crowd": name, "method": method.__name__, **accuracy, **losses, **bounds})
    return rows


def main() -> None:
    warnings.simplefilter("ignore")
    names = ("judges_civilcomments", *(f"snow_affect:{emotion}" for emotion in EMOTIONS))
    rows = [row for name in names for row in measure(name)]
    frame = pd.DataFrame(rows)
    metrics = ["accuracy", *LOSSES.values()]
    means = frame.groupby("method", sort=False)[metrics].mean()
    lines = [
        [
            f"{row['crowd']}, {row['method']}",
            *(f"{row[metric]:.4f}" for metric in metrics),
            f"{row['expected']:.3f} ({row['low']:.3f} to {row['high']:.3f})"
            if "low" in row
            else "",
        ]
        for row in rows
    ]
    mean_lines = [
        [f"mean, {method}", *(f"{value:.4f}" for value in own), ""]
        for method, own in zip(means.index, means.to_numpy(), strict=True)
    ]
    text = "\n\n".join(
        [
            "# Crowds outside the benchmark",
            (__doc__ or "").split("\n\n")[2].replace("\n", " ").split(" Writes")[0],
            table(["", *metrics, "expected accuracy"], mean_lines + lines),
        ]
    )
    save(NAME, provenance("python benchmarks/outside_crowds.py"), rows, text)
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    main()
