"""Every public learner obeys every law; a new method is picked up by itself."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from threadpoolctl import threadpool_limits

from crowdwise import learn
from crowdwise.laws import LEARNER_LAWS, OneLabelName
from crowdwise.simulate import label_by_crowd

LEARNERS = [getattr(learn, name) for name in learn.LEARNERS]


@pytest.fixture(scope="module")
def crowd():
    # Lopsided on purpose: a symmetric matrix would hide swapped truth and label axes.
    rng = np.random.default_rng(1)
    truth = rng.choice(3, size=24, p=[0.5, 0.3, 0.2])
    X = rng.normal(size=(24, 4)) + np.eye(3, 4)[truth] * 2.0
    confusion = rng.dirichlet(np.ones(3), (5, 3)) * 0.5 + 0.5 * np.eye(3)
    return X, label_by_crowd(truth, confusion, 3, random_state=1)


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """On data as small as this, threads only wait for each other."""
    with threadpool_limits(1):
        yield


@pytest.fixture(scope="module", autouse=True)
def few_bags():
    """Laws do not depend on how many there are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("crowdwise.learn.isolated_folds.N_BAGS", 4)
        yield


@pytest.mark.parametrize("law", LEARNER_LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: learner.__name__)
def test_learner_obeys(learner, law, crowd):
    law(learner(), *crowd)


@pytest.fixture(scope="module")
def two_classes(crowd):
    X, votes = crowd
    label = (votes.label == 2).astype(votes.label.dtype)
    return X, replace(votes, label=label, classes=np.array(["no", "yes"], dtype=object))


@pytest.mark.parametrize("law", LEARNER_LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("name", learn.MULTI_LABEL_LEARNERS)
def test_multi_label_learner_obeys(name, law, two_classes):
    law(OneLabelName(getattr(learn, name)()), *two_classes)


PARTS = {
    "per task": {"truth": learn.MLP((8,)), "objective": learn.PerTask()},
    "skill": {"noise": learn.SkillByEase(), "objective": learn.HardEM()},
    "tensors": {"noise": learn.DotTensors(n_slots=2), "objective": learn.PerAnnotation()},
    "layer": {"noise": learn.FreeLayer("VW-B"), "objective": learn.PerLabel()},
    "embedded": {
        "noise": learn.EmbeddedConfusion("diagonal", spread=0.1),
        "objective": learn.PerTask(),
    },
}


@pytest.mark.parametrize("law", LEARNER_LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("parts", PARTS)
def test_a_composed_learner_obeys(parts, law, crowd):
    law(learn.CrowdClassifier(**PARTS[parts]), *crowd)


class Derived(learn.SoftProb):
    """A third party's, made of one of ours."""


class Foreign(ClassifierMixin, BaseEstimator):
    """A third party's that knows nothing of ours but the verbs, and cannot be saved."""

    def fit(self, X, annotations, worker_features=None, gold=None):
        self.inner_ = learn.SoftProb().fit(X, annotations, worker_features, gold)
        self.classes_ = self.inner_.classes_
        self.posterior_ = self.inner_.posterior_
        return self

    def __getattr__(self, name):
        if name in ("inner_", "traits", "save") or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.inner_, name)

    def predict(self, X):
        return self.inner_.predict(X)

    def score(self, X, y):
        return self.inner_.score(X, y)


@pytest.mark.parametrize("law", LEARNER_LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("learner", [Derived, Foreign], ids=lambda learner: learner.__name__)
def test_a_third_partys_learner_can_obey(learner, law, crowd):
    law(learner(), *crowd)
