"""What AutoClassifier costs on many tasks: seconds, and memory beside that of the features.

    python benchmarks/learning_cost.py --tasks 1e5 --features 300

Tasks have three labels each by 200 workers, and five classes that are linear in the features.
Prints a line of JSON: seconds, seconds of work on all cores, the most memory above what was in
use before as a multiple of the features' (single precision), accuracy on fresh tasks, and how far
the mean confidence is above it. Run it on a quiet machine (Linux); on a busy one only the work
can be trusted.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np

from crowdwise import Annotations
from crowdwise.learn import AutoClassifier
from crowdwise.simulate import label_by_crowd, one_coin_confusion

N_CLASSES, N_WORKERS, N_LABELS, N_TEST = 5, 200, 3, 20_000
SIGNAL = 1.5  # deviation of a class's score beside that of Gumbel noise


def draw(n_tasks: int, n_features: int, seed: int = 0):
    """Features, classes that are drawn by their scores, and labels of the first tasks."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_tasks + N_TEST, n_features), dtype=np.float32)
    weights = rng.standard_normal((n_features, N_CLASSES), dtype=np.float32)
    score = X @ (weights * SIGNAL / np.sqrt(n_features)) + rng.gumbel(size=(len(X), N_CLASSES))
    truth = score.argmax(axis=1)
    skills = rng.uniform(0.4, 0.9, N_WORKERS)
    votes: Annotations = label_by_crowd(
        truth[:n_tasks], one_coin_confusion(skills, N_CLASSES), N_LABELS, random_state=seed
    )
    return X, truth, votes


def resident(line: str) -> int:
    """Memory of this process in bytes: VmRSS now, VmHWM at most so far."""
    known = dict(one.split(":") for one in Path("/proc/self/status").read_text().splitlines())
    return 1024 * int(known[line].split()[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=float, default=1e5)
    parser.add_argument("--features", type=int, default=300)
    asked = parser.parse_args()
    X, truth, votes = draw(int(asked.tasks), asked.features)
    train, test = X[: votes.n_tasks], X[votes.n_tasks :]
    Path("/proc/self/clear_refs").write_text("5")  # the most is counted from here
    begin = time.perf_counter(), time.process_time(), resident("VmRSS")
    model = AutoClassifier(random_state=0).fit(train, votes)
    seconds, work = time.perf_counter() - begin[0], time.process_time() - begin[1]
    extra = resident("VmHWM") - begin[2]
    proba = model.predict_proba(test)
    right = float(np.mean(proba.argmax(axis=1) == truth[votes.n_tasks :]))
    found = {
        "tasks": votes.n_tasks,
        "features": asked.features,
        "labels": votes.n_annotations,
        "seconds": round(seconds, 1),
        "work": round(work, 1),
        "memory beside the features": round(extra / train.nbytes, 2),
        "accuracy": round(right, 4),
        "overconfidence": round(float(proba.max(axis=1).mean()) - right, 4),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
