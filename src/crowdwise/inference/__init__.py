"""The shared mathematics of truth inference: engines, the stopping rule, distributions."""

from crowdwise.inference.compact import CompactPosterior
from crowdwise.inference.confidence import Confidence
from crowdwise.inference.dirichlet import (
    divergence,
    expected_log,
    pool_counts,
    positive_pair,
)
from crowdwise.inference.engines import (
    Engine,
    MemoryEngine,
    Posterior,
    Sums,
    Sweep,
    count_labels,
    pooled_confusion,
)
from crowdwise.inference.fingerprints import (
    Fingerprints,
    fingerprint,
    fingerprint_workers,
    rank_equals,
    scramble,
)
from crowdwise.inference.hidden_gold import HiddenGold
from crowdwise.inference.simplex import (
    as_confusion_counts,
    clamp,
    fixed_prior,
    gold_mask,
    log_of,
    measure_certainty,
    normalize,
    one_coin_confusion,
    one_hot,
    rank_certainty,
    share_best,
    worker_prior,
)
from crowdwise.inference.stopping import Run, Trace, best_of, until_converged
from crowdwise.inference.worker_weights import draw_weights

__all__ = [
    "CompactPosterior",
    "Confidence",
    "Engine",
    "Fingerprints",
    "HiddenGold",
    "MemoryEngine",
    "Posterior",
    "Run",
    "Sums",
    "Sweep",
    "Trace",
    "as_confusion_counts",
    "best_of",
    "clamp",
    "count_labels",
    "divergence",
    "draw_weights",
    "expected_log",
    "fingerprint",
    "fingerprint_workers",
    "fixed_prior",
    "gold_mask",
    "log_of",
    "measure_certainty",
    "normalize",
    "one_coin_confusion",
    "one_hot",
    "pool_counts",
    "pooled_confusion",
    "positive_pair",
    "rank_certainty",
    "rank_equals",
    "scramble",
    "share_best",
    "until_converged",
    "worker_prior",
]
