"""Known truths teach the classifier, and not only the tasks they are about."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from crowdwise import Annotations, learn
from crowdwise.learn import Training

METHODS = ("CoNAL", "CrowdAR", "CrowdLayer", "GeoCrowdNet", "MaxMIG", "SpeeLFC", "UnionNet")


@pytest.fixture(scope="module")
def misled():
    """Two workers of three who mostly say the opposite; the truth of half the tasks is known."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(160, 3))
    truth = (X[:, 0] + 0.5 * X[:, 1] > 0).astype(int)
    wrong = rng.random((160, 3)) < [0.2, 0.8, 0.8]
    votes = Annotations.from_matrix(np.where(wrong, 1 - truth[:, None], truth[:, None])[:100])
    return X, truth, votes, {task: int(truth[task]) for task in range(50)}


@pytest.mark.parametrize("n_restarts", [1, 2])
@pytest.mark.parametrize("batch_size", [None, 64])
@pytest.mark.parametrize("name", METHODS)
def test_known_truths_decide_what_new_tasks_are(misled, name, batch_size, n_restarts):
    X, truth, votes, gold = misled
    training = Training(
        learning_rate=0.05,
        epochs=60 if batch_size is None else 20,
        batch_size=batch_size,
        n_restarts=n_restarts,
        device="cpu",
    )
    method = getattr(learn, name)(training=training, random_state=0)
    assert method.fit(X[:100], votes, gold=gold).score(X[100:], truth[100:]) > 0.85
    if n_restarts == 1:
        assert method.fit(X[:100], votes).score(X[100:], truth[100:]) < 0.5


def test_a_truth_that_no_task_has_still_has_a_row_of_confusion(misled):
    X, _, votes, _ = misled
    gold = dict.fromkeys(votes.tasks, votes.classes[0])
    model = learn.SpeeLFC(training=Training(epochs=3), random_state=0).fit(
        X[:100], votes, gold=gold
    )
    assert (model.posterior_[:, 0] == 1).all()
    assert_allclose(model.confusion_.sum(axis=2), 1)
