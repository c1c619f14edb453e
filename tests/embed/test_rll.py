"""RLL: its variants, its parts, and the published code's ways."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from crowdwise.embed import (
    MLE,
    RLL,
    Bayesian,
    Certain,
    CosineSoftmax,
    EveryClass,
    Example,
    OneClass,
    RandomGroups,
    TupleSampler,
    TwoTowers,
)
from crowdwise.embed.groups import GroupBatch, GroupTasks
from crowdwise.embed.losses import GroupObjective
from crowdwise.embed.rll import mean_cosine
from crowdwise.errors import ParameterError
from crowdwise.learn import Training
from crowdwise.nets.modules import EmbedNet
from crowdwise.simulate import label_by_crowd, one_coin_confusion

ONCE = Training(epochs=1, batch_size=64, device="cpu")


def separation(vectors, truth):
    """Mean cosine within the positives, minus that with negatives."""
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    like = unit @ unit.T
    same = truth == 1
    return like[np.ix_(same, same)].mean() - like[np.ix_(same, ~same)].mean()


@pytest.mark.parametrize("towers", [1, 2])
def test_the_loss_is_that_of_plain_loops(towers):
    torch.manual_seed(0)
    net = EmbedNet(torch.nn.Identity(), *(torch.nn.Linear(3, 2) for _ in range(towers))).double()
    document = net.encoder if towers == 1 else net.document
    x, label = torch.randn(6, 3).double(), torch.tensor([1, 1, 0, 0, 1, 0])
    sure = torch.rand(6).double()
    groups = torch.tensor([[0, 1, 2, 3], [4, 0, 5, 2], [1, 4, 3, 5]])
    objective = GroupObjective(net, TupleSampler(2, 1), Example(), CosineSoftmax(4.0), 2)
    found = objective.loss(GroupBatch(x, torch.arange(6), label, sure, groups))
    total = 0.0
    for anchor, *rest in groups.tolist():
        a = (net.encoder.weight @ x[anchor] + net.encoder.bias).detach().numpy()
        mass = []
        for task in rest:
            f = (document.weight @ x[task] + document.bias).detach().numpy()
            cosine = a @ f / np.linalg.norm(a) / np.linalg.norm(f)
            mass.append(np.exp(4.0 * float(sure[task]) * cosine))
        total -= np.log(mass[0] / sum(mass))
    assert found.item() == pytest.approx(total / 3)


@pytest.mark.parametrize("confidence", [Certain(), MLE(), Bayesian()], ids=str)
def test_classes_come_apart(crowd, confidence):
    training = Training(learning_rate=1e-2, batch_size=128, epochs=6, device="cpu")
    model = RLL(confidence=confidence, groups_per_epoch=2000, training=training, random_state=0)
    vectors = model.fit(crowd.X, crowd.votes).transform(crowd.new_X)
    assert separation(vectors, crowd.new_truth) > 0.15
    assert model.history_.loss[-1][0] < 0.7 * model.history_.loss[0][0]


def test_every_class_may_anchor(crowd3):
    training = Training(learning_rate=1e-2, batch_size=128, epochs=6, device="cpu")
    model = RLL(groups_per_epoch=2000, training=training, random_state=0)
    vectors = model.fit(crowd3.X, crowd3.votes).transform(crowd3.new_X)
    for kind in range(3):
        assert separation(vectors, (crowd3.new_truth == kind).astype(int)) > 0.05


def test_which_class_anchors(crowd, crowd3):
    def anchor(anchors, data):
        model = RLL(groups=RandomGroups(anchors=anchors), groups_per_epoch=8, training=ONCE)
        model.fit(data.X, data.votes)
        return model._objective(model.net_, ONCE).sampler.anchor

    assert anchor(None, crowd) == 1
    assert anchor(OneClass(0), crowd) == 0
    assert anchor(EveryClass(), crowd) is None
    assert anchor(None, crowd3) is None
    assert anchor(OneClass(), crowd3) == 2
    with pytest.raises(ParameterError, match=r"(?s)no class 'yes'.*0, 1"):
        anchor(OneClass("yes"), crowd)


def test_an_epoch_has_every_ordered_pair(crowd, monkeypatch):
    positives = int((crowd.votes.shares().argmax(axis=1) == 1).sum())
    negatives, drawn = 160 - positives, []

    def watched(self, *_):
        drawn.append(self.n_groups)
        return iter([self.whole()])

    monkeypatch.setattr(GroupTasks, "batches", watched)
    every = RandomGroups(anchors=EveryClass())
    for changes in ({}, {"groups": every}, {"groups_per_epoch": 7}):
        RLL(training=ONCE, **changes).fit(crowd.X, crowd.votes)
    pairs = positives * (positives - 1)
    assert drawn == [pairs, pairs + negatives * (negatives - 1), 7]


def test_two_towers(crowd):
    model = RLL(encoder=TwoTowers(), groups_per_epoch=256, training=crowd.brief, random_state=0)
    model.fit(crowd.X, crowd.votes)
    x = torch.as_tensor(crowd.X[:3]).float()
    queries, documents = model.net_(x), model.net_.documents(x)
    assert not torch.allclose(queries, documents)
    assert_allclose(model.transform(crowd.X[:3]), queries.detach().numpy(), atol=1e-7)
    shared = RLL(groups_per_epoch=256, training=crowd.brief, random_state=0)
    assert shared.fit(crowd.X, crowd.votes).net_.document is None


def test_negatives_by_the_papers_equation(crowd):
    model = RLL(confidence=MLE(in_class=1), groups_per_epoch=8)
    model.set_params(training=ONCE).fit(crowd.X, crowd.votes)
    assert_allclose(model.confidence_, crowd.votes.shares()[:, 1])


def test_pseudo_labels(crowd):
    model = RLL(confidence=Bayesian((1.0, 6.0)), groups_per_epoch=8, training=ONCE)
    model.fit(crowd.X, crowd.votes)
    counts = crowd.votes.votes()
    label = crowd.votes.shares().argmax(axis=1)
    expected = np.where(label == 1, counts[:, 1] + 6.0, counts[:, 0] + 1.0) / (4 + 7.0)
    assert_allclose(model.confidence_, expected)
    strong = RLL(confidence=Bayesian(1e9), groups_per_epoch=8, training=ONCE)
    strong.fit(crowd.X, crowd.votes)
    share = (label == 1).mean()
    assert_allclose(strong.confidence_, np.where(label == 1, share, 1 - share), atol=1e-6)


def test_the_published_codes_ways(crowd, monkeypatch):
    drawn = []
    plain = TupleSampler.draw

    def watched(self, pool, n, generator):
        drawn.append(plain(self, pool, n, generator))
        return drawn[-1]

    monkeypatch.setattr(TupleSampler, "draw", watched)
    training = Training(epochs=3, batch_size=64, device="cpu")
    model = RLL.recipe("code", groups_per_epoch=128, training=training, random_state=0)
    model.fit(crowd.X, crowd.votes)
    assert len(drawn) == 6
    for epoch in (1, 2):  # the same groups in every epoch
        assert_array_equal(drawn[2 * epoch], drawn[0])
        assert_array_equal(drawn[2 * epoch + 1], drawn[1])
    assert not torch.equal(drawn[0], drawn[1])
    counts = crowd.votes.votes().max(axis=1)
    assert_allclose(model.confidence_, (counts + 3) / (4 + 5))  # 3 for either class
    assert model.net_.document is not None
    assert model._objective(model.net_, training).criterion.form == "multiplier"
    drawn.clear()
    RLL(groups_per_epoch=128, training=training, random_state=0).fit(crowd.X, crowd.votes)
    assert not torch.equal(drawn[0], drawn[2])


def test_mean_cosine_is_that_of_all_pairs():
    vectors = np.random.default_rng(0).normal(size=(7, 3))
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    pairs = [unit[i] @ unit[j] for i in range(7) for j in range(7) if i != j]
    assert mean_cosine(torch.as_tensor(vectors)) == pytest.approx(np.mean(pairs))
    assert mean_cosine(torch.ones(1, 3)) == 0.0


@pytest.fixture(scope="module")
def mostly_positive():
    """Five of six tasks are positive, three labels each, features that tell little."""
    rng = np.random.default_rng(0)
    truth = (rng.uniform(size=300) < 5 / 6).astype(int)
    X = rng.normal(size=(300, 20)) + 0.3 * truth[:, None]
    votes = label_by_crowd(truth, one_coin_confusion([0.8] * 5, 2), 3, random_state=0)
    return X, votes


TRAINED = Training(learning_rate=1e-2, batch_size=256, epochs=8, device="cpu")


def test_vectors_that_all_point_the_same_way_are_warned_of(mostly_positive):
    with pytest.warns(ConvergenceWarning, match=r"point the same way.*EveryClass") as caught:
        RLL(groups_per_epoch=4000, training=TRAINED, random_state=0).fit(*mostly_positive)
    assert caught[0].filename == __file__  # the line that called fit, not one of ours


@pytest.mark.parametrize(
    "remedy",
    [
        {"groups": RandomGroups(anchors=EveryClass())},
        {"groups": RandomGroups(anchors=OneClass(0))},
        {"confidence": Bayesian((2.5, 2.5))},
        {"loss": CosineSoftmax(form="multiplier")},
    ],
    ids=str,
)
def test_what_the_warning_advises_helps(mostly_positive, remedy):
    RLL(**remedy, groups_per_epoch=4000, training=TRAINED, random_state=0).fit(*mostly_positive)
