"""A simulated classroom: clips of lessons, labeled by teachers of varying quality."""

from dataclasses import replace

import numpy as np
import pandas as pd
from sklearn.utils import check_random_state

from crowdwise.datasets.crowd import Crowd
from crowdwise.simulate.crowds import simulate_crowd
from crowdwise.simulate.features import margin_difficulty
from crowdwise.simulate.simulated_set import Description, as_dataset
from crowdwise.simulate.workers import (
    Colluder,
    ConfusedWorker,
    Drifter,
    OneCoinWorker,
    Spammer,
    Worker,
)
from crowdwise.typing import Array, Floats, Ints, RandomState

N_CLIPS = 300
CLASSES = ("engaged", "listening", "off task")
PRIOR = (0.6, 0.3, 0.1)
# Feature: its mean in each class, its standard deviation, its minimum and its maximum.
FEATURES: dict[str, tuple[tuple[float, float, float], float, float, float]] = {
    "pupil_talk_share": ((0.45, 0.15, 0.40), 0.12, 0.0, 1.0),
    "on_topic_words": ((0.80, 0.70, 0.35), 0.15, 0.0, 1.0),
    "hands_raised": ((3.2, 1.2, 0.4), 1.2, 0.0, 12.0),
    "open_questions": ((2.4, 1.6, 1.2), 1.0, 0.0, 8.0),
    "wait_seconds": ((3.4, 2.4, 1.8), 1.0, 0.0, 10.0),
    "noise_decibels": ((58.0, 50.0, 64.0), 5.0, 35.0, 85.0),
    "gaze_on_task": ((0.82, 0.76, 0.40), 0.12, 0.0, 1.0),
    "minutes_into_lesson": ((22.0, 22.0, 29.0), 11.0, 0.0, 45.0),
}
LENIENT = [[0.95, 0.04, 0.01], [0.50, 0.48, 0.02], [0.30, 0.50, 0.20]]  # sees too much engagement
TEACHERS: tuple[Worker, ...] = (
    OneCoinWorker(0.93, activity=2.0),
    OneCoinWorker(0.88, activity=2.0),
    OneCoinWorker(0.82),
    OneCoinWorker(0.72),
    ConfusedWorker(LENIENT),
    Drifter(0.92, 0.50),
    Colluder(accuracy=0.5, leader=3, copying=0.8),
    Spammer("random"),
    Spammer("one label", label=0),
)
FIRST_DAY = np.datetime64("2024-09-02T08:00:00")
SECONDS_BETWEEN = 20.0  # mean time between two labels


def classroom(*, random_state: RandomState = 0) -> Crowd:
    """Draw a small set for demonstrations: teachers say whether a class is engaged.

    300 clips with eight named features, each shown to five of nine teachers: four who are
    fairly careful, a lenient one, one who tires, one who copies another, and two who do not
    look. Most clips are ``engaged``, few ``off task``; those in between are hard.

    Parameters
    ----------
    random_state : int or RandomState, default=0
        Random seed.

    Returns
    -------
    crowdwise.datasets.Crowd
        In the form returned by ``load``, with the parts ``train`` and ``test``; annotations
        have times, ``items`` names the lesson of each clip, and ``extra["feature_names"]`` the
        columns of ``X``.

    Examples
    --------
    >>> lessons = classroom()
    >>> lessons.annotations
    <Annotations: 1,500 annotations of 300 tasks by 9 workers, 3 classes>
    >>> lessons.annotations.tasks[17], lessons.annotations.workers[0]
    ('clip-018', 'teacher-1')
    >>> lessons.workers["kind"]["teacher-8"]
    'spammer'
    """
    rng = check_random_state(random_state)
    truth = rng.choice(len(CLASSES), size=N_CLIPS, p=PRIOR)
    X = draw_features(truth, rng)
    crowd = simulate_crowd(
        n_classes=len(CLASSES),
        workers=TEACHERS,
        prior=PRIOR,
        truth=truth,
        difficulty=margin_difficulty((X - X.mean(axis=0)) / X.std(axis=0), truth, spread=0.4),
        random_state=rng,
    )
    order = crowd.annotations.time
    waits = rng.exponential(SECONDS_BETWEEN, size=crowd.annotations.n_annotations).cumsum()
    times = FIRST_DAY + waits.round().astype("timedelta64[s]")
    timed = replace(crowd.annotations, time=times[order])
    tasks = [f"clip-{i + 1:03d}" for i in range(N_CLIPS)]
    lesson = np.sort(rng.randint(0, 24, size=N_CLIPS))
    return as_dataset(
        ABOUT,
        replace(crowd, annotations=timed),
        X,
        tasks=tasks,
        split=np.where(rng.permutation(N_CLIPS) < 0.75 * N_CLIPS, "train", "test").tolist(),
        workers=[f"teacher-{j + 1}" for j in range(len(TEACHERS))],
        classes=CLASSES,
        items=_items(tasks, lesson, X),
        extra={"feature_names": list(FEATURES)},
    )


def draw_features(truth: Ints, rng: np.random.RandomState) -> Floats:
    """Draw measurements of every clip, within bounds and rounded; (clip, feature)."""
    mean = np.array([row[0] for row in FEATURES.values()]).T
    deviation, low, high = np.array([row[1:] for row in FEATURES.values()]).T
    drawn = mean[truth] + deviation * rng.standard_normal((len(truth), len(FEATURES)))
    return np.clip(drawn, low, high).round(2)


def _items(tasks: list[str], lesson: Array, X: Floats) -> pd.DataFrame:
    minute = X[:, list(FEATURES).index("minutes_into_lesson")].astype(int)
    names = [f"lesson-{number + 1:02d}" for number in lesson]
    return pd.DataFrame({"lesson": names, "minute": minute}, pd.Index(tasks, name="task"))


ABOUT = Description(
    name="classroom_simulated",
    title="A simulated classroom",
    about="300 clips of lessons: is the class engaged, listening or off task? Each is labeled "
    "by five of nine simulated teachers of very different quality.",
    features="Eight simulated measurements; extra['feature_names'] names them.",
    warnings=("Simulated for demonstrations: no clip, pupil or teacher is real.",),
)
