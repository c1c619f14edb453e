"""Tasks that nobody labeled take part where a method can use them, and harm no other."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from crowdwise import learn
from crowdwise.annotations import Annotations
from crowdwise.learn import Training
from crowdwise.simulate import label_by_crowd, one_coin_confusion

LEARNERS = [getattr(learn, name) for name in learn.LEARNERS]
N_LABELED, N_TASKS = 120, 600


@pytest.fixture(scope="module")
def crowd():
    """Three clear classes, the first of them half of all tasks; a fifth has labels."""
    rng = np.random.default_rng(0)
    truth = rng.choice(3, size=N_TASKS, p=[0.5, 0.3, 0.2])
    X = rng.normal(size=(N_TASKS, 4)) + 2.5 * np.eye(3, 4)[truth]
    confusion = one_coin_confusion([0.9, 0.8, 0.7, 0.6, 0.5], 3)
    votes = label_by_crowd(truth[:N_LABELED], confusion, 3, random_state=0)
    more = Annotations.from_codes(
        votes.task,
        votes.worker,
        votes.label,
        tasks=np.arange(N_TASKS),
        workers=votes.workers,
        classes=votes.classes,
    )
    return X, truth, votes, more


@pytest.mark.parametrize("learner", [learn.LIA, learn.ICED, learn.Raykar, learn.TwoStage])
def test_labels_that_count_for_nothing_are_none(learner, crowd):
    X, truth, votes, _ = crowd
    n = N_TASKS - N_LABELED
    more = Annotations.from_codes(
        np.concatenate([votes.task, np.arange(N_LABELED, N_TASKS)]),
        np.concatenate([votes.worker, np.zeros(n, dtype=int)]),
        np.concatenate([votes.label, np.zeros(n, dtype=int)]),
        workers=votes.workers,
        classes=votes.classes,
        weight=[*np.ones(len(votes.label)), *np.zeros(n)],
    )
    with threadpool_limits(1):
        alone, beside = quick(learner).fit(X[:N_LABELED], votes), quick(learner).fit(X, more)
    found = [np.mean(m.predict(X[N_LABELED:]) == truth[N_LABELED:]) for m in (alone, beside)]
    assert found[1] > found[0] - 0.05


def quick(learner):
    """Defaults, with fewer epochs where they are many."""
    model = learner()
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    if "n_members" in model.get_params():
        model.set_params(n_members=2)
    usual = getattr(learner, "default_training", None)
    if usual is not None and usual.epochs > 150 and "training" in model.get_params():
        model.set_params(training=Training(**{**usual.get_params(), "epochs": 150}))
    return model


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: learner.__name__)
def test_unlabeled_tasks_harm_no_other(learner, crowd):
    X, truth, votes, more = crowd
    with threadpool_limits(1):
        alone = quick(learner).fit(X[:N_LABELED], votes)
        beside = quick(learner).fit(X, more)
    new = slice(N_LABELED, None)
    found = [np.mean(m.predict(X[new]) == truth[new]) for m in (alone, beside)]
    assert found[1] > found[0] - 0.05
    inferred = [
        np.mean(m.posterior_[:N_LABELED].argmax(axis=1) == truth[:N_LABELED])
        for m in (alone, beside)
    ]
    assert inferred[1] > inferred[0] - 0.05
