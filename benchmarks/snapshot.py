"""Record what every method computes, and compare it with an earlier recording.

python benchmarks/snapshot.py before.npz                       # on the state before a change
python benchmarks/snapshot.py after.npz --against before.npz   # on the state after it

Aggregators run with their defaults on ten real crowds; learners and embedders, cut short and
seeded, on three real crowds with features. ``--only NAME …`` restricts the run to some methods.
"""

import sys
import time
import warnings
from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import real_crowds

from crowdwise import aggregate, embed, learn
from crowdwise.laws.quick import quick

CROWDS = (
    "bluebirds",
    "face",
    "mgc",
    "product",
    "relevance",
    "rte",
    "sentiment_tweets",
    "temp",
    "wordsim",
    "wsd",
)
WITH_FEATURES = ("bluebirds", "mgc", "rte")


def record(only: list[str]) -> Iterator[tuple[str, Any]]:
    """Every result by name: method, crowd, and what it is."""
    for crowd in CROWDS:
        votes = real_crowds.load(crowd).annotations
        for name in chosen(aggregate.__all__, only):
            method = getattr(aggregate, name)()
            if method.traits.binary_only and votes.n_classes > 2:
                continue
            if "random_state" in method.get_params():
                method.set_params(random_state=0)
            method.fit(votes)
            yield f"{name}/{crowd}/posterior", method.posterior_
            if hasattr(method, "skills_"):
                yield f"{name}/{crowd}/skills", method.skills_.to_numpy()
    for crowd in WITH_FEATURES:
        votes = real_crowds.load(crowd).annotations
        stored = np.load(real_crowds.folder() / crowd / "features.npz", allow_pickle=False)
        rows = pd.DataFrame(stored["X"].astype(np.float32), index=stored["task"].astype(str))
        X = rows.loc[votes.tasks]
        for name in chosen(learn.LEARNERS, only):
            model = quick(getattr(learn, name)()).fit(X, votes)
            yield f"{name}/{crowd}/predictions", model.predict_proba(X)
            yield f"{name}/{crowd}/posterior", model.posterior_
        for name in chosen(embed.EMBEDDERS, only):
            model = quick(getattr(embed, name)()).fit(X, votes)
            yield f"{name}/{crowd}/embedding", model.transform(X)


def chosen(names: list[str], only: list[str]) -> list[str]:
    return [name for name in names if not only or name in only]


def compare(found: dict[str, Any], before: Any) -> int:
    """Print what differs; returns how many results do."""
    names = {
        name for name in before.files if name.split("/")[0] in {n.split("/")[0] for n in found}
    }
    worst, different = 0.0, 0
    for name in sorted(names):
        if name not in found:
            print(f"{name}: missing")
            different += 1
            continue
        old, new = before[name], np.asarray(found[name])
        gap = float(np.nanmax(np.abs(old - new), initial=0.0)) if old.shape == new.shape else np.inf
        same_nan = old.shape == new.shape and np.array_equal(np.isnan(old), np.isnan(new))
        worst = max(worst, gap)
        if gap > 0 or not same_nan:
            different += gap > 1e-9 or not same_nan
            print(f"{name}: differs by {gap:.2e}")
    print(f"{len(names)} results compared: largest difference {worst:.2e}")
    return different


def main() -> int:
    parser = ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("output", help="where to save the results (.npz)")
    parser.add_argument("--against", help="an earlier recording to compare with")
    parser.add_argument("--only", nargs="*", default=[], help="names of methods")
    args = parser.parse_args()
    found, last = {}, time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, value in record(args.only):
            found[name] = np.asarray(value)
            if time.monotonic() - last > 5:
                sys.stderr.write(f"{name}\n")
                last = time.monotonic()
    np.savez_compressed(args.output, **found)
    return compare(found, np.load(args.against)) if args.against else 0


if __name__ == "__main__":
    sys.exit(min(main(), 1))
