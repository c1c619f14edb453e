"""Every loss against plain loops over pairs, triplets and groups."""

import math

import pytest
import torch
from torch.nn.functional import cosine_similarity, normalize

from crowdwise.embed import (
    CenterLoss,
    ContrastiveLoss,
    CosineSoftmax,
    EuclideanSoftmax,
    LiftedStructureLoss,
    RelationLoss,
    SemiHardTripletLoss,
    TripletLoss,
)


def points(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


LABEL = torch.tensor([0, 0, 0, 1, 1, 2, 0, 1])  # a class of one task


@pytest.mark.parametrize("similarity", ["cosine", "euclidean"])
@pytest.mark.parametrize("form", ["exponent", "multiplier"])
def test_group_softmax(similarity, form):
    anchor, candidates = points(5, 3), points(5, 4, 3, seed=1)
    confidence = torch.rand(5, 4, generator=torch.Generator().manual_seed(2)).double()
    cosine = similarity == "cosine"
    kind = CosineSoftmax(2.5, form=form) if cosine else EuclideanSoftmax(2.5, form=form, offset=1.5)
    found = kind.compare(anchor, candidates, confidence)
    for g in range(5):
        mass = []
        for c in range(4):
            if cosine:
                like = float(cosine_similarity(anchor[g], candidates[g, c], dim=0))
            else:
                like = 1.5 - math.dist(anchor[g].tolist(), candidates[g, c].tolist())
            sure = float(confidence[g, c])
            mass.append(
                math.exp(2.5 * sure * like)
                if form == "exponent"
                else (sure + 1e-7) * math.exp(2.5 * like)
            )
        assert float(found[g]) == pytest.approx(-math.log(mass[0] / sum(mass)))


def test_where_confidence_enters_matters():
    # A sure candidate far away and an unsure one nearby: the forms disagree on who is likelier.
    anchor = torch.tensor([[1.0, 0.0]])
    candidates = torch.tensor([[[0.6, 0.8], [1.0, 0.0]]])
    confidence = torch.tensor([[1.0, 0.5]])
    scaled, weighed = (
        CosineSoftmax(10.0, form=form).compare(anchor, candidates, confidence).item()
        for form in ("exponent", "multiplier")
    )
    assert scaled < math.log(2) < weighed


def test_no_confidence_is_finite():
    anchor, candidates = points(1, 3), points(1, 4, 3, seed=1)
    for form in ("exponent", "multiplier"):
        loss = CosineSoftmax(form=form).compare(anchor, candidates, torch.zeros(1, 4).double())
        assert float(loss) == pytest.approx(math.log(4), rel=2.0)
        assert torch.isfinite(loss).all()


def test_contrastive():
    first, second = points(6, 3), points(6, 3, seed=1) * 0.4
    same = torch.tensor([True, False, True, False, False, True])
    found = ContrastiveLoss(2.0).compare(first, second, same)
    for i in range(6):
        distance = math.dist(first[i].tolist(), second[i].tolist())
        expected = distance**2 if same[i] else max(0.0, 2.0 - distance) ** 2
        assert float(found[i]) == pytest.approx(expected)


@pytest.mark.parametrize("scale", [True, False])
def test_triplet(scale):
    anchor, positive, negative = points(6, 3), points(6, 3, seed=1), points(6, 3, seed=2)
    found = TripletLoss(0.7, unit_length=scale).compare(anchor, positive, negative)
    for i in range(6):
        a, p, n = (
            (v[i] / v[i].norm() if scale else v[i]).tolist() for v in (anchor, positive, negative)
        )
        expected = max(0.0, math.dist(a, p) ** 2 - math.dist(a, n) ** 2 + 0.7)
        assert float(found[i]) == pytest.approx(expected)
    assert (found == 0).any()
    assert (found > 0).any()


@pytest.mark.parametrize("scale", [True, False])
def test_semi_hard_triplet(scale):
    vectors = points(8, 3)
    used = normalize(vectors, dim=1) if scale else vectors
    expected, without = [], 0
    for a in range(8):
        for p in range(8):
            if a == p or LABEL[a] != LABEL[p]:
                continue
            near = math.dist(used[a].tolist(), used[p].tolist()) ** 2
            others = [
                math.dist(used[a].tolist(), used[n].tolist()) ** 2
                for n in range(8)
                if LABEL[n] != LABEL[a]
            ]
            farther = [d for d in others if d > near]
            without += not farther
            chosen = min(farther) if farther else max(others)
            expected.append(max(0.0, near - chosen + 0.2))
    found = SemiHardTripletLoss(0.2, unit_length=scale).compare(vectors, LABEL)
    assert found.tolist() == pytest.approx(expected)
    assert without  # both branches of the rule are used


def test_lifted_structure():
    vectors, expected = points(8, 3), []

    def distance(i, j):
        return math.dist(vectors[i].tolist(), vectors[j].tolist())

    for i in range(8):
        for j in range(i + 1, 8):
            if LABEL[i] != LABEL[j]:
                continue
            mass = sum(
                math.exp(1.5 - distance(a, n))
                for a in (i, j)
                for n in range(8)
                if LABEL[n] != LABEL[a]
            )
            expected.append(0.5 * max(0.0, math.log(mass) + distance(i, j)) ** 2)
    found = LiftedStructureLoss(1.5).compare(vectors, LABEL)
    assert found.tolist() == pytest.approx(expected)


@pytest.mark.parametrize("margin", [None, 1.3])
def test_centers(margin):
    vectors = points(8, 3)
    loss = CenterLoss(margin=margin).build(3, 3).double()
    found = loss.compare(vectors, LABEL)
    for i in range(8):
        to = [0.5 * math.dist(vectors[i].tolist(), c.tolist()) ** 2 for c in loss.center.detach()]
        own = to.pop(int(LABEL[i]))
        expected = own if margin is None else max(0.0, own + 1.3 - min(to))
        assert found[i].item() == pytest.approx(expected)
    found.sum().backward()
    assert loss.center.grad.abs().sum() > 0


def test_relation():
    support, query = points(2, 3, 4, 5), points(2, 6, 5, seed=1)
    label = torch.tensor([[0, 0, 1, 1, 2, 2]] * 2)
    loss = RelationLoss(hidden=7).build(5, 3).double()
    found = loss.compare(support, query, label)
    assert found.shape == (2, 6, 3)
    for e in range(2):
        for q in range(6):
            for c in range(3):
                pair = torch.cat([sum(support[e, c, s] for s in range(4)), query[e, q]])
                score = loss.relation(pair).item()
                expected = (score - float(label[e, q] == c)) ** 2
                assert found[e, q, c].item() == pytest.approx(expected)


@pytest.mark.parametrize(
    "loss",
    [
        lambda v: EuclideanSoftmax().compare(v[:1], v[None, :3], torch.ones(1, 3)),
        lambda v: ContrastiveLoss().compare(v[:2], v[:2], torch.tensor([True, False])),
        lambda v: SemiHardTripletLoss().compare(v, torch.tensor([0, 0, 1, 1])),
        lambda v: LiftedStructureLoss().compare(v, torch.tensor([0, 0, 1, 1])),
    ],
    ids=["softmax", "contrastive", "semi-hard", "lifted"],
)
def test_equal_vectors_have_finite_gradients(loss):
    vectors = torch.ones(4, 3, requires_grad=True)
    loss(vectors).sum().backward()
    assert torch.isfinite(vectors.grad).all()


def test_a_batch_of_one_class_has_no_triplets():
    for loss in (SemiHardTripletLoss(), LiftedStructureLoss()):
        assert loss.compare(points(4, 3), torch.zeros(4, dtype=torch.long)).numel() == 0
