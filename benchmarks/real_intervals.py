"""How often intervals cover the truth on real crowds, and how wide that needs to be.

    CROWDWISE_MIRROR=FOLDER python benchmarks/real_intervals.py

For 19 crowds of the accuracy benchmark, those with 100 known truths: does the interval of the
expected accuracy contain the share of labels that are right? Do those of workers contain the
share of their labels that are right, among workers with 20 known truths or more? As they are,
without the belief that crowds may be misled (crowdwise.evaluate.misled), and with 50 known
truths, drawn at random, which correct that belief and are left out of the scores. Writes
benchmarks/results/real-intervals.{json,md}.
"""

from __future__ import annotations

import json
import sys
import warnings
from unittest.mock import patch

import numpy as np
from results_files import RESULTS, provenance, save, table

from crowdbench.sets import crowd
from crowdbench.tables.truth_inference import SETS
from crowdwise.aggregate import BayesBag
from crowdwise.annotations import Annotations
from crowdwise.annotations.names import locate
from crowdwise.evaluate import check_independence, misled, uncertainty
from crowdwise.typing import Ints

NAME, ENOUGH, N_GOLD = "real-intervals", 20, 50
WAYS = {"": "as they are", " blind": "no belief", " gold": f"{N_GOLD} truths"}


def measure(name: str) -> dict[str, object]:
    data = crowd(name)
    votes = data.annotations.without_repeats("last")
    place = locate(votes.tasks, data.truth.index.to_numpy())
    truth = np.full(votes.n_tasks, -1)
    truth[place[place >= 0]] = locate(votes.classes, data.truth.to_numpy())[place >= 0]
    if (truth >= 0).sum() < 2 * N_GOLD:
        return {}
    found = {"crowd": name, "dependent": check_independence(votes).is_dependent}
    known = np.random.default_rng(0).permutation(np.flatnonzero(truth >= 0))[:N_GOLD]
    gold = np.full(votes.n_tasks, -1)
    gold[known] = truth[known]
    found |= hold(votes, truth, "")
    with patch.object(misled, "CROWDS", 1e-9):
        found |= hold(votes, truth, " blind")
    return found | hold(votes, truth, " gold", gold)


def hold(votes: Annotations, truth: Ints, end: str, gold: Ints | None = None) -> dict[str, object]:
    """Bounds of the accuracy, and the share of workers whose interval holds."""
    known = (
        {}
        if gold is None
        else dict(zip(votes.tasks[gold >= 0], votes.classes[gold[gold >= 0]], strict=True))
    )
    model = BayesBag().fit(votes, known or None)
    found = uncertainty(votes, model, known or None)
    scored = truth >= 0 if gold is None else (truth >= 0) & (gold < 0)
    right = votes.label == truth[votes.task]
    some = scored[votes.task]
    n = np.bincount(votes.worker[some], minlength=votes.n_workers)
    share = np.bincount(votes.worker[some], right[some], minlength=votes.n_workers)
    busy = n >= ENOUGH
    share = share[busy] / n[busy]
    bounds = found.workers.to_numpy()[busy]
    inside = (bounds[:, 1] <= share) & (share <= bounds[:, 2])
    answer = np.asarray(model.posterior_).argmax(axis=1)
    accuracy = float((answer == truth)[scored].mean())
    return {
        f"accuracy{end}": accuracy,
        f"low{end}": found.accuracy.low,
        f"high{end}": found.accuracy.high,
        f"workers{end}": float(inside.mean()),
        f"width{end}": float((bounds[:, 2] - bounds[:, 1]).mean()),
        f"n workers{end}": int(busy.sum()),
    }


def is_inside(row: dict[str, object], end: str) -> bool:
    return row[f"low{end}"] <= row[f"accuracy{end}"] <= row[f"high{end}"]


def describe(rows: list[dict[str, object]]) -> str:
    head = ["crowd", "dependent", "workers", "accuracy", "interval"]
    head += [f"of workers, {about}" for about in WAYS.values()]
    lines = [
        [
            row["crowd"],
            "yes" if row["dependent"] else "no",
            str(row["n workers"]),
            f"{row['accuracy']:.3f}",
            f"{row['low']:.3f} to {row['high']:.3f}" + ("" if is_inside(row, "") else " (missed)"),
            *(f"{row[f'workers{end}']:.2f} ({row[f'width{end}']:.2f})" for end in WAYS),
        ]
        for row in rows
    ]
    means = [
        [
            about,
            f"{sum(is_inside(row, end) for row in rows)} of {len(rows)}",
            f"{np.mean([row[f'workers{end}'] for row in rows]):.3f}",
            f"{np.mean([row[f'width{end}'] for row in rows]):.3f}",
        ]
        for end, about in WAYS.items()
    ]
    return "\n\n".join(
        [
            "# Intervals on real crowds",
            "Nominal coverage is 0.95. "
            + (__doc__ or "").split("\n\n")[2].replace("\n", " ").split(" Writes")[0],
            table(
                ["intervals", "accuracy inside", "workers' accuracy inside, mean", "mean width"],
                means,
            ),
            "By crowd; of workers: the share of intervals that hold, and their mean width.",
            table(head, lines),
        ]
    )


def main() -> None:
    warnings.simplefilter("ignore")
    file = RESULTS / f"{NAME}.json"
    rows = json.loads(file.read_text())["rows"] if file.exists() else []
    for name in SETS:
        if name not in {row["crowd"] for row in rows} and (row := measure(name)):
            rows.append(row)
            rows.sort(key=lambda row: SETS.index(row["crowd"]))
            save(NAME, provenance("python benchmarks/real_intervals.py"), rows, describe(rows))
    sys.stdout.write(describe(rows) + "\n")


if __name__ == "__main__":
    main()
