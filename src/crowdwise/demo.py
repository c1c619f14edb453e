"""A tour on a simulated classroom: labels, classifiers, an embedding and a report."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pandas as pd

from crowdwise import aggregate
from crowdwise.datasets.crowd import Crowd
from crowdwise.errors import FileError, MissingExtraError, explain
from crowdwise.evaluate import score
from crowdwise.io import consensus_frame, write_labels
from crowdwise.io.atomic import replace_files
from crowdwise.report import write_report
from crowdwise.simulate import classroom
from crowdwise.simulate.files import make_folder
from crowdwise.typing import FeaturesLike, Floats

if TYPE_CHECKING:
    from crowdwise.base import Learner


Row: TypeAlias = dict[str, object]
AGGREGATORS = ("MajorityVote", "IBCC", "DawidSkene", aggregate.DEFAULT.__name__)
SCORES = {
    "accuracy": "accuracy",
    "balanced accuracy": "balanced_accuracy",
    "minority recall": "minority_recall",
}
EPOCHS = 12  # of RLL: enough here, and fast
GROUPS = 10_000  # of tasks, per epoch of RLL
FILES = ("votes.csv", "truth.csv", "features.csv", "labels.csv", "report.html")
NO_TORCH = 'classifiers and embeddings are skipped: pip install "crowdwise[torch]"'
Say = Callable[[str], None]


def demo(folder: str | Path, *, random_state: int = 0, say: Say = lambda _: None) -> pd.DataFrame:
    """Label clips of lessons, learn to label new ones, and write a report.

    Parameters
    ----------
    folder : str or Path
        The folder for ``votes.csv``, ``truth.csv``, ``features.csv``, ``labels.csv`` and
        ``report.html``; it is created if it does not exist.
    random_state : int, default=0
        Random seed.
    say : callable, optional
        Called with a line of text for every step.

    Returns
    -------
    DataFrame
        One row per method: what it labeled, how accurately, and how long it took.
    """
    folder = Path(folder).expanduser()
    make_folder(folder)
    refuse_foreign_files(folder)
    lessons = classroom(random_state=random_state)
    train, test = lessons.part("train"), lessons.part("test")
    say(f"A simulated classroom: {lessons.annotations}")
    rows, embedding = list(infer_labels(train, say)), None
    try:
        rows += train_classifiers(train, test, random_state, say)
        embedding, row = learn_embedding(lessons, train, test, random_state, say)
        rows.append(row)
    except MissingExtraError:
        say(NO_TORCH)
    say("Writing the report")
    with replace_files(folder) as beside:
        save_files(lessons, beside)
        write_report(
            lessons.annotations,
            beside / "report.html",
            X=lessons.X,
            truth=lessons.truth,
            embedding=embedding,
            title="A simulated classroom",
            random_state=random_state,
        )
    return pd.DataFrame(rows)


def refuse_foreign_files(folder: Path) -> None:
    """Refuse a folder with files that the tour would replace, unless it wrote them all."""
    found = [name for name in FILES if (folder / name).exists()]
    if found and found != list(FILES):
        raise FileError(
            explain(
                f"{folder} contains {', '.join(found)}, which the tour would replace.",
                expected="a new folder, or that of an earlier tour",
                fix="choose another folder with -o",
            )
        )


def infer_labels(train: Crowd, say: Say) -> Iterator[Row]:
    """Infer labels of annotated clips, from the annotations alone."""
    for name in AGGREGATORS:
        say(f"Inferring labels: {name}")
        start = time.perf_counter()
        model = getattr(aggregate, name)().fit(train.annotations)
        yield score_row("annotated clips", name, model.probas_, train.truth, start)


def train_classifiers(train: Crowd, test: Crowd, random_state: int, say: Say) -> Iterator[Row]:
    """Label clips that nobody annotated, by classifiers trained on the others."""
    from crowdwise.learn import AutoClassifier, TwoStage

    learners = {
        "MajorityVote + logistic regression": TwoStage(aggregate.MajorityVote()),
        "IBCC + logistic regression": TwoStage(aggregate.IBCC()),
        "AutoClassifier": AutoClassifier(random_state=random_state),
    }
    for name, learner in learners.items():
        say(f"Training a classifier: {name}")
        start = time.perf_counter()
        learner.fit(train.X, train.annotations)
        yield score_row("new clips", name, predict_frame(learner, test, test.X), test.truth, start)


def learn_embedding(
    lessons: Crowd, train: Crowd, test: Crowd, random_state: int, say: Say
) -> tuple[Floats, Row]:
    """Learn an embedding of all clips, and score a logistic regression on it."""
    from crowdwise.embed import RLL, Bayesian
    from crowdwise.learn import Training, TwoStage

    say("Learning an embedding: RLL")
    start = time.perf_counter()
    brief = Training(epochs=EPOCHS, batch_size=512, learning_rate=3e-3)
    space = RLL(
        aggregator=aggregate.IBCC(),
        confidence=Bayesian(evidence="posterior"),
        groups_per_epoch=GROUPS,
        training=brief,
        random_state=random_state,
    )
    places = space.fit_transform(train.X, train.annotations)
    classifier = TwoStage(aggregate.IBCC()).fit(places, train.annotations)
    proba = predict_frame(classifier, test, space.transform(test.X))
    row = score_row("new clips", "IBCC + RLL + logistic regression", proba, test.truth, start)
    return space.transform(lessons.X), row


def predict_frame(learner: Learner, test: Crowd, X: FeaturesLike) -> pd.DataFrame:
    """Return probabilities of the classes by task."""
    return pd.DataFrame(learner.predict_proba(X), index=test.X_tasks, columns=learner.classes_)


def score_row(
    what: str, name: str, predicted: pd.DataFrame, truth: pd.Series | None, start: float
) -> Row:
    """Return a row of the table of scores."""
    seconds = time.perf_counter() - start
    table = score(predicted, truth, n_resamples=0)
    row: Row = {"labels of": what, "method": name}
    row |= {column: table.loc[key, "value"] for key, column in SCORES.items()}
    low, high = table.loc["accuracy", ["low", "high"]]
    return {**row, "accuracy_low": low, "accuracy_high": high, "seconds": seconds}


def save_files(lessons: Crowd, folder: Path) -> None:
    """Write files to start your own analysis from, and the labels it would end with."""
    votes, names = lessons.annotations, lessons.extra["feature_names"]
    write_labels(folder / "votes.csv", votes.to_frame())
    assert lessons.truth is not None
    truth = lessons.truth.rename("label").rename_axis("task").reset_index()
    write_labels(folder / "truth.csv", truth)
    features = pd.DataFrame(lessons.X, columns=names)
    features.insert(0, "task", lessons.X_tasks)
    write_labels(folder / "features.csv", features, digits=None)
    model = aggregate.DEFAULT().fit(votes)
    write_labels(folder / "labels.csv", consensus_frame(model, votes))
