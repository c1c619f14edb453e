"""NeuCrowd: each of its parts does its work, and can be taken out."""

import math

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from crowdwise.embed import NeuCrowd, neucrowd
from crowdwise.embed._data import GroupData
from crowdwise.embed.groups import TupleSampler
from crowdwise.embed.neucrowd import flipped
from crowdwise.embed.safety import safe_tasks
from crowdwise.learn import Training

BRIEF = Training(learning_rate=1e-2, batch_size=128, epochs=3, device="cpu")


def made(**params):
    return NeuCrowd(**{"groups_per_epoch": 512, "training": BRIEF, "random_state": 0, **params})


@pytest.fixture
def objectives(monkeypatch):
    """The objectives that are made while a test runs, and the data of each epoch."""
    found = []
    plain = GroupData.batches

    def watched(self, size, by, generator):
        found.append(self)
        return plain(self, size, by, generator)

    monkeypatch.setattr(GroupData, "batches", watched)
    return found


def test_classes_come_apart(crowd):
    model = made(training=Training(learning_rate=1e-2, batch_size=128, epochs=8, device="cpu"))
    vectors = model.fit(crowd.X, crowd.votes).transform(crowd.new_X)
    centres = np.stack([vectors[crowd.new_truth == k].mean(axis=0) for k in range(2)])
    to = np.linalg.norm(vectors[:, None] - centres, axis=2)
    assert (to.argmin(axis=1) == crowd.new_truth).mean() > 0.85
    assert model.history_.loss[-1][0] < 0.5 * model.history_.loss[0][0]


def test_safe_tasks_in_the_final_embedding(crowd):
    model = made(n_neighbors=7, margin=0.3).fit(crowd.X, crowd.votes)
    label = crowd.votes.shares().argmax(axis=1)
    expected = safe_tasks(
        torch.as_tensor(model.transform(crowd.X)),
        torch.as_tensor(label),
        torch.as_tensor(model.confidence_),
        7,
        margin=0.3,
    )
    assert_array_equal(model.safe_, expected)
    right = label == crowd.truth
    assert model.safe_[right].mean() > model.safe_[~right].mean() + 0.3


def test_unsafe_tasks_are_not_drawn_from_the_second_epoch_on(crowd, monkeypatch):
    pools = []
    plain = TupleSampler.draw

    def watched(self, pool, n, generator):
        pools.append(set(pool.order.tolist()))
        return plain(self, pool, n, generator)

    monkeypatch.setattr(TupleSampler, "draw", watched)
    model = made(unsafe_share=0.0, hard_rate=1, training=BRIEF).fit(crowd.X, crowd.votes)
    n_batches = math.ceil(512 / 128)
    assert all(len(pool) == 160 for pool in pools[:n_batches])
    assert all(len(pool) < 160 for pool in pools[n_batches:])
    pools.clear()
    made(safety=False, hard_rate=1).fit(crowd.X, crowd.votes)
    assert all(len(pool) == 160 for pool in pools)
    pools.clear()
    made(unsafe_share=1.0, hard_rate=1).fit(crowd.X, crowd.votes)
    assert all(len(pool) == 160 for pool in pools)
    assert model._neighbors(160) == 11  # the root of a batch of 128


def test_everything_is_drawn_where_too_few_are_safe(crowd):
    model = made(margin=1e9, unsafe_share=0.0).fit(crowd.X, crowd.votes)
    assert not model.safe_.any()
    assert np.isfinite(model.transform(crowd.X)).all()


def test_the_hardest_candidates_are_kept(crowd, monkeypatch):
    shown = []
    plain = neucrowd.hardest

    def watched(score, n):
        kept = plain(score, n)
        left = np.delete(score.numpy(), kept.numpy())
        shown.append((len(score), n, float(score[kept].min()), float(left.max())))
        return kept

    monkeypatch.setattr(neucrowd, "hardest", watched)
    made(hard_rate=3).fit(crowd.X, crowd.votes)
    assert len(shown) == 2 * 4  # epochs after the first, four batches each
    for size, n, worst_kept, best_left in shown:
        assert size == 3 * n
        assert worst_kept >= best_left
    shown.clear()
    made(hard_rate=1).fit(crowd.X, crowd.votes)
    assert not shown


def test_predictions_correlate_with_the_loss_in_training(crowd, objectives):
    found = {}
    for legacy in (False, True):
        rates = {"encoder": 1e-3, "hardness": 1e-2, "": 1e-2}
        training = Training(learning_rate=rates, batch_size=128, epochs=20, device="cpu")
        model = made(training=training, legacy=legacy, safety=False, groups_per_epoch=2000)
        model.fit(crowd.X, crowd.votes)
        data = objectives[-1]
        objective = data.objective.eval()
        batch = data.batch(data.sampler.draw(data.pool(), 2000, torch.Generator().manual_seed(9)))
        with torch.no_grad():
            foretold = objective.hardness(objective.net.scaler(batch.x), batch.groups)
            losses = objective.group_losses(batch)
        target = (-losses).exp() if legacy else losses
        found[legacy] = np.corrcoef(foretold, target)[0, 1], float(foretold.std() / target.std())
    assert found[False][0] > 0.6
    assert found[True][1] < 0.5 * found[False][1]  # with the bug, predictions shrink to the mean


