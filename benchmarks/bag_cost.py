"""What BayesBag costs on 10^6 annotations, as a multiple of one IBCC fit.

    python benchmarks/bag_cost.py

Prints seconds (the best of three) and seconds of work on all cores, their ratios, and the peak
memory. Run it on a quiet machine; on a busy one only the work can be trusted.
"""

import resource
import sys
import time
import warnings

from crowds_of_size import draw

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
    single, bags = best_seconds(IBCC(), votes), best_seconds(BayesBag(), votes)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{votes.n_annotations:,} annotations; peak memory {peak:.0f} MB")
    for what, one, many in zip(("seconds", "seconds of work"), single, bags, strict=True):
        print(f"{what}: IBCC {one:.2f}, BayesBag {many:.2f}, {many / one:.1f} times as long")


if __name__ == "__main__":
    main()
