"""How far workers err together on real crowds: what labels show, and what truths show.

    python benchmarks/dependence_shown.py

The mean correlation of two workers' errors on the same task, as labels show it, the same divided
by the part of a correlation that shows (what BayesBag believes, before the part that counts), and
as known truths show it. Writes benchmarks/results/dependence-shown.{json,md}.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
from results_files import provenance, save, table

from crowdbench.sets import crowd
from crowdbench.tables.truth_inference import SETS
from crowdwise.aggregate.shared_errors import (
    LEFT,
    SharedErrors,
    believe,
    correlate_errors,
    fit_independent,
    measure_shared_errors,
)
from crowdwise.annotations.names import locate
from crowdwise.datasets import Crowd
from crowdwise.evaluate.label_uncertainty import only_busy
from crowdwise.inference import MemoryEngine, fingerprint

COLUMNS = ("shown", "part that shows", "believed", "by truths")


def measure(data: Crowd) -> dict[str, float]:
    votes = data.annotations.without_repeats("last")
    engine = MemoryEngine(votes)
    shared = measure_shared_errors(engine, fingerprint(engine))
    assert isinstance(shared, SharedErrors)
    place = locate(votes.tasks, data.truth.index.to_numpy())
    truth = locate(votes.classes, data.truth.to_numpy())
    known = (place >= 0) & (truth >= 0)
    some = only_busy(votes[place[known]])
    right = correlate_errors(some, fit_independent(some, truth[known]))
    found = shared.excess, shared.visible, believe(shared).correlation / LEFT, right
    return dict(zip(COLUMNS, map(float, found), strict=True))


def main() -> None:
    warnings.simplefilter("ignore")
    rows = [{"set": name, **measure(crowd(name))} for name in SETS]
    mean = {"set": "mean", **{key: float(np.mean([row[key] for row in rows])) for key in COLUMNS}}
    lines = [[row["set"], *(f"{row[key]:.3f}" for key in COLUMNS)] for row in [mean, *rows]]
    off = [
        float(np.mean([abs(row[key] - row["by truths"]) for row in rows]))
        for key in ("shown", "believed")
    ]
    text = "\n\n".join(
        [
            "# How far workers err together, as labels and truths show it",
            "Mean correlation of two workers' errors on the same task. What labels show is off by "
            f"{off[0]:.3f} on average, what is believed by {off[1]:.3f}.",
            table(["set", *COLUMNS], lines),
        ]
    )
    save("dependence-shown", provenance("python benchmarks/dependence_shown.py"), rows, text)
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    main()
