"""Imbalanced crowds after the synthetic sets of ICED: real features, simulated workers."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from sklearn.utils import check_random_state

from crowdwise import datasets
from crowdwise.annotations import Annotations
from crowdwise.errors import ParameterError, explain, listing
from crowdwise.simulate.crowds import label_by_crowd
from crowdwise.typing import Array, Floats, Ints, RandomState

Choice = TypeVar("Choice")
TOLERANCE = 0.02  # allowed distance from the published figures
MOST_DRAWS = 20_000


@dataclass(frozen=True)
class Population:
    """A distribution of workers, and known figures of the crowd they make."""

    accuracy: tuple[float, float]  # range of accuracy on each class
    shape: float = 1.0  # of the beta distribution in that range: 1 is uniform, less favors the ends
    below_chance: float = 0.0  # share of workers with accuracies from 0.1 to 0.5 instead
    agreed: float | None = None  # share of tasks with at most two dissenting labels
    majority: float | None = None  # balanced accuracy of majority votes


@dataclass(frozen=True)
class Source:
    """The source of a set, and what the paper says about it."""

    dataset: str
    majority: int
    minority: int
    n_workers: int
    workers: Population


# Shares of agreed tasks are those of the paper's Table 3. On USPS they do not determine whether
# majority votes are any good; the test accuracy of a regression on them (Table 2) is close to
# the balanced accuracy of the votes. Good votes without agreement need very different workers.
SOURCES = {
    "usps": Source("usps", 6, 0, 9, Population((0.0, 1.0), 0.5, agreed=103 / 734, majority=0.8494)),
    "gsad": Source("gsad", 2, 5, 11, Population((0.4, 0.9), agreed=507 / 2575)),
    "gisette_like": Source("mnist49", 4, 9, 7, Population((0.5, 0.9), agreed=2043 / 3080)),
}
DIFFICULTIES = {
    "easy": Population((0.6, 0.95)),
    "medium": Population((0.5, 0.9)),
    "hard": Population((0.5, 0.9), below_chance=0.3),
}


@dataclass(frozen=True)
class ImbalancedCrowd:
    """A training part labeled by a crowd, and a balanced test part with its truth.

    Class 0 is the majority and class 1 the minority; ``classes`` has their names in the
    source.
    """

    name: str
    X: Floats
    annotations: Annotations
    truth: Ints  # (task,), of the training part: for evaluation only
    X_test: Floats
    y_test: Ints
    confusion: Floats  # (worker, truth, label): what the labels were drawn from
    agreed: float  # expected share of tasks with at most two dissenting labels
    majority: float  # expected balanced accuracy of majority votes
    classes: tuple[Hashable, Hashable]


def iced(
    name: str,
    *,
    difficulty: str = "published",
    minority: Hashable | None = None,
    random_state: RandomState = None,
    download: bool = True,
) -> ImbalancedCrowd:
    """Re-create one of ICED's synthetic sets: ten to one, and a balanced test part.

    Of two classes of a real set, a fifth of the larger one's size goes to the test part from
    each; the rest of the majority and a tenth as many of the minority are labeled by every
    worker. The counts equal the published ones. How the paper drew its workers is unknown:
    here each has an accuracy for each class, drawn independently.

    Parameters
    ----------
    name : {"usps", "gsad", "gisette_like"}
        USPS digits, 6 against 0 (9 workers); gas sensors, ethylene against acetone (11); or
        4 against 9 of MNIST with 5,000 features made as Gisette's were (7).
    difficulty : {"published", "easy", "medium", "hard"}, default="published"
        Accuracies that fit the published share of tasks on which workers agree, redrawn
        until the expected share is within two points of it and each class is labeled right
        more often than wrong; uniform from 0.6 to 0.95; from 0.5 to 0.9; or from 0.5 to 0.9
        with 30% of workers below chance. On USPS, majority votes must also be as good as
        published, so accuracies there come from Beta(1/2, 1/2), which favors both ends.
    minority : label, optional
        Another minority class. The paper does not name its own.
    random_state : int or RandomState, optional
        Random seed; the same seed gives the same crowd.
    download : bool, default=True
        Whether the set may be downloaded.

    References
    ----------
    Wang, Thekinen, Liu, Liu and Tang (2021). Learning from imbalanced crowdsourced labeled
    data. SIAM International Conference on Data Mining.
    """
    source = _choose(name, SOURCES, "name")
    workers = _choose(difficulty, {"published": source.workers, **DIFFICULTIES}, "difficulty")
    rng = check_random_state(random_state)
    found = datasets.load(source.dataset, download=download)
    assert found.truth is not None
    assert found.X is not None
    y = found.truth.to_numpy()
    pair = source.majority, source.minority if minority is None else minority
    train, test = split_classes(y, pair, rng)
    X, y = found.X[np.concatenate([train, test])], y[np.concatenate([train, test])]
    X = gisette_features(X, rng) if name == "gisette_like" else X
    truth = (y == pair[1]).astype(np.int64)
    share = float(truth[: len(train)].mean())
    accuracy = draw_workers(source.n_workers, workers, share, rng)
    confusion = binary_confusion(accuracy)
    labels = label_by_crowd(truth[: len(train)], confusion, source.n_workers, random_state=rng)
    cut = len(train)
    return ImbalancedCrowd(
        name=name,
        X=X[:cut],
        annotations=labels,
        truth=truth[:cut],
        X_test=X[cut:],
        y_test=truth[cut:],
        confusion=confusion,
        agreed=expected_agreed(accuracy, share),
        majority=expected_majority(accuracy),
        classes=pair,
    )


def split_classes(
    y: Array, pair: tuple[Hashable, Hashable], rng: np.random.RandomState
) -> tuple[Ints, Ints]:
    """Return rows of the training and test parts, by the paper's counts, in random order."""
    large, small = (rng.permutation(np.flatnonzero(y == name)) for name in pair)
    n_test = int(0.2 * len(large))
    n_large = len(large) - n_test
    n_small = int(0.1 * n_large)
    if len(small) < n_test + n_small:
        raise ParameterError(
            explain(
                f"minority={pair[1]!r} has {len(small):,} tasks.",
                expected=f"another class than {pair[0]!r}, with {n_test + n_small:,} or more",
                fix="choose another class, or fewer tasks",
            )
        )
    train = np.concatenate([large[n_test:], small[n_test : n_test + n_small]])
    test = np.concatenate([large[:n_test], small[:n_test]])
    return rng.permutation(train), rng.permutation(test)


