"""Why the published figures of Raykar without a prior are those of guessing."""

import numpy as np

from crowdbench.tables._raykar import PrintedRaykar
from crowdwise.annotations import Annotations
from crowdwise.learn import Raykar


def crowd(spare: bool):
    """Two clear classes; one worker sees only the first class, unless spared."""
    rng = np.random.default_rng(0)
    truth = np.arange(40) % 2
    X = rng.normal(size=(40, 2)) + 3.0 * truth[:, None]
    task = np.concatenate([np.arange(40), np.arange(40), np.arange(0, 40, 1 if spare else 2)])
    worker = np.repeat([0, 1, 2], [40, 40, len(task) - 80])
    label = truth[task]
    label[[3, 45]] = 0  # on tasks of the second class
    return X, truth, Annotations.from_codes(task, worker, label)


def test_a_worker_without_a_class_breaks_the_printed_equations():
    X, truth, votes = crowd(spare=False)
    model = PrintedRaykar().fit(X, votes)
    assert np.isnan(model.weights_).all()
    assert (model.predict(X) == 0).all()
    assert Raykar(smoothing=0.0).fit(X, votes).score(X, truth) > 0.9


def test_without_such_a_worker_both_are_the_same():
    X, truth, votes = crowd(spare=True)
    model = PrintedRaykar().fit(X, votes)
    assert np.isfinite(model.weights_).all()
    assert model.score(X, truth) > 0.9
