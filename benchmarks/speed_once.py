"""Fit one method once, in this process, and print time and memory as JSON.

Called by speed.py, by the project's interpreter for ``crowdwise`` and by another one for a
peer. Only the fit is timed: data and imports are loaded before the clock starts.
"""

import json
import resource
import sys
import time
import warnings
from pathlib import Path

import numpy as np

warnings.simplefilter("ignore")


def crowdwise_fit(method, task, worker, label, steps):
    from crowdwise import Annotations, aggregate

    start = time.perf_counter()
    annotations = Annotations.from_codes(task, worker, label)
    built = time.perf_counter() - start
    limits = {"max_iter": steps, "tol": 0.0} if steps else {}
    if method == "MACE":
        limits["n_restarts"] = 1
    model = getattr(aggregate, method)(**limits)
    return lambda: model.fit(annotations).posterior_.argmax(axis=1), built


def crowdkit_fit(method, task, worker, label, steps):
    import pandas as pd
    from crowdkit import aggregation

    frame = pd.DataFrame({"task": task, "worker": worker, "label": label})
    names = {"OneCoin": "OneCoinDawidSkene"}
    limits = {"n_iter": steps, "tol": -np.inf} if steps and method != "MACE" else {}
    if method == "MACE" and steps:
        limits = {"n_iter": steps, "n_restarts": 1}
    if method == "ZeroBasedSkill":
        limits = {}
    model = getattr(aggregation, names.get(method, method))(**limits)
    return lambda: model.fit_predict(frame).sort_index().to_numpy(), 0.0


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    tool, method, file, steps = sys.argv[1:]
    data = np.load(Path(file))
    columns = data["task"], data["worker"], data["label"]
    prepare = {"crowdwise": crowdwise_fit, "crowd-kit": crowdkit_fit}[tool]
    # A first fit on a few rows loads what is loaded lazily.
    few = columns[0] < 20
    prepare(method, *(column[few] for column in columns), 2 if int(steps) else 0)[0]()
    fit, built = prepare(method, *columns, int(steps))
    before = peak_mb()
    start = time.perf_counter()
    labels = fit()
    seconds = time.perf_counter() - start
    accuracy = float(np.mean(labels == data["truth"]))
    memory = {"extra_mb": peak_mb() - before, "peak_mb": peak_mb()}
    found = {"seconds": seconds, **memory, "accuracy": accuracy, "built": built}
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
