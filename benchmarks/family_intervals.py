"""How often intervals cover the truth where some workers copy one another.

    python benchmarks/family_intervals.py

Simulated crowds with 60 labels of each worker on average. In the first kinds every worker labels
every task or most of them, so that labels can show families (crowdwise.aggregate.families). Each
crowd is measured twice: as it is, and with the search for families switched off, where intervals
come from draws of independent workers alone. Other crowds of these kinds were in view when the
draws were made. Writes benchmarks/results/family-intervals.{json,md}.
"""

from __future__ import annotations

import sys
import warnings
from unittest.mock import patch

import numpy as np
from held_out_crowds import kind
from results_files import provenance, save, table

from crowdbench.tables.coverage import measure
from crowdwise.aggregate import BayesBag
from crowdwise.aggregate.families import Families, measure_families
from crowdwise.evaluate import draws
from crowdwise.inference import MemoryEngine, fingerprint

NAME, RUNS, FIRST = "family-intervals", 12, 1000
METRICS, ENDS = ("width", "of entries", "of labels"), (" alone", "")
KINDS = {
    "12 workers of every task, half of whom copy .7": kind(
        n_workers=12, per_task=12, family=6, copied=0.7, copiers=0.5
    ),
    "10 workers of every task, 3 classes, four copy .7": kind(
        n_workers=10, per_task=10, n_classes=3, family=4, copied=0.7, copiers=0.4
    ),
    "9 workers of every task, 3 classes, families of 3 who copy .6": kind(
        n_workers=9, per_task=9, n_classes=3, family=3, copied=0.6
    ),
    "20 workers, 10 labels per task, five copy .7": kind(
        n_workers=20, per_task=10, family=5, copied=0.7, copiers=0.25
    ),
    "30 workers, 4 labels per task, half copy .7": kind(
        n_workers=30, family=15, copied=0.7, copiers=0.5
    ),
    "10 workers of every task, 3 classes, all alone": kind(n_workers=10, per_task=10, n_classes=3),
    "the same, uneven tasks": kind(n_workers=10, per_task=10, n_classes=3, uneven=1.0),
}


def run(name: str, seed: int) -> dict[str, object]:
    data = KINDS[name](seed)
    engine = MemoryEngine(data.annotations)
    found = measure_families(engine, fingerprint(engine))
    row: dict[str, object] = {"crowd": name, "families": len(found)}
    with patch.object(draws, "measure_families", return_value=Families.none(len(found.number))):
        alone = measure(BayesBag(), data, seed)
    own = measure(BayesBag(), data, seed) if len(found) else alone
    return row | {m + " alone": v for m, v in alone.items()} | own


def both(rows: list[dict[str, object]], metric: str) -> str:
    """The means without and with families."""
    if not rows:
        return "none"
    return " / ".join(f"{np.mean([row[metric + end] for row in rows]):.3f}" for end in ENDS)


def describe(rows: list[dict[str, object]]) -> str:
    lines = []
    for name in dict.fromkeys(row["crowd"] for row in rows):
        own = [row for row in rows if row["crowd"] == name]
        found = [row for row in own if row["families"]]
        lines.append(
            [
                name,
                str(len(own)),
                f"{len(found) / len(own):.2f}",
                both(own, "coverage"),
                both(found, "coverage"),
                *(both(own, m) for m in METRICS),
            ]
        )
    head = ["crowd", "runs", "families found", "coverage", "coverage where found", *METRICS]
    about = (__doc__ or "").split("\n\n")[2].replace("\n", " ").split(" Writes")[0]
    return "\n\n".join(
        [
            "# Intervals where workers copy one another",
            f"Nominal coverage is 0.95. {about} Two figures are without and with families; columns "
            "are those of `crowdwise bench coverage`.",
            table(head, lines),
        ]
    )


def main() -> None:
    warnings.simplefilter("ignore")
    rows = [run(name, seed) for name in KINDS for seed in range(FIRST, FIRST + RUNS)]
    text = describe(rows)
    save(NAME, provenance("python benchmarks/family_intervals.py"), rows, text)
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    main()
