"""The metric-learning baselines bring classes apart, and their parameters do what they say."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression

from crowdwise import embed
from crowdwise.embed import Center, Contrastive, RelationNet, SemiHardTriplet, TripletCenter
from crowdwise.embed._data import GroupBatch
from crowdwise.embed.center import CenterObjective
from crowdwise.embed.contrastive import PairObjective
from crowdwise.embed.encoder import EmbedNet
from crowdwise.embed.groups import EpisodeSampler, TupleSampler
from crowdwise.embed.losses import ContrastiveLoss, RelationLoss, TripletCenterLoss
from crowdwise.embed.relation_net import EpisodeObjective
from crowdwise.learn import Training

BASELINES = [name for name in embed.EMBEDDERS if name not in ("RLL", "NeuCrowd")]


@pytest.mark.parametrize("name", BASELINES)
def test_three_classes_are_told_apart(crowd3, name):
    size = 4 if name == "RelationNet" else 64  # episodes are large
    training = Training(learning_rate=1e-2, batch_size=size, epochs=8, device="cpu")
    model = getattr(embed, name)(training=training, random_state=0)
    brief = {"groups_per_epoch": 1500, "tasks_per_epoch": 512, "episodes_per_epoch": 300}
    model.set_params(**{k: v for k, v in brief.items() if k in model.get_params()})
    vectors = model.fit_transform(crowd3.X, crowd3.votes)
    label = crowd3.votes.shares().argmax(axis=1)
    classifier = LogisticRegression(max_iter=1000).fit(vectors, label)
    assert classifier.score(model.transform(crowd3.new_X), crowd3.new_truth) > 0.7
    assert model.history_.loss[-1][0] < model.history_.loss[0][0]
    assert_allclose(model.confidence_, 1.0)


def batch_of(groups, n=8):
    torch.manual_seed(0)
    label = torch.tensor([0, 1, 0, 1, 0, 1, 0, 1])[:n]
    return GroupBatch(torch.randn(n, 3), torch.arange(n), label, torch.ones(n), groups)


def net():
    torch.manual_seed(1)
    return EmbedNet(torch.nn.Identity(), torch.nn.Linear(3, 2))


def test_pairs_of_both_kinds_count_alike():
    batch = batch_of(torch.tensor([[0, 2, 1], [3, 5, 4]]))
    objective = PairObjective(net(), TupleSampler(1), ContrastiveLoss(2.0))
    vectors, loss = objective.net(batch.x), ContrastiveLoss(2.0)
    pairs = [(0, 2, True), (0, 1, False), (3, 5, True), (3, 4, False)]
    expected = [
        loss(vectors[[a]], vectors[[b]], torch.tensor([same])).item() for a, b, same in pairs
    ]
    assert objective.loss(batch).item() == pytest.approx(np.mean(expected))


def test_centers_come_beside_a_classifier():
    batch = batch_of(torch.arange(8)[:, None])
    criterion = TripletCenterLoss(2, 2, margin=None)
    objective = CenterObjective(net(), criterion, 0.3)
    vectors = objective.net(batch.x).detach()
    logits = objective.head(vectors)
    entropy = torch.nn.functional.cross_entropy(logits, batch.label)
    expected = entropy + 0.3 * criterion(vectors, batch.label).mean()
    assert objective.loss(batch).item() == pytest.approx(expected.item())


def test_an_episode_by_plain_loops():
    groups = torch.tensor([[0, 2, 4, 1, 3, 5], [2, 6, 0, 7, 1, 3]])  # 2 supports, 1 query each
    batch = batch_of(groups)
    criterion = RelationLoss(2, 4)
    objective = EpisodeObjective(net(), EpisodeSampler(2, 1), criterion)
    vectors = objective.net(batch.x).detach()
    errors = []
    for row in groups.tolist():
        classes = [row[:3], row[3:]]
        for q, own in enumerate(classes):
            for c, members in enumerate(classes):
                support = vectors[members[0]] + vectors[members[1]]
                score = criterion.relation(torch.cat([support, vectors[own[2]]])).item()
                errors.append((score - (q == c)) ** 2)
    assert objective.loss(batch).item() == pytest.approx(np.mean(errors), rel=1e-5)


def test_parameters_reach_the_losses(crowd):
    once = Training(epochs=1, batch_size=32, device="cpu")
    for model, name, value in (
        (Contrastive(margin=3.0), "margin", 3.0),
        (SemiHardTriplet(unit_length=False), "scale", False),
        (TripletCenter(margin=4.0), "margin", 4.0),
        (Center(), "margin", None),
    ):
        brief = {"groups_per_epoch": 32, "tasks_per_epoch": 32}
        used = {k: v for k, v in brief.items() if k in model.get_params()}
        model.set_params(training=once, **used).fit(crowd.X, crowd.votes)
        assert getattr(model._criterion(), name) == value
    relation = RelationNet(n_supports=2, n_queries=3, hidden=4, episodes_per_epoch=8)
    relation.set_params(training=once).fit(crowd.X, crowd.votes)
    objective = relation._objective(relation.net_, None)
    assert (objective.sampler.n_supports, objective.sampler.n_queries) == (2, 3)
    assert objective.criterion.relation[0].out_features == 4


def test_centers_have_a_rate_of_their_own():
    from crowdwise.nets.loop import make_optimizer

    objective = CenterObjective(net(), TripletCenterLoss(2, 2), 0.3)
    parameters = dict(objective.named_parameters())
    groups = make_optimizer(Center.default_training, parameters).param_groups
    rates = {group["lr"]: [tuple(p.shape) for p in group["params"]] for group in groups}
    assert rates[1e-2] == [(2, 2)]
