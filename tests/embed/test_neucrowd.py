"""NeuCrowd: each of its parts does its work, and can be taken out."""

import math

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from crowdwise.embed import (
    EveryClass,
    Example,
    FlippingShares,
    HardGroups,
    NeuCrowd,
    RandomGroups,
    Robust,
    SafeGroups,
    TupleSampler,
    hard_groups,
    published,
    safe_tasks,
)
from crowdwise.embed.groups import GroupTasks
from crowdwise.embed.losses import GroupObjective
from crowdwise.embed.published import LenientSafeGroups
from crowdwise.learn import Training

BRIEF = Training(learning_rate=1e-2, batch_size=128, epochs=3, device="cpu")


def made(recipe=None, **params):
    settings = {"groups_per_epoch": 512, "training": BRIEF, "random_state": 0, **params}
    return NeuCrowd(**settings) if recipe is None else NeuCrowd.recipe(recipe, **settings)


@pytest.fixture
def fits(monkeypatch):
    """The objective and the tasks of each epoch while a test runs."""
    found, objectives = [], []
    plain, build = GroupTasks.batches, GroupObjective.__init__

    def watched(self, size, generator):
        found.append((objectives[-1], self))
        return plain(self, size, generator)

    def kept(self, *parts):
        build(self, *parts)
        objectives.append(self)

    monkeypatch.setattr(GroupTasks, "batches", watched)
    monkeypatch.setattr(GroupObjective, "__init__", kept)
    return found


def test_classes_come_apart(crowd):
    model = made(training=Training(learning_rate=1e-2, batch_size=128, epochs=8, device="cpu"))
    vectors = model.fit(crowd.X, crowd.votes).transform(crowd.new_X)
    centers = np.stack([vectors[crowd.new_truth == k].mean(axis=0) for k in range(2)])
    to = np.linalg.norm(vectors[:, None] - centers, axis=2)
    assert (to.argmin(axis=1) == crowd.new_truth).mean() > 0.85
    assert model.history_.loss[-1][0] < 0.5 * model.history_.loss[0][0]


def test_safe_tasks_in_the_final_embedding(crowd):
    model = made(groups=HardGroups(SafeGroups(neighbors=7, margin=0.3))).fit(crowd.X, crowd.votes)
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
    made(groups=SafeGroups(unsafe_share=0.0)).fit(crowd.X, crowd.votes)
    n_batches = math.ceil(512 / 128)
    assert all(len(pool) == 160 for pool in pools[:n_batches])
    assert all(len(pool) < 160 for pool in pools[n_batches:])
    pools.clear()
    made(groups=RandomGroups()).fit(crowd.X, crowd.votes)
    assert all(len(pool) == 160 for pool in pools)
    pools.clear()
    made(groups=SafeGroups(unsafe_share=1.0)).fit(crowd.X, crowd.votes)
    assert all(len(pool) == 160 for pool in pools)


def test_everything_is_drawn_where_too_few_are_safe(crowd):
    model = made(groups=SafeGroups(margin=1e9, unsafe_share=0.0)).fit(crowd.X, crowd.votes)
    assert not model.safe_.any()
    assert np.isfinite(model.transform(crowd.X)).all()


def test_the_hardest_candidates_are_kept(crowd, monkeypatch):
    shown = []
    plain = hard_groups.largest

    def watched(score, n):
        kept = plain(score, n)
        left = np.delete(score.numpy(), kept.numpy())
        shown.append((len(score), n, float(score[kept].min()), float(left.max())))
        return kept

    monkeypatch.setattr(hard_groups, "largest", watched)
    made(groups=HardGroups(SafeGroups(), rate=3)).fit(crowd.X, crowd.votes)
    assert len(shown) == 2 * 4  # epochs after the first, four batches each
    for size, n, worst_kept, best_left in shown:
        assert size == 3 * n
        assert worst_kept >= best_left
    shown.clear()
    made(groups=HardGroups(SafeGroups(), rate=1)).fit(crowd.X, crowd.votes)
    assert not shown


def test_predictions_correlate_with_the_loss_in_training(crowd, fits):
    found = {}
    flat = NeuCrowd.recipe("code").groups.set_params(groups=RandomGroups(repeats=True))
    for legacy in (False, True):
        rates = {"encoder": 1e-3, "hardness": 1e-2, "": 1e-2}
        training = Training(learning_rate=rates, batch_size=128, epochs=20, device="cpu")
        recipe, groups = ("code", flat) if legacy else (None, HardGroups())
        model = made(recipe, training=training, groups=groups, groups_per_epoch=2000)
        model.fit(crowd.X, crowd.votes)
        objective, tasks = fits[-1]
        objective.eval()
        generator = torch.Generator().manual_seed(9)
        batch = tasks.batch(tasks.sampler.draw(tasks.pool(), 2000, generator))
        with torch.no_grad():
            x = objective.net.scaler(batch.x)
            predicted = objective.sampler.hardness(x, batch.groups)
            losses = objective.losses(batch)
        target = (-losses).exp() if legacy else losses
        found[legacy] = np.corrcoef(predicted, target)[0, 1], float(predicted.std() / target.std())
    assert found[False][0] > 0.6
    assert found[True][1] < 0.5 * found[False][1]  # with the bug, predictions shrink to the mean


