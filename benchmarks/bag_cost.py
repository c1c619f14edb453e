"""What BayesBag costs on 10^6 annotations, as a multiple of one IBCC fit.

    python benchmarks/bag_cost.py

Seconds (the best of three) and seconds of work on all cores, their ratios, and the peak memory.
Run it on a quiet machine; on a busy one only the work can be trusted. Writes
benchmarks/results/bag-cost.{json,md}.
"""

import resource
import sys
import time
import warnings

from crowds_of_size import draw
from results_files import provenance, save, table

from crowdwise import Annotations
from crowdwise.aggregate import IBCC, BayesBag


def best_seconds(model, votes, times=3):
    """The shortest of some fits: seconds, and seconds of work on all cores."""
    seconds = []
    for _ in range(times):
        start = time.perf_counter(), time.process_time()
        model.fit(votes)
        seconds.append((time.perf_counter() - start[0], time.process_time() - start[1]))
    return [min(each) for each in zip(*seconds, strict=True)]


def main() -> None:
    warnings.simplefilter("ignore")
    columns = draw(int(float(sys.argv[1])) if len(sys.argv) > 1 else 1_000_000)
    votes = Annotations.from_codes(columns["task"], columns["worker"], columns["label"])
    before = peak_megabytes()
    single = best_seconds(IBCC(), votes)
    rows = [
        {"": what, "IBCC": one, "BayesBag": many, "times as long": many / one}
        for what, one, many in zip(
            ("seconds", "seconds of work"), single, best_seconds(BayesBag(), votes), strict=True
        )
    ]
    lines = [
        [str(row[""]), *(f"{row[key]:.2f}" for key in ("IBCC", "BayesBag", "times as long"))]
        for row in rows
    ]
    memory = f"{before:.0f} MB before the fits, {peak_megabytes():.0f} MB at their peak"
    text = "\n\n".join(
        [
            "# What BayesBag costs",
            f"{votes.n_annotations:,} annotations; {memory}.",
            table(["", "IBCC", "BayesBag", "times as long"], lines),
        ]
    )
    save("bag-cost", provenance("python benchmarks/bag_cost.py"), rows, text)
    sys.stdout.write(text + "\n")


def peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
