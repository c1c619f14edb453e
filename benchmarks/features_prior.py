"""Whether features make the truths of labeled tasks better than labels alone do.

    CROWDWISE_DATA=FOLDER python benchmarks/features_prior.py

The posterior of AutoClassifier, in which what features say is the prior of every task, beside
that of BayesBag, which sees labels alone, and the mean of both: on the tasks that both were
given for training, as they are and with at most two labels each. A second run continues where the
first stopped. Writes benchmarks/results/features-prior.{json,md}.
"""

from __future__ import annotations

import json
import sys
import warnings

import numpy as np
from choose_bag import METRICS, measure
from results_files import RESULTS, provenance, save, table

from crowdbench.sets import learning_set
from crowdbench.tables._defaults import REAL
from crowdwise.aggregate import BayesBag
from crowdwise.annotations.names import locate
from crowdwise.learn import AutoClassifier

NAME, SEEDS, FEW = "features-prior", 1, 2
SLOTS = ("hotel", "classroom_on_task")  # their truths are the majority of these labels
SETS = tuple(name for name in REAL if name not in SLOTS)
METHODS = ("BayesBag", "AutoClassifier", "mean of both")


def score_set(name: str, most: int | None) -> dict[str, dict[str, float]]:
    """Mean scores of each method over the seeds."""
    found: dict[str, list[dict[str, float]]] = {method: [] for method in METHODS}
    for seed in range(SEEDS):
        data = learning_set(name, features=REAL[name])
        votes = data.annotations.without_repeats("last")
        if most is not None:
            votes = votes.subsample(most, random_state=seed)
        place = locate(votes.tasks, data.truth.index.to_numpy())
        scored = (place >= 0) & (votes.redundancy[place] > 0)
        truth = locate(votes.classes, data.truth.to_numpy())[scored]
        bag = BayesBag(random_state=seed).fit(votes).posterior_
        learned = AutoClassifier(random_state=seed).fit(data.X, votes).posterior_
        for method, posterior in zip(METHODS, (bag, learned, (bag + learned) / 2), strict=True):
            found[method].append(measure(posterior[place[scored]], truth))
    return {
        method: {metric: float(np.mean([one[metric] for one in own])) for metric in METRICS}
        for method, own in found.items()
    }


def describe(rows: list[dict[str, object]]) -> str:
    """Means over the sets, then every set."""
    lines = []
    for labels in dict.fromkeys(row["labels"] for row in rows):
        own = [row for row in rows if row["labels"] == labels]
        for method in METHODS:
            means = [np.mean([row[method][metric] for row in own]) for metric in METRICS]
            lines.append([f"mean, {labels}, {method}", *(f"{value:.4f}" for value in means)])
    for row in rows:
        for method in METHODS:
            own = [f"{row[method][metric]:.4f}" for metric in METRICS]
            lines.append([f"{row['set']}, {row['labels']}, {method}", *own])
    return "\n\n".join(
        [
            "# Features as a prior of truths",
            f"Tasks that methods were given, with labels; runs of each: {SEEDS}. Hotel and "
            "classroom on task are left out: their truths are the majority of the same labels.",
            table(["", *METRICS], lines),
        ]
    )


def main() -> None:
    warnings.simplefilter("ignore")
    about, file = provenance("python benchmarks/features_prior.py"), RESULTS / f"{NAME}.json"
    rows = json.loads(file.read_text())["rows"] if file.exists() else []
    done = {(row["set"], row["labels"]) for row in rows}
    for labels, most in (("all labels", None), (f"at most {FEW} labels", FEW)):
        for name in SETS:
            if (name, labels) not in done:
                rows.append({"set": name, "labels": labels, **score_set(name, most)})
                save(NAME, about, rows, describe(rows))
    sys.stdout.write(describe(rows) + "\n")


if __name__ == "__main__":
    main()