def test_the_loss_reported_is_the_representations(crowd, fits):
    made().fit(crowd.X, crowd.votes)
    objective, tasks = fits[-1]
    batch = tasks.whole()
    for part in objective.modules():  # without dropout, and yet in training
        if isinstance(part, torch.nn.Dropout):
            part.p = 0.0
    objective.train()
    objective.zero_grad()
    loss = objective.loss(batch)
    losses = objective.losses(batch)
    assert loss.item() == pytest.approx(losses.mean().item(), rel=1e-5)
    loss.backward()
    own = torch.autograd.grad(losses.mean(), list(objective.net.encoder.parameters()))
    for parameter, expected in zip(objective.net.encoder.parameters(), own, strict=True):
        torch.testing.assert_close(parameter.grad, expected)
    assert all(p.grad is not None for p in objective.sampler.hardness.parameters())


@pytest.mark.parametrize("space", ["embedding", "input"])
@pytest.mark.parametrize("scale", ["weights", "batch", "sum"])
def test_robust_anchors_by_plain_loops(crowd, fits, space, scale):
    groups = SafeGroups(RandomGroups(anchors=EveryClass()))
    made(anchor=Robust(space=space, scale=scale), groups=groups).fit(crowd.X, crowd.votes)
    objective, tasks = fits[-1]
    objective.eval()
    batch = tasks.batch(tasks.sampler.draw(tasks.pool(), 12, torch.Generator().manual_seed(1)))
    with torch.no_grad():
        found = objective.losses(batch)
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


def test_patience_watches_the_representations_loss(crowd, fits):
    training = Training(
        learning_rate=1e-2, batch_size=128, epochs=3, patience=5, validation_fraction=0.3
    )
    model = made(training=training.set_params(device="cpu")).fit(crowd.X, crowd.votes)
    objective, tasks = fits[-1]
    held = np.array(model.history_.held_out)[:, 0]
    assert len(held) == 3
    assert not np.allclose(held, held[0])
    objective.eval()
    batch = tasks.whole()
    assert objective.held_out(batch).item() == pytest.approx(objective.losses(batch).mean().item())


def test_without_its_parts_it_is_rll_with_distances(crowd, fits):
    model = made(groups=RandomGroups(), anchor=Example()).fit(crowd.X, crowd.votes)
    assert isinstance(fits[-1][0].sampler, TupleSampler)
    assert model.history_.loss[-1][0] < model.history_.loss[0][0]


def test_weights_turn_around_in_the_published_code(crowd, fits):
    weight = torch.tensor([6 / 7, 4 / 7, 1.0, 0.0])
    part = FlippingShares()
    once = part.in_epoch(weight, 1)
    assert_allclose(once, [1 / 7, 3 / 7, 1.0, 0.0], atol=1e-6)
    assert_allclose(part.in_epoch(once, 2), weight, atol=1e-6)
    assert_allclose(part.in_epoch(weight, 0), weight)
    training = Training(batch_size=128, epochs=2, device="cpu")
    model = made("code", training=training).fit(crowd.X, crowd.votes)
    share = crowd.votes.shares().max(axis=1)
    assert_allclose(model.confidence_, share)
    turned = np.where(share < 1, 1 - share, 1.0)
    assert_allclose(fits[-1][1].confidence, turned, atol=1e-6)


def test_the_published_codes_ways(crowd, fits):
    model = made("code").fit(crowd.X, crowd.votes)
    objective, _ = fits[-1]
    assert objective.criterion.form == "multiplier"
    assert objective.anchor.scale == "batch"
    assert objective.sampler.inner.inner.repeats
    assert objective.sampler.hardness.squash
    assert dropouts(objective.sampler.hardness) == dropouts(objective.net) == [0.2, 0.2]
    assert model.encoder.bias == "normal"


@pytest.mark.parametrize(
    ("rule", "batch_size", "k"),
    [
        (SafeGroups(), 128, 11),  # the root of the batch size
        (SafeGroups(), None, 12),  # of the number of tasks
        (SafeGroups(neighbors=3), 128, 3),
        (LenientSafeGroups(), 128, 13),  # of the number of tasks, and one more
    ],
)
def test_how_many_neighbors_are_asked(monkeypatch, rule, batch_size, k):
    asked = []

    def support(*columns, **_):
        asked.append(columns[-1])
        return columns[2], columns[2]

    for module in (hard_groups, published):
        monkeypatch.setattr(module, "neighbor_support", support)
    label = torch.zeros(160, dtype=torch.long)
    rule.is_safe(torch.zeros(160, 2), label, torch.ones(160), batch_size)
    assert asked == [k]


def dropouts(module):
    return [part.p for part in module.modules() if isinstance(part, torch.nn.Dropout)]


def test_the_picking_network_has_no_dropout(crowd, fits):
    made().fit(crowd.X, crowd.votes)
    objective, _ = fits[-1]
    assert dropouts(objective.sampler.hardness) == [0.0, 0.0]
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
