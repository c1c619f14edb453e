"""What every recent method must do: learn, recover workers, restart, and obey its parameters."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from crowdwise.errors import ParameterError
from crowdwise.learn import (
    MLP,
    AnnotMix,
    CoNAL,
    CrowdAR,
    GeoCrowdNet,
    MaDL,
    MaxMIG,
    TraceReg,
    Training,
    UnionNet,
)
from crowdwise.nets.batches import COLUMNS, Batch
from crowdwise.nets.ensemble import Ensemble
from crowdwise.nets.loop import loss_of

METHODS = [AnnotMix, CoNAL, CrowdAR, GeoCrowdNet, MaDL, MaxMIG, TraceReg, UnionNet]
each_method = pytest.mark.parametrize("method", METHODS, ids=lambda method: method.__name__)


def shorter(method, **changes):
    """The method's own settings, with larger and fewer steps."""
    settings = method.default_training.get_params()
    faster = {"learning_rate": {"truth": 0.1, "noise": 0.02}, "epochs": 80}
    if method in (AnnotMix, MaDL):  # small steps are what makes them work
        faster = {"learning_rate": {"truth": 0.1, "noise": 2e-3}, "epochs": 150}
    return Training(**{**settings, **faster, **changes})


@pytest.fixture(scope="module")
def fitted(crowd):
    cache = {}

    def fit(method):
        if method not in cache:
            model = method(training=shorter(method), random_state=0)
            cache[method] = model.fit(crowd.X, crowd.votes)
        return cache[method]

    return fit


@each_method
def test_learns_what_the_crowd_means(fitted, crowd, method):
    model = fitted(method)
    assert model.score(crowd.new_X, crowd.new_truth) > 0.8
    assert (model.posterior_.argmax(axis=1) == crowd.truth).mean() > 0.9
    assert_allclose(model.posterior_.sum(axis=1), 1)


@each_method
def test_recovers_the_workers(fitted, crowd, method):
    model = fitted(method)
    assert_allclose(model.confusion_.sum(axis=2), 1, rtol=1e-5)
    assert np.abs(model.confusion_ - crowd.confusion).mean() < 0.12
    right = np.einsum("wkk,k->w", crowd.confusion, np.bincount(crowd.truth) / len(crowd.truth))
    assert np.corrcoef(model.worker_accuracy_, right)[0, 1] > 0.7


@each_method
def test_says_what_each_worker_would_say(fitted, crowd, method):
    model = fitted(method)
    some = np.array([3, "nobody"], dtype=object)
    proba = model.predict_worker_proba(crowd.new_X[:7], some)
    assert proba.shape == (7, 2, 3)
    assert_allclose(proba.sum(axis=2), 1, rtol=1e-5)
    alone = model.predict_worker_proba(crowd.new_X[:7])[:, 3]
    assert_allclose(proba[:, 0], alone, rtol=1e-5)  # in single precision
    assert model.predict_worker_accuracy(crowd.new_X[:7]).shape == (7, 12)
    share = np.bincount(crowd.votes.label) / crowd.votes.n_annotations
    blind = np.log(share[crowd.new_votes.label]).mean()
    assert model.score(crowd.new_X, crowd.new_votes) > blind + 0.05


@each_method
def test_restarts_are_one_ensemble(crowd, method):
    training = shorter(method, epochs=6, n_restarts=3)
    model = method(truth=MLP((8,), dropout=0.2), training=training, random_state=0)
    model.fit(crowd.X, crowd.votes)
    held = np.array(model.history_.held_out)
    assert held.shape == (6, 3)
    assert np.isfinite(held).all()
    assert len(np.unique(held[-1])) == 3
    assert model.history_.best == held.min(axis=0).argmin()


@each_method
def test_a_batched_restart_equals_a_lone_one(lopsided, method):
    """Without dropout and mixtures, which draw their luck elsewhere."""
    settings = {"alpha": 0.0} if method is AnnotMix else {}
    learner, data = method(**settings), lopsided.data_of(lopsided.votes())
    torch.manual_seed(0)
    members = [learner._member(data) for _ in range(3)]
    together = Ensemble(members)(loss_of, data.whole())
    alone = torch.stack([member.loss(data.whole()) for member in members])
    assert_allclose(together.detach(), alone.detach(), rtol=1e-5)


@each_method
def test_the_loss_stays_on_its_device(lopsided, method):
    """Torch's device without memory refuses to mix with any other, as a GPU would."""
    learner, data = method(), lopsided.data_of(lopsided.votes())
    objective, here = learner._member(data).to("meta"), data.whole()
    batch = Batch(*(getattr(here, name).to("meta") for name in COLUMNS))
    for step in (objective.loss, objective.held_out, objective.posterior):
        assert step(batch).device.type == "meta"


@each_method
def test_takes_soft_labels_weights_and_gold(lopsided, method):
    X = np.random.default_rng(1).normal(size=(lopsided.n_tasks, lopsided.n_in))
    training = Training(epochs=3, batch_size=5)
    for options in ({"soft": True}, {"weighted": True}):
        model = method(training=training, random_state=0)
        model.fit(X, lopsided.votes(**options), gold={0: 2, 13: 1})
        assert_array_equal(model.posterior_[[0, 13]].argmax(axis=1), [2, 1])
        assert np.isfinite(model.posterior_).all()


@each_method
def test_worker_dropout_learns_the_unknown_worker(crowd, method):
    training = shorter(method, epochs=5, worker_dropout=0.3)
    model = method(training=training, random_state=0).fit(crowd.X, crowd.votes)
    assert_allclose(model.predict_worker_proba(crowd.X[:3], ["new"]).sum(axis=2), 1, rtol=1e-5)


@each_method
def test_recipes_build_and_clone(method):
    for name in method.recipes:
        model = method.recipe(name, random_state=3)
        assert clone(model).get_params()["random_state"] == 3


def test_a_recipe_that_is_not_there_is_named():
    known = ", ".join(CoNAL.recipes)
    with pytest.raises(ParameterError, match="CoNAL has no recipe 'nope'") as told:
        CoNAL.recipe("nope")
    assert f"expected: {known}" in str(told.value)


@pytest.mark.parametrize(
    ("method", "wrong"),
    [
        (TraceReg, {"trace": -0.1}),
        (GeoCrowdNet, {"regularizer": "G"}),
        (UnionNet, {"error": 1.5}),
        (CoNAL, {"gate": 2.0}),
        (MaxMIG, {"divergence": "tv"}),
        (MaDL, {"confusion": "round"}),
        (CrowdAR, {"trust": -1.0}),
        (AnnotMix, {"alpha": -1.0}),
    ],
    ids=str,
)
def test_refuses_parameters_that_make_no_sense(crowd, method, wrong):
    with pytest.raises(ValueError, match=f"'{next(iter(wrong))}' parameter of {method.__name__}"):
        method(**wrong).fit(crowd.X, crowd.votes)
