"""The default answer on crowds outside the 20 sets of the accuracy benchmark.

    CROWDWISE_DATA=FOLDER python benchmarks/outside_crowds.py

The first eight were in view when the measure of dependence was settled, which no setting was
fitted to. One is a panel of language models; the others rate headlines from 0 to 100 for six
emotions, here present above 0, and from -100 to 100 for valence, here its sign, as are the
published truths. The last four were set aside and looked at once, before the last choice (how
much of the dependence counts), which the 20 sets made: which of two countries has more people,
another panel of language models (is a simplified sentence good, above 50 of 100, as people say on
average?), the words of 60 medical abstracts (do they describe participants?) and those of 500
sentences (what kind of name, if any?). Writes benchmarks/results/outside-crowds.{json,md}.
"""

from __future__ import annotations

import json
import os
import re
import sys
import warnings
from collections.abc import Callable, Container
from pathlib import Path

import numpy as np
import pandas as pd
from results_files import provenance, save, table

from crowdbench.tables.calibration import LOSSES, N_BINS
from crowdwise.aggregate import IBCC, BayesBag, DawidSkene, MajorityVote
from crowdwise.evaluate import score, uncertainty

NAME = "outside-crowds"
EMOTIONS = ("anger", "disgust", "fear", "joy", "sadness", "surprise", "valence")
SPANS, SENTENCES = 60, 500  # abstracts, the first ones, and random sentences
METHODS = (BayesBag, IBCC, DawidSkene, MajorityVote)


def folder(name: str) -> Path:
    return Path(os.environ["CROWDWISE_DATA"]) / name


def load(name: str) -> tuple[pd.DataFrame, pd.Series]:
    """Votes (task, worker, label) and truths by task."""
    if name in SET_ASIDE:
        return SET_ASIDE[name](folder(name))
    name, _, part = name.partition(":")
    end = f"_{part}.csv" if part else ".csv"
    file = folder(name) / f"annotations{end}"
    votes = pd.read_csv(file if file.exists() else f"{file}.gz")[["task", "worker", "label"]]
    truth = pd.read_csv(folder(name) / f"truth{end}").set_index("task")["label"]
    if part:
        votes["label"], truth = np.sign(votes["label"]), np.sign(truth)
    return votes, truth[truth.index.isin(votes["task"])]


def load_pairs(place: Path) -> tuple[pd.DataFrame, pd.Series]:
    """Whether the country with the lower number has more people; one task for each pair."""
    votes = pd.read_csv(place / "comparisons.csv")
    rank = pd.read_csv(place / "truth.csv").set_index("item")["label"]  # 1 for the most people
    low, high = votes[["left", "right"]].min(axis=1), votes[["left", "right"]].max(axis=1)
    chosen = np.where(votes["winner"] == "left", votes["left"], votes["right"])
    task = low.astype(str) + "-" + high.astype(str)
    truth = pd.Series((low.map(rank) < high.map(rank)).to_numpy(), index=task)
    label = pd.DataFrame({"task": task, "worker": votes["worker"], "label": chosen == low})
    return label, truth[~truth.index.duplicated()]


def load_scores(place: Path) -> tuple[pd.DataFrame, pd.Series]:
    """Whether scores are above 50, by judges and, on average, by people."""
    votes = pd.read_csv(place / "scores.csv").groupby(["task", "worker"], as_index=False).mean()
    truth = pd.read_csv(place / "truth.csv").set_index("task")["label"]
    return votes.assign(label=votes.pop("score") > 50), truth > 50


def load_spans(place: Path) -> tuple[pd.DataFrame, pd.Series]:
    """Whether each word begins inside a marked span."""
    text = pd.read_csv(place / "items.csv").set_index("task")["text"].iloc[:SPANS]
    starts = {task: [m.start() for m in re.finditer(r"\S+", own)] for task, own in text.items()}

    def mark(task: int, spans: str) -> list[bool]:
        ends = json.loads(spans)
        return [any(low <= start < high for low, high in ends) for start in starts[task]]

    return by_word(place, starts, mark, "annotations.csv")


def load_tags(place: Path) -> tuple[pd.DataFrame, pd.Series]:
    """The kind of name that each word belongs to, or O."""
    tasks = pd.read_csv(place / "truth.csv")["task"].drop_duplicates()
    some = set(tasks.sample(SENTENCES, random_state=0))

    def mark(_: str, tags: str) -> list[str]:
        return [tag.split("-")[-1] for tag in tags.split()]

    return by_word(place, some, mark, "annotations.csv.gz")


def by_word(
    place: Path, some: Container, mark: Callable[..., list], file: str
) -> tuple[pd.DataFrame, pd.Series]:
    """Every word of some texts is a task."""
    votes, truth = pd.read_csv(place / file), pd.read_csv(place / "truth.csv")
    rows = [
        (f"{task} {i}", worker, label)
        for task, worker, own in votes[["task", "worker", "label"]].itertuples(index=False)
        if task in some
        for i, label in enumerate(mark(task, own))
    ]
    known = {
        f"{task} {i}": label
        for task, own in truth[["task", "label"]].itertuples(index=False)
        if task in some
        for i, label in enumerate(mark(task, own))
    }
    frame = pd.DataFrame(rows, columns=["task", "worker", "label"])
    return frame, pd.Series(known)[lambda own: own.index.isin(frame["task"])]


SET_ASIDE = {
    "pairs_population": load_pairs,
    "judges_asset": load_scores,
    "spans_pico": load_spans,
    "spans_ner_mturk": load_tags,
}


def measure(name: str) -> list[dict[str, object]]:
    votes, truth = load(name)
    rows = []
    for method in METHODS:
        model = method().fit(votes)
        own = score(model, truth, n_resamples=2, n_bins=N_BINS, bins="width")["value"]
        right = uncertainty(votes, model).accuracy if method is BayesBag else None
        losses = {loss: float(own[key]) for key, loss in LOSSES.items()}
        bounds = {"expected": right.value, "low": right.low, "high": right.high} if right else {}
        accuracy = {"accuracy": float(own["accuracy"])}
        rows.append({"crowd": name, "method": method.__name__, **accuracy, **losses, **bounds})
    return rows


def main() -> None:
    warnings.simplefilter("ignore")
    names = ("judges_civilcomments", *(f"snow_affect:{emotion}" for emotion in EMOTIONS))
    groups = {"first eight": names, "last four": tuple(SET_ASIDE)}
    rows = [row for name in (*names, *SET_ASIDE) for row in measure(name)]
    frame = pd.DataFrame(rows)
    metrics = ["accuracy", *LOSSES.values()]
    means = [
        (f"mean of the {group}, {method}", own[metrics].mean())
        for group, some in groups.items()
        for method, own in frame[frame["crowd"].isin(some)].groupby("method", sort=False)
    ]
    lines = [
        [
            f"{row['crowd']}, {row['method']}",
            *(f"{row[metric]:.4f}" for metric in metrics),
            f"{row['expected']:.3f} ({row['low']:.3f} to {row['high']:.3f})"
            if "low" in row
            else "",
        ]
        for row in rows
    ]
    mean_lines = [[about, *(f"{value:.4f}" for value in own), ""] for about, own in means]
    text = "\n\n".join(
        [
            "# Crowds outside the benchmark",
            (__doc__ or "").split("\n\n")[2].replace("\n", " ").split(" Writes")[0],
            table(["", *metrics, "expected accuracy"], mean_lines + lines),
        ]
    )
    save(NAME, provenance("python benchmarks/outside_crowds.py"), rows, text)
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    main()
