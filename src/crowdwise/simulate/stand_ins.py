"""Stand-ins for private sets: simulated, with the published statistics."""

from dataclasses import dataclass

import numpy as np
from sklearn.utils import check_random_state

from crowdwise.datasets.crowd import Crowd
from crowdwise.errors import ParameterError, explain
from crowdwise.simulate.features import class_features, margin_difficulty
from crowdwise.simulate.neucrowd import PAPER as NEUCROWD
from crowdwise.simulate.simulated_set import Description, as_dataset, name_parts
from crowdwise.simulate.target_kappa import crowd_with_kappa
from crowdwise.simulate.workers import DirichletWorker
from crowdwise.typing import RandomState

RLL = (
    "G. Xu, W. Ding, J. Tang, S. Yang, G. Y. Huang, Z. Liu. Learning effective embeddings from "
    "crowdsourced labels: an educational case study. ICDE 2019. doi:10.1109/ICDE.2019.00208."
)
SPREAD = 1.0  # of the logarithm of difficulties
ACCURACY = (0.7, 0.95)  # of workers, before kappa is matched
BEND = 1.0  # of the features: a small part of the classes that linear classifiers cannot use


@dataclass(frozen=True)
class StandIn:
    """The published facts about a private set, and what had to be assumed."""

    title: str
    sizes: dict[str, int]
    n_features: int
    n_workers: int
    positive: float  # share of the tasks
    kappa: float
    separation: float  # of the features, chosen so that logistic regression is in the band
    band: tuple[float, float]  # its accuracy when trained on true labels
    paper: str
    assumed: str


def _folds(n_tasks: int) -> dict[str, int]:
    """Make five folds of almost the same size."""
    return {f"fold-{k + 1}": len(range(k, n_tasks, 5)) for k in range(5)}


FEATURES_ASSUMED = "50 features (the number is not published)"
STAND_INS = {
    "oral": StandIn(
        "Oral math questions of RLL",
        _folds(880),
        50,
        5,
        1.8 / 2.8,
        0.5,
        2.2,
        (0.80, 0.90),
        RLL,
        f"Fleiss' kappa of 0.50 (none is published) and {FEATURES_ASSUMED}",
    ),
    "class": StandIn(
        "Online class qualities of RLL",
        _folds(472),
        50,
        5,
        2.1 / 3.1,
        0.4,
        1.6,
        (0.70, 0.85),
        RLL,
        f"Fleiss' kappa of 0.40 (none is published) and {FEATURES_ASSUMED}",
    ),
    "pre_k": StandIn(
        "Pre-K children's speech of NeuCrowd",
        {"train": 940, "valid": 247, "test": 300},
        1632,
        11,
        0.65,
        0.60,
        2.2,
        (0.78, 0.92),
        NEUCROWD,
        "",
    ),
    "oral_neucrowd": StandIn(
        "Oral language skill of NeuCrowd",
        {"train": 908, "valid": 384, "test": 200},
        50,
        11,
        0.70,
        0.41,
        2.0,
        (0.78, 0.92),
        NEUCROWD,
        "",
    ),
}


def stand_in(name: str, *, bend: float = BEND, random_state: RandomState = None) -> Crowd:
    """Draw a stand-in for a private set of the RLL or NeuCrowd paper.

    It has the published numbers of tasks, workers and features, the class ratio, the split
    and Fleiss' kappa; nothing else is known of the real set. What is not published is
    assumed, and ``info.warnings`` says so. Features are made from hidden factors; tasks between
    the classes are hard for the workers; kappa is met by scaling all difficulties.

    Parameters
    ----------
    name : {"oral", "class", "pre_k", "oral_neucrowd"}
        The two sets of RLL, split into five folds; the two of NeuCrowd, split into ``train``,
        ``valid`` and ``test``.
    bend : float, default=1
        How far the two clusters of each class lie to either side of its center. A larger bend
        leaves linear classifiers unaffected and gives others more to find: at 3 they can be
        right on almost every task.
    random_state : int or RandomState, optional
        Random seed.

    Returns
    -------
    crowdwise.datasets.Crowd
        In the form returned by ``load``; its name starts with ``stand_in_``.

    Examples
    --------
    >>> oral = stand_in("oral", random_state=0)
    >>> oral.name, oral.X.shape, oral.annotations.n_workers
    ('stand_in_oral', (880, 50), 5)
    """
    if name not in STAND_INS:
        raise ParameterError(
            explain(
                f"There is no stand-in {name!r}.",
                expected=", ".join(STAND_INS),
                fix="choose one of these",
            )
        )
    rng, set_ = check_random_state(random_state), STAND_INS[name]
    n_tasks = sum(set_.sizes.values())
    truth = rng.permutation((np.arange(n_tasks) < round(set_.positive * n_tasks)).astype(int))
    X = class_features(
        truth, set_.n_features, separation=set_.separation, bend=bend, random_state=rng
    )
    crowd = crowd_with_kappa(
        set_.kappa,
        truth=truth,
        n_classes=2,
        workers=set_.n_workers * [DirichletWorker(ACCURACY, concentration=50.0)],
        per_task=set_.n_workers,
        difficulty=margin_difficulty(X, truth, spread=SPREAD),
        random_state=rng,
    )
    tasks, split = name_parts(set_.sizes)
    return as_dataset(_about(name), crowd, X.astype(np.float32), tasks=tasks, split=split)


def _about(name: str) -> Description:
    set_ = STAND_INS[name]
    warnings = [
        "A simulated stand-in for a private set: results on it say nothing about the real one.",
        "Invented: all features, who errs where, and that hard tasks lie between the classes. "
        "Logistic regression on true labels is right on {:.0%} to {:.0%}.".format(*set_.band),
    ]
    if set_.assumed:
        warnings.append(f"Assumed: {set_.assumed}.")
    return Description(
        name=f"stand_in_{name}",
        title=f"Stand-in for: {set_.title}",
        about=f"{sum(set_.sizes.values()):,} simulated tasks of two classes, each labeled by "
        f"all {set_.n_workers} simulated workers; Fleiss' kappa {set_.kappa:.2f}.",
        features=f"{set_.n_features:,} simulated features.",
        warnings=tuple(warnings),
        citation=(set_.paper,),
    )