def test_the_loss_reported_is_the_representations(crowd, objectives):
    made().fit(crowd.X, crowd.votes)
    data = objectives[-1]
    objective, batch = data.objective, data.whole()
    for part in objective.modules():  # without dropout, and yet in training
        if isinstance(part, torch.nn.Dropout):
            part.p = 0.0
    objective.train()
    objective.zero_grad()
    loss = objective.loss(batch)
    losses = objective.group_losses(batch)
    assert loss.item() == pytest.approx(losses.mean().item(), rel=1e-5)
    loss.backward()
    own = torch.autograd.grad(losses.mean(), list(objective.net.encoder.parameters()))
    for parameter, expected in zip(objective.net.encoder.parameters(), own, strict=True):
        torch.testing.assert_close(parameter.grad, expected)
    assert all(p.grad is not None for p in objective.hardness.parameters())


@pytest.mark.parametrize("space", ["embedding", "input"])
@pytest.mark.parametrize("scale", ["weights", "batch", "sum"])
def test_robust_anchors_by_plain_loops(crowd, objectives, space, scale):
    model = made(anchor_space=space, anchor_scale=scale, hard_rate=1, anchors="all")
    model.fit(crowd.X, crowd.votes)
    data = objectives[-1]
    objective, batch = (
        data.objective.eval(),
        data.batch(data.sampler.draw(data.pool(), 12, torch.Generator().manual_seed(1))),
    )
    with torch.no_grad():
        found = objective.group_losses(batch)
        scaled = objective.net.scaler(batch.x)
        vectors = objective.net.encoder(scaled)
        anchors = {}
        for kind in range(2):
            rows = [int(g[0]) for g in batch.groups if batch.label[g[0]] == kind]
            source = vectors if space == "embedding" else scaled
            total = sum(batch.confidence[r] * source[r] for r in rows)
            weight = sum(batch.confidence[r] for r in rows)
            made_of = {"weights": total / weight, "batch": total / len(rows), "sum": total}[scale]
            anchors[kind] = made_of if space == "embedding" else objective.net.encoder(made_of)
        for loss, group in zip(found, batch.groups.tolist(), strict=True):
            anchor = anchors[int(batch.label[group[0]])]
            score = [
                10 * batch.confidence[r] * (1.0 - torch.dist(anchor, vectors[r])) for r in group[1:]
            ]
            expected = torch.stack(score).logsumexp(0) - score[0]
            assert loss.item() == pytest.approx(expected.item(), abs=1e-4)


def test_without_its_parts_it_is_rll_with_distances(crowd, objectives):
    model = made(safety=False, anchor="example", hard_rate=1).fit(crowd.X, crowd.votes)
    objective = objectives[-1].objective
    assert objective.hardness is None
    assert objective.anchor == "example"
    assert model.history_.loss[-1][0] < model.history_.loss[0][0]


def test_weights_turn_around_in_the_published_code(crowd, objectives):
    weight = torch.tensor([6 / 7, 4 / 7, 1.0, 0.0])
    once = flipped(weight, 1)
    assert_allclose(once, [1 / 7, 3 / 7, 1.0, 0.0], atol=1e-6)
    assert_allclose(flipped(once, 2), weight, atol=1e-6)
    assert_allclose(flipped(weight, 0), weight)
    training = Training(batch_size=128, epochs=2, device="cpu")
    model = made(legacy=True, training=training).fit(crowd.X, crowd.votes)
    share = crowd.votes.shares().max(axis=1)
    assert_allclose(model.confidence_, share)
    turned = np.where(share < 1, 1 - share, 1.0)
    assert_allclose(objectives[-1].confidence, turned, atol=1e-6)


def test_the_published_codes_ways(crowd, objectives):
    model = made(legacy=True).fit(crowd.X, crowd.votes)
    objective = objectives[-1].objective
    assert objective.softmax.form == "multiplier"
    assert objective.anchor_scale == "batch"
    assert objective.sampler.repeats
    assert objective.hardness.squash
    assert dropouts(objective.hardness) == dropouts(objective.net) == [0.2, 0.2]
    assert model._neighbors(160) == 13  # the root, and one more
    assert model._encoder().bias == "normal"
    assert made()._encoder().bias == "zero"


def dropouts(module):
    return [part.p for part in module.modules() if isinstance(part, torch.nn.Dropout)]


def test_the_picking_network_has_no_dropout(crowd, objectives):
    made().fit(crowd.X, crowd.votes)
    objective = objectives[-1].objective
    assert dropouts(objective.hardness) == [0.0, 0.0]
    assert dropouts(objective.net) == [0.2, 0.2]


def test_groups_are_never_listed(crowd):
    """Memory does not grow with the number of groups: batches are as large as asked for."""
    sizes = []
    plain = TupleSampler.draw

    def watched(self, pool, n, generator):
        sizes.append(n)
        return plain(self, pool, n, generator)

    model = made(groups_per_epoch=3000, training=Training(batch_size=100, epochs=1, device="cpu"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TupleSampler, "draw", watched)
        model.fit(crowd.X, crowd.votes)
    assert sizes == [100] * 30
