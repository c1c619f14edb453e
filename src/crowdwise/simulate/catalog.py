"""All simulated sets by name, and sets labeled by any workers."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Unpack

from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from crowdwise.datasets.crowd import Crowd
from crowdwise.errors import ParameterError, explain
from crowdwise.simulate.classroom import classroom
from crowdwise.simulate.crowds import LabelOptions, check_prior, simulate_crowd
from crowdwise.simulate.features import class_features, margin_difficulty
from crowdwise.simulate.neucrowd import WORKERS as NEUCROWD_SETS
from crowdwise.simulate.neucrowd import neucrowd
from crowdwise.simulate.simulated_set import Description, as_dataset
from crowdwise.simulate.stand_ins import STAND_INS, stand_in
from crowdwise.simulate.workers import Worker
from crowdwise.typing import RandomState

SETS: dict[str, Callable[..., Crowd]] = {
    "classroom": classroom,
    **{name: partial(neucrowd, name) for name in NEUCROWD_SETS},
    **{name: partial(stand_in, name) for name in STAND_INS},
}


def make(name: str, *, random_state: RandomState = None) -> Crowd:
    """Draw a simulated set by its name, as ``crowdwise.datasets.load`` loads a real one.

    Parameters
    ----------
    name : str
        ``classroom``; ``syn1`` or ``syn2`` of :func:`neucrowd`; or a :func:`stand_in`.
    random_state : int or RandomState, optional
        Random seed.

    Examples
    --------
    >>> make("class", random_state=0)  # doctest: +NORMALIZE_WHITESPACE
    <stand_in_class: 2,360 annotations of 472 tasks by 5 workers, 2 classes; truth of 472;
     X 472 x 50; split fold-1, fold-2, fold-3, fold-4, fold-5>
    """
    if name not in SETS:
        raise ParameterError(
            explain(
                f"There is no simulated set {name!r}.",
                expected=", ".join(SETS),
                fix="choose one of these",
            )
        )
    return SETS[name](random_state=random_state)


def simulate_dataset(
    workers: Sequence[Worker],
    n_tasks: int = 300,
    *,
    n_classes: int = 2,
    prior: ArrayLike | None = None,
    n_features: int = 10,
    separation: float = 2.0,
    difficulty: float = 0.0,
    random_state: RandomState = None,
    **options: Unpack[LabelOptions],
) -> Crowd:
    """Draw a set labeled by these workers, with features, in the same form as ``make``.

    Parameters
    ----------
    workers : list of Worker
        The workers who label.
    n_tasks : int, default=300
        Number of tasks.
    n_classes : int, default=2
        Number of classes.
    n_features : int, default=10
        Number of features.
    prior : array of shape (n_classes,), optional
        P(truth), uniform by default.
    separation : float, default=2
        Distance between the features of two classes; see :func:`class_features`.
    difficulty : float, default=0
        Spread of difficulties, which the features explain; see :func:`margin_difficulty`.
    random_state : int or RandomState, optional
        Random seed.
    **options
        ``per_task``, ``activity``, ``abstention`` and ``soft_confidence`` of
        :func:`simulate_crowd`.

    Examples
    --------
    >>> from crowdwise.simulate import OneCoinWorker, Spammer
    >>> workers = 4 * [OneCoinWorker(0.8)] + [Spammer()]
    >>> made = simulate_dataset(workers, 100, n_classes=3, per_task=3, random_state=0)
    >>> made
    <simulated: 300 annotations of 100 tasks by 5 workers, 3 classes; truth of 100; X 100 x 10>
    """
    rng = check_random_state(random_state)
    if n_tasks < 1:
        raise ParameterError(
            f"n_tasks={n_tasks}.\n  expected: 1 or more\n  fix:      give n_tasks=100"
        )
    truth = rng.choice(n_classes, size=n_tasks, p=check_prior(prior, n_classes))
    X = class_features(truth, n_features, separation=separation, random_state=rng)
    hard = margin_difficulty(X, truth, spread=difficulty) if difficulty else None
    crowd = simulate_crowd(
        n_classes=n_classes,
        workers=workers,
        prior=prior,
        truth=truth,
        difficulty=hard,
        random_state=rng,
        **options,
    )
    width = len(str(n_tasks))
    tasks = [f"task-{i + 1:0{width}d}" for i in range(n_tasks)]
    return as_dataset(ABOUT, crowd, X, tasks=tasks)


ABOUT = Description(
    name="simulated",
    title="A simulated crowd",
    about="Tasks labeled by simulated workers.",
    features="Simulated: hidden factors, normal around a center for each class.",
)
