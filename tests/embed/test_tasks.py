"""Batches of groups: every task once, tasks held out by class, and those that join later."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal

from crowdwise.embed import RLL
from crowdwise.embed.groups import GroupTasks, TupleSampler
from crowdwise.errors import AnnotationError
from crowdwise.nets.features import as_features
from crowdwise.nets.modules import EmbedNet


def data_of(n=60, n_positive=20, n_groups=50):
    label = torch.zeros(n, dtype=torch.long)
    label[:n_positive] = 1
    X = np.random.default_rng(0).normal(size=(n, 3))
    net = EmbedNet(torch.nn.Identity(), torch.nn.Identity())
    drawn = torch.linspace(0, 1, n), torch.arange(n), 2, n_groups, net, TupleSampler(2)
    return GroupTasks(as_features(X), label, *drawn, lambda _: None)


@pytest.mark.parametrize("n_groups", [3, 50], ids=["few groups", "many groups"])
def test_a_batch_has_the_tasks_of_its_groups(n_groups):
    data = data_of()
    groups = data.sampler.draw(data.pool(), n_groups, torch.Generator().manual_seed(0))
    batch = data.batch(groups)
    assert_array_equal(batch.task[batch.groups], groups)
    assert len(torch.unique(batch.task)) == len(batch.task)
    table = data.features.rows(torch.arange(60))
    torch.testing.assert_close(batch.x[batch.groups], table[groups])
    assert_array_equal(batch.label, data.label[batch.task])
    assert_array_equal(batch.confidence, data.confidence[batch.task])


def test_an_epoch_is_cut_into_batches():
    data = data_of()
    sizes = [len(b.groups) for b in data.batches(20, torch.Generator().manual_seed(0))]
    assert sizes == [20, 20, 10]
    assert [len(b.groups) for b in data.batches(None, torch.Generator())] == [50]
    assert data.epoch == 1


def test_held_out_tasks_are_a_share_of_every_class_and_never_drawn():
    data = data_of()
    train, held = data.held_out(0.25, np.random.RandomState(0))
    assert sorted([*train.tasks.tolist(), *held.tasks.tolist()]) == list(range(60))
    assert int((data.label[held.tasks] == 1).sum()) == 5
    assert len(held.tasks) == 15
    for part in (train, held):
        drawn = {
            t
            for b in part.batches(10, torch.Generator())
            for t in b.task[b.groups].flatten().tolist()
        }
        assert drawn <= set(part.tasks.tolist())
    first, again = held.whole(), held.whole()
    assert_array_equal(first.groups, again.groups)
    with pytest.raises(AnnotationError, match=r"no pair|one class"):
        data_of(4, 2).held_out(0.25, np.random.RandomState(0))


def test_tasks_without_labels_are_drawn_after_a_refresh(crowd, monkeypatch):
    drawn = []
    plain = TupleSampler.draw

    def watched(self, pool, n, generator):
        drawn.append(set(pool.order.tolist()))
        return plain(self, pool, n, generator)

    monkeypatch.setattr(TupleSampler, "draw", watched)
    votes = crowd.votes.filter(crowd.votes.task >= 40)
    RLL(groups_per_epoch=128, refresh_every=2, training=crowd.brief).fit(crowd.X, votes)
    labeled = set(range(40, 160))
    assert drawn[0] == drawn[1] == labeled
    assert drawn[2] == drawn[3] == set(range(160))
