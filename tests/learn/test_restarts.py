"""Restarts side by side, and what is looked at of held-out labels: quicker, and the same."""

import inspect

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from torch import nn
from torch.func import vmap

from crowdwise import learn
from crowdwise.learn import MLP, SpeeLFC, Training
from crowdwise.learn.parts import CrowdNet, CrowdObjective, side_by_side
from crowdwise.learn.response import ResponseModel
from crowdwise.nets.batches import CrowdData
from crowdwise.nets.loop import loss_of
from crowdwise.nets.modules import Linear, SideBySide, Standardize

SHORT = {"rounds": 2}
TRAINED = [
    name
    for name in learn.LEARNERS
    if "training" in inspect.signature(getattr(learn, name)).parameters
    and name != "ICED"  # looks at held-out labels by itself
]


def fitted(make, crowd, **settings):
    known = inspect.signature(make).parameters
    options = {name: value for name, value in SHORT.items() if name in known}
    if make is learn.LIA:
        options["objective"] = learn.EM(2, 2, marginal_epochs=1)
    training = Training(**{"epochs": 3, "validation_fraction": 0.1, **settings})
    few = crowd.votes[:80]
    return make(training=training, random_state=0, **options).fit(crowd.X[:80], few)


@pytest.mark.parametrize("name", [*TRAINED, "ResponseModel"])
@pytest.mark.parametrize("hold_out", ["labels", "tasks"])
def test_the_held_out_value_is_that_over_all_tasks(crowd, monkeypatch, name, hold_out):
    make = ResponseModel if name == "ResponseModel" else getattr(learn, name)
    settings = {"n_restarts": 2, "hold_out": hold_out}
    quick = fitted(make, crowd, **settings).history_
    monkeypatch.setattr(CrowdData, "labeled", CrowdData.whole)
    plain = fitted(make, crowd, **settings).history_
    assert np.isfinite(plain.held_out).all()
    assert_allclose(quick.held_out, plain.held_out, rtol=1e-5)
    assert_allclose(quick.loss, plain.loss, rtol=1e-5)
    assert quick.best == plain.best


def test_only_tasks_with_held_out_labels_are_looked_at(crowd, monkeypatch):
    seen, plain = [], CrowdObjective.held_out

    def spy(self, batch):
        seen.append(len(batch.x))
        return plain(self, batch)

    monkeypatch.setattr(CrowdObjective, "held_out", spy)
    fitted(SpeeLFC, crowd, patience=5)
    n_held = round(0.1 * crowd.votes[:80].n_annotations)
    assert len(seen) == 3
    assert len(set(seen)) == 1
    assert 0 < seen[0] <= n_held < 80


def test_labeled_tasks_come_with_their_features_and_labels(lopsided):
    data = lopsided.data_of(lopsided.votes(weighted=True))
    quick, plain = data.labeled(), data.whole()
    assert quick.task.tolist() == sorted(set(data.task.tolist()))
    assert len(quick.task) < len(plain.task)
    assert_array_equal(quick.task[quick.at], plain.at)
    assert_array_equal(quick.x[quick.at], plain.x[plain.at])
    for name in ("worker", "label", "weight"):
        assert_array_equal(getattr(quick, name), getattr(plain, name))


class Part(SideBySide):
    """Something that may be run side by side."""


@pytest.mark.parametrize("shape", [(3,), (5, 3), (4, 3, 3), (2, 100)])
def test_log_classes_are_torchs(shape):
    quick = Part()
    quick.side_by_side = True
    torch.manual_seed(0)
    found = []
    for part in (Part(), quick):
        torch.manual_seed(0)
        logits = torch.randn(shape, dtype=torch.float64)
        logits[..., 0] = -torch.inf  # what gold rules out
        logits.requires_grad_()
        value = part.log_classes(logits)
        (value[..., 1:] * torch.arange(1.0, shape[-1])).sum().backward()
        found.append((value.detach(), logits.grad))
        assert_allclose(found[-1][0], torch.log_softmax(logits.detach(), dim=-1), rtol=1e-12)
    assert_allclose(found[0][1], found[1][1], rtol=1e-10)


@pytest.mark.parametrize("shared", [True, False])
def test_linear_maps_side_by_side_are_torchs(shared):
    torch.manual_seed(0)
    quick = Linear(4, 3).double()
    quick.side_by_side = True
    weight, bias = torch.randn(5, 3, 4).double(), torch.randn(5, 3).double()
    x = torch.randn(7, 4).double() if shared else torch.randn(5, 7, 4).double()

    def one(weight, bias, x):
        return torch.func.functional_call(quick, {"weight": weight, "bias": bias}, (x,))

    found = vmap(one, in_dims=(0, 0, None if shared else 0))(weight, bias, x)
    for number in range(5):
        rows = x if shared else x[number]
        assert_allclose(found[number], nn.functional.linear(rows, weight[number], bias[number]))


def ensemble_of(lopsided, size):
    data = lopsided.data_of(lopsided.votes(), np.array([1, *[-1] * (lopsided.n_tasks - 1)]))
    scaler = Standardize.of(data.features.source)
    noise = learn.parts.WorkerConfusionNet(lopsided.n_workers, 3, 2.0, 0.0)
    members = []
    for seed in range(size):
        torch.manual_seed(seed)
        truth = MLP((6,)).build(lopsided.n_in, 3)
        members.append(CrowdObjective(CrowdNet(scaler, truth, noise), data))
    return side_by_side(members), data


def test_what_comes_from_the_data_is_not_repeated_for_every_restart(lopsided):
    ensemble, data = ensemble_of(lopsided, 3)
    assert_array_equal(ensemble.buffers["gold"], data.gold)
    assert ensemble.buffers["net.scaler.mean"].shape == (lopsided.n_in,)
    assert ensemble.parameters["net.truth.0.weight"].shape == (3, 6, lopsided.n_in)
    found = ensemble(loss_of, data.whole()).detach()
    alone = [float(member.loss(data.whole()).detach()) for member in ensemble.members]
    assert_allclose(found, alone, rtol=1e-6)
    assert len(set(alone)) == 3


def test_a_restart_by_itself_keeps_to_torchs_kernels(lopsided):
    parts = ("net", "net.truth.0", "net.noise")
    for size in (1, 3):
        ensemble, _ = ensemble_of(lopsided, size)
        for name in parts:
            assert ensemble.template.get_submodule(name).side_by_side == (size > 1)
            assert not ensemble.member(0).get_submodule(name).side_by_side


@pytest.mark.parametrize("better", [[True, False, True], [False, False, False]])
def test_only_better_restarts_are_kept(lopsided, better):
    ensemble, _ = ensemble_of(lopsided, 3)
    best = ensemble.snapshot()
    before = {name: value.clone() for name, value in best.items()}
    with torch.no_grad():
        for value in ensemble.parameters.values():
            value.add_(1.0)
    ensemble.keep(best, torch.tensor(better))
    for name, value in best.items():
        for number in range(3):
            assert_array_equal(value[number], before[name][number] + better[number])
