"""What BayesBag costs on 10^6 annotations, as a multiple of one IBCC fit.

    python benchmarks/bag_cost.py

Prints seconds (the best of three), their ratio and the peak memory. Run it on a quiet machine.
"""

import resource
import sys
import time
import warnings

from crowds_of_size import draw

from crowdwise import Annotations
from crowdwise.aggregate import IBCC, BayesBag


def best_seconds(model, votes, times=3):
    """The shortest of some fits."""
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        model.fit(votes)
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def main() -> None:
    warnings.simplefilter("ignore")
    columns = draw(int(float(sys.argv[1])) if len(sys.argv) > 1 else 1_000_000)
    votes = Annotations.from_codes(columns["task"], columns["worker"], columns["label"])
    single, bags = best_seconds(IBCC(), votes), best_seconds(BayesBag(), votes)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{votes.n_annotations:,} annotations: IBCC {single:.2f} s, BayesBag {bags:.2f} s, ")
    print(f"{bags / single:.1f} times as long; peak memory {peak:.0f} MB")


if __name__ == "__main__":
    main()
