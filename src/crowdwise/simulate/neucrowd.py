"""The two synthetic sets of NeuCrowd, redrawn by their recipe."""

import numpy as np
from scipy.stats import truncnorm
from sklearn.utils import check_random_state

from crowdwise.datasets.crowd import Crowd
from crowdwise.errors import ParameterError, explain
from crowdwise.simulate.crowds import simulate_crowd
from crowdwise.simulate.simulated_set import Description, as_dataset, name_parts
from crowdwise.simulate.workers import OneCoinWorker
from crowdwise.typing import Floats, RandomState

SIZES = {"train": 800, "valid": 200, "test": 500}
N_FEATURES = 1200
WORKERS = {"syn1": 7, "syn2": 11}
KAPPA = {"syn1": 0.52, "syn2": 0.44}  # as published, for one draw
MEAN, DEVIATION, LOW, HIGH = 0.1, 0.1, 0.01, 0.5  # of the error rates
N_GROUPS = 20_000  # to choose from if a kappa is given
PAPER = (
    "Y. Hao, W. Ding, Z. Liu. NeuCrowd: neural sampling network for representation learning "
    "with crowdsourced labels. Knowledge and Information Systems, 2022. arXiv:2003.09660."
)


def neucrowd(
    name: str, *, kappa: float | str | None = None, random_state: RandomState = None
) -> Crowd:
    """Draw Syn1 or Syn2 of NeuCrowd: 1,500 tasks, 1,200 features, 7 or 11 workers.

    Features are two normal clusters per class in 1,200 dimensions. Each worker labels all tasks
    and mislabels with a probability drawn from a normal distribution with mean 0.1 and standard
    deviation 0.1, truncated at 0.01 and 0.5.

    Parameters
    ----------
    name : {"syn1", "syn2"}
        Which set.
    kappa : float or "published", optional
        Choose a group from the same distribution with this expected Fleiss' kappa;
        ``"published"`` is 0.52 for Syn1 and 0.44 for Syn2. By default any group; the mean kappa
        is then 0.54, and one group of 11 in fifteen has 0.44 or less.
    random_state : int or RandomState, optional
        Random seed; another one draws other features and another group.

    Returns
    -------
    crowdwise.datasets.Crowd
        As ``load`` gives it, with the parts ``train``, ``valid`` and ``test``.

    Examples
    --------
    >>> neucrowd("syn1", random_state=0).part("train").X.shape
    (800, 1200)
    """
    from sklearn.datasets import make_classification  # slow to import

    if name not in WORKERS:
        raise ParameterError(
            explain(
                f"NeuCrowd has no synthetic set {name!r}.",
                expected=", ".join(WORKERS),
                fix="choose one of these",
            )
        )
    rng = check_random_state(random_state)
    X, truth = make_classification(
        sum(SIZES.values()),
        N_FEATURES,
        n_informative=N_FEATURES,
        n_redundant=0,
        n_clusters_per_class=2,
        class_sep=1.0,
        flip_y=0.01,
        random_state=rng,
    )
    wanted = KAPPA[name] if kappa == "published" else None if kappa is None else float(kappa)
    workers = [OneCoinWorker(1 - error) for error in draw_error_rates(WORKERS[name], wanted, rng)]
    crowd = simulate_crowd(
        n_classes=2, per_task=len(workers), workers=workers, truth=truth, random_state=rng
    )
    tasks, split = name_parts(SIZES)
    return as_dataset(_about(name), crowd, X.astype(np.float32), tasks=tasks, split=split)


def draw_error_rates(n_workers: int, kappa: float | None, rng: np.random.RandomState) -> Floats:
    """Draw one rate per worker; if a kappa is given, from the group that comes closest."""
    bounds = (LOW - MEAN) / DEVIATION, (HIGH - MEAN) / DEVIATION
    law = truncnorm(*bounds, loc=MEAN, scale=DEVIATION)
    if kappa is None:
        return law.rvs(n_workers, random_state=rng)
    groups = law.rvs((N_GROUPS, n_workers), random_state=rng)
    away = np.abs(expected_kappa(groups) - kappa)
    if away.min() > 0.01:
        raise ParameterError(
            explain(
                f"No group of {n_workers} workers has a kappa of {kappa}.",
                expected='"published", or a number that such workers can reach, about 0.4 to 0.7',
                fix='give kappa="published"',
            )
        )
    found: Floats = groups[np.argmax(away <= 0.01)]
    return found


def expected_kappa(error: Floats) -> Floats:
    """Return Fleiss' kappa of two even classes: the mean of (1 - 2e)(1 - 2e') over pairs."""
    skill = 1 - 2 * error
    n_workers = error.shape[-1]
    pairs: Floats = skill.sum(axis=-1) ** 2 - (skill**2).sum(axis=-1)
    return pairs / (n_workers * (n_workers - 1))


def _about(name: str) -> Description:
    return Description(
        name=f"neucrowd_{name}_simulated",
        title=f"NeuCrowd {name.capitalize()}, redrawn",
        about=f"1,500 tasks of two classes, labeled by {WORKERS[name]} simulated workers.",
        features="1,200 normal features in two clusters per class, all informative.",
        warnings=(
            "Drawn by the paper's recipe, not the authors' files: compare means over seeds.",
            "In the one published part, errors cluster on some tasks: 17% of its labels are wrong, "
            "and the majority on 6.5% of tasks. By the recipe that is about 1%.",
        ),
        citation=(PAPER,),
    )
