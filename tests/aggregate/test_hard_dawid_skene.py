"""Hard Dawid-Skene against plain loops, its hybrid, its ties, and real crowds."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from crowdwise.aggregate import DawidSkene, HardDawidSkene, MajorityVote
from crowdwise.aggregate.hard_dawid_skene import decide
from crowdwise.errors import ParameterError


def slow_fit(annotations, n_steps, smoothing=0.01, *, hybrid=False, prior=None, gold=None):
    """Hard EM as loops: too slow to ship, too plain to be wrong. ``prior=None`` estimates it."""
    rows = list(zip(annotations.task, annotations.worker, annotations.label, strict=True))
    weights = np.ones(len(rows)) if annotations.weight is None else annotations.weight
    n_tasks, n_classes = annotations.n_tasks, annotations.n_classes
    gold = np.full(n_tasks, -1) if gold is None else gold
    known, estimated, hard, objective = gold >= 0, prior is None, not hybrid, []
    extra = np.broadcast_to(smoothing, (annotations.n_workers, n_classes, n_classes))
    mass = np.array([share_ties(row) if hard else row for row in annotations.shares()])
    mass[known] = np.eye(n_classes)[gold[known]]
    for _ in range(n_steps):
        if estimated:
            prior = mass.sum(axis=0) + np.mean(smoothing)
            prior = prior / prior.sum()
        confusion = extra.copy()
        for (i, w, label), weight in zip(rows, weights, strict=True):
            confusion[w, :, label] += weight * mass[i]
        confusion /= confusion.sum(axis=2, keepdims=True)
        joint = np.tile(prior, (n_tasks, 1))
        for (i, w, label), weight in zip(rows, weights, strict=True):
            joint[i] *= confusion[w, :, label] ** weight
        joint[known] *= np.eye(n_classes)[gold[known]]
        posterior = joint / joint.sum(axis=1, keepdims=True)
        evidence = joint.max(axis=1) if hard else joint.sum(axis=1)
        penalty = (extra * np.log(confusion)).sum()
        penalty += np.mean(smoothing) * np.log(prior).sum() if estimated else 0.0
        objective.append(np.log(evidence).sum() + penalty)
        before = mass.mean(axis=0)
        mass = np.array([share_ties(row) for row in posterior]) if hard else posterior
        hard = hard or np.abs(mass.mean(axis=0) - before).sum() <= 0.005
    return prior, confusion, posterior, objective


def share_ties(row):
    best = row > row.max() - 1e-9
    return best / best.sum()


def same(model, expected):
    prior, confusion, posterior, objective = expected
    assert_allclose(model.prior_, prior)
    assert_allclose(model.confusion_, confusion)
    assert_allclose(model.posterior_, posterior, atol=1e-12)
    assert_allclose(model.objective_, objective)


@pytest.mark.usefixtures("either_loop")
def test_equals_the_plain_loops(voters):
    model = HardDawidSkene(smoothing=0.5, max_iter=3, tol=0.0).fit(voters.annotations)
    same(model, slow_fit(voters.annotations, 3, 0.5))


def test_the_hybrid_is_soft_first_and_hard_then(voters):
    model = HardDawidSkene(hybrid=True, max_iter=30, tol=0.0).fit(voters.annotations)
    same(model, slow_fit(voters.annotations, 30, hybrid=True))
    soft = DawidSkene(max_iter=30, tol=0.0).fit(voters.annotations).objective_
    shared = np.isclose(model.objective_, soft)
    assert shared[:2].all()  # as the soft method at first
    assert not shared[-1]  # and not at last
    assert np.diff(shared.astype(int)).max() <= 0  # never back


def test_equals_the_plain_loops_with_weights_and_gold(weighted_voters, voters):
    gold = np.where(np.arange(80) < 30, voters.truth[:80], -1)
    model = HardDawidSkene(max_iter=4, tol=0.0).fit(weighted_voters, gold=gold)
    same(model, slow_fit(weighted_voters, 4, gold=gold))


@pytest.mark.parametrize("prior", ["uniform", [0.2, 0.5, 0.3]], ids=["uniform", "given"])
def test_a_fixed_class_prior_stays_as_it_is(voters, prior):
    fixed = np.full(3, 1 / 3) if prior == "uniform" else np.array(prior)
    model = HardDawidSkene(class_prior=prior, max_iter=3, tol=0.0).fit(voters.annotations)
    same(model, slow_fit(voters.annotations, 3, prior=fixed))


def test_a_matrix_of_pseudo_counts_is_a_dirichlet_prior(voters):
    counts = np.array([[4.0, 1.0, 0.5], [1.0, 4.0, 1.0], [0.2, 1.0, 4.0]])
    model = HardDawidSkene(smoothing=counts, max_iter=3, tol=0.0).fit(voters.annotations)
    same(model, slow_fit(voters.annotations, 3, counts))


def test_ties_share_a_task_in_equal_parts():
    assert_allclose(
        decide(np.array([[0.4, 0.4, 0.2], [0.1, 0.2, 0.7]]), "share"), [[0.5, 0.5, 0], [0, 0, 1]]
    )
    model = HardDawidSkene().fit([[0, 1]])
    assert_allclose(model.prior_, [0.5, 0.5])
    assert_allclose(model.posterior_, [[0.5, 0.5]])


def test_settles_for_good_and_in_fewer_steps(voters):
    hard, soft = (m.fit(voters.annotations) for m in (HardDawidSkene(), DawidSkene()))
    assert hard.n_iter_ < soft.n_iter_
    longer = HardDawidSkene(max_iter=hard.n_iter_ + 5, tol=0.0).fit(voters.annotations)
    assert_array_equal(longer.posterior_, hard.posterior_)


def test_learns_from_a_liar_where_majority_vote_cannot(voters):
    ours, theirs = (
        np.mean(m.fit_predict(voters.annotations) == voters.truth)
        for m in (HardDawidSkene(), MajorityVote())
    )
    assert ours > theirs + 0.02


def test_recovers_the_crowd_it_was_drawn_from(voters):
    gold = dict(enumerate(voters.truth[:150]))
    model = HardDawidSkene(hybrid=True).fit(voters.annotations, gold=gold)
    assert_allclose(model.confusion_, voters.confusion, atol=0.25)
    assert_allclose(model.prior_, [0.5, 0.3, 0.2], atol=0.1)


def test_refuses_shapes_that_do_not_fit():
    for params in ({"class_prior": [0.5, 0.3, 0.2]}, {"smoothing": [[1.0, 2.0]]}):
        with pytest.raises(ParameterError, match="2 classes"):
            HardDawidSkene(**params).fit([[0, 1], [1, 1]])


@pytest.mark.parametrize(
    ("name", "accuracy"), [("bluebirds", 0.8796), ("wordsim", 0.9), ("rte", 0.9275)]
)
def test_reaches_the_reference_accuracy_on_real_crowds(real_accuracy, name, accuracy):
    assert real_accuracy(HardDawidSkene(), name) == pytest.approx(accuracy, abs=0.005)


@pytest.mark.parametrize(
    ("name", "accuracy"),
    [("bluebirds", 0.8796), ("wordsim", 0.9000), ("rte", 0.9275), ("mgc", 0.7757)],
)
def test_with_the_first_of_ties_it_is_the_reference(real_accuracy, name, accuracy):
    model = HardDawidSkene(ties="first", smoothing=1e-10)
    assert real_accuracy(model, name) == pytest.approx(accuracy, abs=0.0005)


def test_sharing_ties_does_better_than_breaking_them_on_mgc(real_accuracy):
    # 188 of 700 tasks are tied; at random it is .783 on average, with a deviation of .006.
    shared, first = (real_accuracy(HardDawidSkene(ties=t), "mgc") for t in ("share", "first"))
    assert shared > first + 0.01


def test_a_tied_vote_is_shared_or_goes_to_the_first():
    shares = np.array([[0.4, 0.4, 0.2], [0.1, 0.3, 0.6]])
    assert_allclose(decide(shares, "share"), [[0.5, 0.5, 0], [0, 0, 1]])
    assert_allclose(decide(shares, "first"), [[1, 0, 0], [0, 0, 1]])


@pytest.mark.parametrize(
    ("name", "accuracy"), [("bluebirds", 0.8981), ("wordsim", 0.9), ("rte", 0.9275)]
)
def test_the_hybrid_reaches_the_reference_accuracy(real_accuracy, name, accuracy):
    assert real_accuracy(HardDawidSkene(hybrid=True), name) == pytest.approx(accuracy, abs=0.005)
