"""Stand-ins have the statistics that are published, and say what they are."""

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from crowdwise.aggregate import MajorityVote
from crowdwise.errors import ParameterError
from crowdwise.evaluate import fleiss_kappa
from crowdwise.simulate import stand_in
from crowdwise.simulate.stand_ins import STAND_INS

PUBLISHED = {  # tasks, features, workers, positive share, kappa; None: not published
    "oral": (880, None, 5, 1.8 / 2.8, None),
    "class": (472, None, 5, 2.1 / 3.1, None),
    "pre_k": (1487, 1632, 11, 0.65, 0.60),
    "oral_neucrowd": (1492, 50, 11, 0.70, 0.41),
}


@pytest.fixture(scope="module", params=list(STAND_INS))
def made(request):
    return stand_in(request.param, random_state=0)


@pytest.fixture
def own(made):
    return made.name.removeprefix("stand_in_")


def test_has_the_published_statistics(made, own):
    tasks, features, workers, positive, kappa = PUBLISHED[own]
    assert made.annotations.shape == (tasks, workers)
    assert (made.annotations.redundancy == workers).all()
    assert made.truth.mean() == pytest.approx(positive, abs=0.001)
    assert made.X.shape == (tasks, features or 50)
    wanted = kappa or STAND_INS[own].kappa
    assert float(fleiss_kappa(made.annotations)) == pytest.approx(wanted, abs=0.002)


def test_has_the_published_split(made, own):
    sizes = made.split.value_counts().to_dict()
    if own == "pre_k":
        assert sizes == {"train": 940, "valid": 247, "test": 300}
    elif own == "oral_neucrowd":
        assert sizes == {"train": 908, "valid": 384, "test": 200}
    else:
        assert len(sizes) == 5
        assert max(sizes.values()) - min(sizes.values()) <= 1


def test_logistic_regression_is_in_the_stated_band(made, own):
    X, truth, split = made.X, made.truth.to_numpy(), made.split.to_numpy()
    model = make_pipeline(StandardScaler(), LogisticRegression(solver="liblinear"))
    tests = [split == part for part in np.unique(split) if part in ("test", *map(_fold, range(5)))]
    found = [model.fit(X[~test], truth[~test]).score(X[test], truth[test]) for test in tests]
    low, high = STAND_INS[own].band
    assert low < np.mean(found) < high


def _fold(number):
    return f"fold-{number + 1}"


def test_the_majority_is_good_and_not_perfect(made):
    right = (MajorityVote().fit_predict(made.annotations).to_numpy() == made.truth).mean()
    assert 0.85 < right < 0.99


def test_hard_tasks_lie_between_the_classes(made):
    crowd = made.extra["simulated"]
    hard = crowd.difficulty > np.median(crowd.difficulty)
    right = crowd.annotations.label == crowd.truth[crowd.annotations.task]
    by_task = right.reshape(len(hard), -1).mean(axis=1)
    assert by_task[hard].mean() < by_task[~hard].mean() - 0.1


def test_says_that_it_is_a_stand_in_and_what_is_assumed(made, own):
    assert made.info.title.startswith("Stand-in for: ")
    assert "stand-in for a private set" in made.info.warnings[0]
    assert any("Assumed: Fleiss' kappa" in text for text in made.info.warnings) == (
        PUBLISHED[own][4] is None
    )
    assert made.info.counts["tasks"] == PUBLISHED[own][0]


def test_a_bend_is_not_for_linear_classifiers():
    linear, curved = {}, {}
    for bend in (0.0, 3.0):
        made = stand_in("oral", bend=bend, random_state=0)
        train = made.split.to_numpy() != _fold(0)
        parts = made.X[train], made.truth[train], made.X[~train], made.truth[~train]
        linear[bend] = _right(LogisticRegression(), *parts)
        factors = make_pipeline(PCA(10, random_state=0), QuadraticDiscriminantAnalysis())
        curved[bend] = _right(factors, *parts)
    assert linear[3.0] == pytest.approx(linear[0.0], abs=0.03)
    assert curved[3.0] > max(curved[0.0], linear[3.0]) + 0.04


def _right(model, X, y, X_test, y_test):
    return make_pipeline(StandardScaler(), model).fit(X, y).score(X_test, y_test)


def test_a_seed_repeats_it():
    one, same, other = (stand_in("class", random_state=seed) for seed in (0, 0, 1))
    assert one.annotations.equals(same.annotations)
    assert (one.X == same.X).all()
    assert not one.annotations.equals(other.annotations)


def test_an_unknown_one_is_refused():
    with pytest.raises(ParameterError, match="oral, class, pre_k, oral_neucrowd"):
        stand_in("hotel")