def draw_workers(
    n_workers: int, workers: Population, minority_share: float, rng: np.random.RandomState
) -> Floats:
    """Draw P(right | truth) of each worker, (worker, truth), until the crowd meets targets."""
    low, high = workers.accuracy
    for _ in range(MOST_DRAWS):
        size = n_workers, 2
        accuracy = (
            rng.uniform(low, high, size=size)
            if workers.shape == 1.0
            else low + (high - low) * rng.beta(workers.shape, workers.shape, size=size)
        )
        if workers.below_chance:
            some = rng.permutation(n_workers)[: round(workers.below_chance * n_workers)]
            accuracy[some] = rng.uniform(0.1, 0.5, size=(len(some), 2))
        as_published = _near(expected_agreed(accuracy, minority_share), workers.agreed) and _near(
            expected_majority(accuracy), workers.majority
        )
        if as_published and (accuracy.mean(axis=0) > 0.5).all():
            return accuracy
    raise ParameterError(
        f"No crowd of {n_workers} workers has such a share of agreed tasks."
        "\n  fix:      choose a share closer to chance"
    )


def _near(value: float, published: float | None) -> bool:
    return published is None or abs(value - published) <= TOLERANCE


def expected_agreed(accuracy: Floats, minority_share: float) -> float:
    """Return the expected share of tasks on which all, or all but one or two, workers agree."""
    dissent = min(2, (len(accuracy) - 1) // 2)
    shares = [
        chance[: dissent + 1].sum() + chance[-dissent - 1 :].sum()
        for chance in map(count_right, accuracy.T)
    ]
    return float((1.0 - minority_share) * shares[0] + minority_share * shares[1])


def expected_majority(accuracy: Floats) -> float:
    """Return the expected balanced accuracy of majority votes; a tie counts half."""
    half = len(accuracy) / 2
    credit = np.array([(n > half) + 0.5 * (n == half) for n in range(len(accuracy) + 1)])
    return float(np.mean([count_right(right) @ credit for right in accuracy.T]))


def count_right(accuracy: Floats) -> Floats:
    """Return P(n workers are right) for n from none to all: a sum of unequal coins."""
    chance = np.ones(1)
    for p in accuracy:
        chance = np.convolve(chance, [1.0 - p, p])
    return chance


def binary_confusion(accuracy: Floats) -> Floats:
    """Make confusion matrices from P(right | truth), (worker, truth, label)."""
    right = accuracy[:, :, None]
    return np.where(np.eye(2, dtype=bool), right, 1.0 - right)


def gisette_features(pixels: Array, rng: np.random.RandomState, n_features: int = 5000) -> Floats:
    """Make Gisette-like features: pixels, products of pixels and probes, from 0 to 999.

    Half of the features are varying pixels and products of two of them; the other half are
    probes, which have the values of such features in another order.
    """
    varied = np.flatnonzero((pixels > 0).mean(axis=0) > 0.01)
    first = pixels[:, varied].astype(np.float32) / 255.0
    n_real = n_features // 2
    pairs = rng.choice(varied, size=(max(n_real - len(varied), 0), 2))
    products = first.dtype.type(1 / 255**2) * (
        pixels[:, pairs[:, 0]].astype(np.float32) * pixels[:, pairs[:, 1]]
    )
    real = np.concatenate([first, products], axis=1)[:, :n_real]
    probes = real[:, rng.permutation(n_real)[: n_features - n_real]].copy()
    for column in probes.T:
        rng.shuffle(column)
    both = np.concatenate([real, probes], axis=1)[:, rng.permutation(n_features)]
    return np.round(999 * both).astype(np.float32)


def _choose(value: str, choices: dict[str, Choice], name: str) -> Choice:
    if value not in choices:
        raise ParameterError(
            explain(
                f"{name}={value!r} is unknown.",
                expected=listing(list(choices), len(choices)),
                fix="choose one of these",
            )
        )
    return choices[value]
