"""The metric-learning baselines bring classes apart, and their parameters do what they say."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression

from crowdwise import embed
from crowdwise.embed import (
    Center,
    CenterLoss,
    ContrastiveLoss,
    Episodes,
    Example,
    RelationLoss,
    RelationNet,
)
from crowdwise.embed.balanced_tasks import TaskSampler
from crowdwise.embed.groups import GroupBatch, TupleSampler
from crowdwise.embed.losses import GroupObjective
from crowdwise.errors import ParameterError
from crowdwise.learn import Training
from crowdwise.nets.modules import EmbedNet

BASELINES = [name for name in embed.EMBEDDERS if name not in ("RLL", "NeuCrowd")]


@pytest.mark.parametrize("name", BASELINES)
def test_three_classes_are_separated(crowd3, name):
    size = 4 if name == "RelationNet" else 64  # episodes are large
    training = Training(learning_rate=1e-2, batch_size=size, epochs=8, device="cpu")
    model = getattr(embed, name)(training=training, random_state=0)
    usual = model.default_groups_per_epoch  # comparisons, tasks or episodes
    model.set_params(groups_per_epoch={6000: 1500, 2560: 512, 600: 300}[usual])
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
    loss = ContrastiveLoss(2.0)
    objective = GroupObjective(net(), TupleSampler(1), Example(), loss, 2)
    vectors = objective.net(batch.x)
    pairs = [(0, 2, True), (0, 1, False), (3, 5, True), (3, 4, False)]
    expected = [
        loss.compare(vectors[[a]], vectors[[b]], torch.tensor([same])).item()
        for a, b, same in pairs
    ]
    assert objective.loss(batch).item() == pytest.approx(np.mean(expected))


def test_centers_come_beside_a_classifier():
    batch = batch_of(torch.arange(8)[:, None])
    criterion = CenterLoss(0.3).build(2, 2)
    objective = GroupObjective(net(), TaskSampler(), Example(), criterion, 2)
    vectors = objective.net(batch.x).detach()
    entropy = torch.nn.functional.cross_entropy(criterion.head(vectors), batch.label)
    expected = entropy + 0.3 * criterion.compare(vectors, batch.label).mean()
    assert objective.loss(batch).item() == pytest.approx(expected.item())


def test_an_episode_by_plain_loops():
    groups = torch.tensor([[[0, 2, 4], [1, 3, 5]], [[2, 6, 0], [7, 1, 3]]])
    batch = batch_of(groups)
    criterion = RelationLoss(supports=2, hidden=4).build(2, 2)  # and 1 query of each class
    objective = GroupObjective(net(), TaskSampler(), Example(), criterion, 2)
    vectors = objective.net(batch.x).detach()
    errors = []
    for classes in groups.tolist():
        for q, own in enumerate(classes):
            for c, members in enumerate(classes):
                support = vectors[members[0]] + vectors[members[1]]
                score = criterion.relation(torch.cat([support, vectors[own[2]]])).item()
                errors.append((score - (q == c)) ** 2)
    assert objective.loss(batch).item() == pytest.approx(np.mean(errors), rel=1e-5)


def test_losses_refuse_groups_of_another_shape():
    loss = RelationLoss(supports=3).build(2, 2)
    for groups in (torch.tensor([[[0, 2, 4], [1, 3, 5]]]), torch.tensor([[0, 2, 1]])):
        objective = GroupObjective(net(), TaskSampler(), Example(), loss, 2)
        with pytest.raises(ParameterError, match="3 supports has no queries"):
            objective.loss(batch_of(groups))
    pairs = GroupObjective(net(), TupleSampler(2), Example(), ContrastiveLoss(), 2)
    with pytest.raises(ParameterError, match="Groups have 4 members"):
        pairs.loss(batch_of(torch.tensor([[0, 2, 1, 3]])))


def test_parameters_reach_the_comparing_network(crowd):
    once = Training(epochs=1, batch_size=32, device="cpu")
    relation = RelationNet(
        groups=Episodes(5), loss=RelationLoss(2, hidden=4), groups_per_epoch=8, training=once
    ).fit(crowd.X, crowd.votes)
    objective = relation._objective(relation.net_, once)
    assert objective.sampler.n_members == 5
    assert objective.criterion.supports == 2
    assert objective.criterion.relation[0].out_features == 4


def test_centers_have_a_rate_of_their_own():
    from crowdwise.nets.loop import make_optimizer

    objective = GroupObjective(net(), TaskSampler(), Example(), CenterLoss().build(2, 2), 2)
    parameters = dict(objective.named_parameters())
    groups = make_optimizer(Center.default_training, parameters).param_groups
    rates = {group["lr"]: [tuple(p.shape) for p in group["params"]] for group in groups}
    assert rates[1e-2] == [(2, 2)]
