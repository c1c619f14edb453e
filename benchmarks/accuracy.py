"""Every aggregator on every real crowd: accuracy, F1, log loss, calibration and seconds.

Methods run at their default settings, stochastic ones from seed 0. Where a worker labeled a task
twice, the last label counts. Nothing is chosen by the truth.

python benchmarks/accuracy.py
"""

import argparse
import sys
import time
import warnings

import numpy as np
import pandas as pd
import real_crowds
from results_files import provenance, save, table

from crowdwise import aggregate
from crowdwise.errors import CrowdwiseError
from crowdwise.evaluate import score

SCORES = ("accuracy", "macro F1", "minority F1", "log loss", "calibration error")
# Labels are ordered grades there; elsewhere an ordinal model has no meaning.
ORDERED = ("adult",)


def main() -> None:
    args = arguments()
    if not real_crowds.names():
        sys.exit("There are no real crowds here: set CROWDWISE_DATA to their folder.")
    rows = []
    for name in args.sets or real_crowds.names():
        crowd = real_crowds.load(name)
        for method in args.methods:
            rows.append({"set": name, "method": method, **measured(method, crowd)})
            sys.stderr.write(f"{rows[-1]}\n")
    text = report(pd.DataFrame(rows))
    sys.stdout.write(text + "\n")
    if not (args.sets or args.methods != aggregate.__all__):
        save("accuracy", provenance("make bench-accuracy"), rows, text)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", help="only these; nothing is saved then")
    parser.add_argument("--methods", nargs="+", default=aggregate.__all__)
    return parser.parse_args()


def measured(method: str, crowd: real_crowds.RealCrowd) -> dict[str, object]:
    """Scores and seconds of one method on one crowd, or why there are none."""
    if method.startswith("Ordinal") and crowd.name not in ORDERED:
        return {"skipped": "labels have no order"}
    model = getattr(aggregate, method)()
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    start = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(crowd.annotations)
    except CrowdwiseError as error:
        return {"skipped": str(error).splitlines()[0]}
    seconds = time.perf_counter() - start
    found = score(model, crowd.truth, n_resamples=2)["value"]
    return {"seconds": seconds, "n_truths": len(crowd.truth), **found[list(SCORES)].to_dict()}


def report(rows: pd.DataFrame) -> str:
    """One table a score, and the means over the sets that every method can do."""
    parts = ["# Accuracy on real crowds", overall(rows)]
    for name, digits in {**dict.fromkeys(SCORES, 4), "seconds": 2}.items():
        wide = rows.pivot(index="set", columns="method", values=name)
        wide = wide.reindex(columns=list(dict.fromkeys(rows["method"])))
        best = wide.min(axis=1) if name in ("log loss", "calibration error") else wide.max(axis=1)
        lines = [
            [
                row,
                *[
                    cell(value, digits, name != "seconds" and value == best[row])
                    for value in values
                ],
            ]
            for row, values in zip(wide.index, wide.to_numpy(), strict=True)
        ]
        parts.append(f"**{name}**\n\n" + table(["set", *wide.columns], lines))
    return "\n\n".join(parts)


def overall(rows: pd.DataFrame) -> str:
    """Mean accuracy and rank over the sets that a method can do, best first."""
    wide = rows.pivot(index="set", columns="method", values="accuracy")
    common = wide.loc[:, wide.notna().all()]
    rank = common.rank(axis=1, ascending=False).mean()
    mean, seconds = common.mean(), rows.groupby("method")["seconds"].sum()
    order = mean.sort_values(ascending=False).index
    lines = [[m, f"{mean[m]:.4f}", f"{rank[m]:.1f}", f"{seconds[m]:.1f}"] for m in order]
    lines.append(["best method of each set", f"{common.max(axis=1).mean():.4f}", "", ""])
    others = sorted(set(wide) - set(common))
    note = f"\n\nOnly on some sets: {', '.join(others)}." if others else ""
    about = f"Over the {len(common)} sets, for the methods that can do them all:\n\n"
    return about + table(["method", "mean accuracy", "mean rank", "seconds in all"], lines) + note


def cell(value: float, digits: int, best: bool) -> str:
    if np.isnan(value):
        return "-"
    return f"**{value:.{digits}f}**" if best else f"{value:.{digits}f}"


if __name__ == "__main__":
    main()
