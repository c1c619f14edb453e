"""Learners on real crowds with features: the tables of the SpeeLFC paper, and LabelMe.

Every method with the settings of its line in TABLES, fixed beforehand (the papers' where they
say, one shared recipe elsewhere), over ten seeds; truth is used once, to score the test split.

python benchmarks/learning.py mgc
"""

import argparse
import os
import sys
import time
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")  # seeds run side by side instead

import numpy as np
from feature_sets import FeatureSet, load
from joblib import Parallel, delayed
from results_files import provenance, save, table
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from crowdwise import aggregate, learn
from crowdwise.learn import MLP, Training

# Held-out labels, never truth, say when to stop.
SHARED = Training(learning_rate=1e-2, epochs=1000, patience=50)
BATCHES = Training(learning_rate=1e-3, batch_size=64, epochs=50)
NET = MLP(hidden=(128,), dropout=0.5)


def two_stage(aggregator: str):
    classifier = LogisticRegression(max_iter=2000)
    return lambda: learn.TwoStage(getattr(aggregate, aggregator)(), classifier)


# Table: how to load it, and per line what makes the learner and the published accuracy.
TABLES = {
    "mgc": (
        lambda: load("mgc"),
        {
            "MV + logistic regression": (two_stage("MajorityVote"), 0.6267),
            "GLAD + logistic regression": (two_stage("GLAD"), 0.6603),
            "IBCC + logistic regression": (two_stage("IBCC"), None),
            "SoftProb": (learn.SoftProb, None),
            "CrowdLayer": (lambda: learn.CrowdLayer(training=SHARED), 0.4287),
            "Raykar, no prior": (lambda: learn.Raykar(smoothing=0.0), 0.1200),
            "Raykar, prior": (learn.Raykar, 0.6300),
            "MALR": (learn.MALR, 0.6400),
            "SpeeLFC": (lambda: learn.SpeeLFC(training=SHARED), 0.6923),
            "SpeeLFCD": (
                lambda: learn.SpeeLFCD(
                    training=Training(
                        learning_rate={"truth": 1e-2, "noise": 1e-3}, epochs=1000, patience=50
                    )
                ),
                0.6833,
            ),
            "LIA": (lambda: learn.LIA(truth="linear"), None),
        },
    ),
    "labelme": (
        lambda: load("labelme"),
        {
            "MV + logistic regression": (two_stage("MajorityVote"), None),
            "D&S + logistic regression": (two_stage("DawidSkene"), None),
            **{
                name: (lambda name=name: getattr(learn, name)(truth=NET, training=BATCHES), None)
                for name in learn.LEARNERS
                if "truth" in getattr(learn, name)().get_params()
                and "training" in getattr(learn, name)().get_params()
            },
        },
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", choices=TABLES)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--methods", nargs="+", help="only these; nothing is saved then")
    args = parser.parse_args()
    make_data, lines = TABLES[args.table]
    data, rows = make_data(), []
    for method in args.methods or lines:
        make, published = lines[method]
        runs = Parallel(args.jobs)(delayed(run)(make, data, seed) for seed in range(args.seeds))
        rows.append({"method": method, "published": published, **summary(runs)})
        sys.stderr.write(f"{rows[-1]}\n")
    text = report(args.table, rows)
    sys.stdout.write(text + "\n")
    if not args.methods:
        save(
            f"learning-{args.table}",
            provenance(f"make bench-learning TABLE={args.table}"),
            rows,
            text,
        )


def run(make, data: FeatureSet, seed: int) -> dict[str, float]:
    """Fit once; score the test split, and the posterior of the training tasks."""
    import torch

    torch.set_num_threads(1)
    model = make()
    if "random_state" in model.get_params():
        model.set_params(random_state=seed)
    X, X_test = data.X, data.X_test
    if not hasattr(model, "scale"):  # the others standardise by themselves
        scaler = StandardScaler().fit(X)
        X, X_test = (part.copy() for part in (X, X_test))
        X[:], X_test[:] = scaler.transform(X), scaler.transform(X_test)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, data.annotations)
    seconds = time.perf_counter() - start
    posterior = data.annotations.classes[model.posterior_.argmax(axis=1)]
    return {
        "accuracy": float(np.mean(model.predict(X_test) == data.y_test)),
        "training": float(np.mean(posterior == data.truth.loc[data.annotations.tasks])),
        "confusion": confusion_error(model, data),
        "seconds": seconds,
    }


def confusion_error(model, data: FeatureSet, n_busiest: int = 6) -> float:
    """Mean absolute difference of learned and empirical confusions of the busiest workers."""
    votes = data.annotations
    if getattr(model, "confusion_", None) is None:
        return float("nan")
    truth = np.searchsorted(votes.classes, data.truth.loc[votes.tasks].to_numpy())[votes.task]
    counts = np.zeros((votes.n_workers, votes.n_classes, votes.n_classes))
    np.add.at(counts, (votes.worker, truth, votes.label), 1.0)
    busiest = np.argsort(-counts.sum(axis=(1, 2)))[:n_busiest]
    seen = counts[busiest].sum(axis=2) > 0
    empirical = counts[busiest] / np.maximum(counts[busiest].sum(axis=2, keepdims=True), 1)
    return float(np.abs(model.confusion_[busiest] - empirical)[seen].mean())


def summary(runs: list[dict[str, float]]) -> dict[str, float]:
    found = {}
    for name in runs[0]:
        values = np.array([one[name] for one in runs])
        found[name] = float(values.mean())
        found[f"{name}_se"] = (
            float(values.std(ddof=1) / np.sqrt(len(values))) if len(runs) > 1 else 0.0
        )
    return {**found, "n_seeds": len(runs)}


def report(name: str, rows: list[dict]) -> str:
    header = ["method", "test accuracy", "s.e.", "published", "posterior of training tasks"]
    header += ["confusion error", "seconds"]
    lines = [
        [
            row["method"],
            f"{row['accuracy']:.4f}",
            f"{row['accuracy_se']:.4f}",
            f"{row['published']:.4f}" if row["published"] else "",
            f"{row['training']:.4f}",
            "" if np.isnan(row["confusion"]) else f"{row['confusion']:.3f}",
            f"{row['seconds']:.1f}",
        ]
        for row in rows
    ]
    return f"# Learners on {name}, {rows[0]['n_seeds']} seeds\n\n" + table(header, lines)


if __name__ == "__main__":
    main()
