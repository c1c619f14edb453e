import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import digamma
from sklearn.exceptions import ConvergenceWarning

from crowdwise import Annotations
from crowdwise.aggregate import DawidSkene, MajorityVote
from crowdwise.errors import ParameterError
from crowdwise.simulate import confused_crowd

# Lopsided on purpose: a symmetric matrix would hide swapped truth and label axes.
CAREFUL = [[0.90, 0.08, 0.02], [0.20, 0.75, 0.05], [0.05, 0.15, 0.80]]
SPAMMER = [[0.60, 0.30, 0.10]] * 3
LIAR = [[0.10, 0.85, 0.05], [0.70, 0.10, 0.20], [0.50, 0.40, 0.10]]


@pytest.fixture(scope="module")
def crowd():
    confusion = np.array([CAREFUL] * 3 + [SPAMMER] * 2 + [LIAR])
    return confused_crowd(confusion, 1500, 4, prior=[0.5, 0.3, 0.2], random_state=0)


def slow_fit(annotations, smoothing, n_steps, *, pseudo=0.0, prior=None, gold=None):
    """Eqs. 2.3 to 2.5 as loops: too slow to ship, too plain to be wrong."""
    rows = list(zip(annotations.task, annotations.worker, annotations.label, strict=True))
    weights = np.ones(len(rows)) if annotations.weight is None else annotations.weight
    n_tasks, n_classes = annotations.n_tasks, annotations.n_classes
    extra = np.zeros((annotations.n_workers, n_classes, n_classes)) + smoothing + pseudo
    posterior, objective, estimated = annotations.shares(), [], prior is None
    gold = np.full(n_tasks, -1) if gold is None else gold
    for i in range(n_tasks):
        if gold[i] >= 0:
            posterior[i] = np.eye(n_classes)[gold[i]]
    for _ in range(n_steps):
        if estimated:
            prior = posterior.sum(axis=0) + smoothing
            prior = prior / prior.sum()
        confusion = extra.copy()
        for (i, w, label), weight in zip(rows, weights, strict=True):
            confusion[w, :, label] += weight * posterior[i]
        confusion /= confusion.sum(axis=2, keepdims=True)
        joint = np.tile(prior, (n_tasks, 1))
        for (i, w, label), weight in zip(rows, weights, strict=True):
            joint[i] *= confusion[w, :, label] ** weight
        for i in range(n_tasks):
            if gold[i] >= 0:
                joint[i] *= np.eye(n_classes)[gold[i]]
        evidence = joint.sum(axis=1, keepdims=True)
        posterior = joint / evidence
        penalty = (extra * np.log(confusion)).sum()
        penalty += smoothing * np.log(prior).sum() if estimated else 0.0
        objective.append(np.log(evidence).sum() + penalty)
    return prior, confusion, posterior, objective


def same(model, expected):
    prior, confusion, posterior, objective = expected
    assert_allclose(model.prior_, prior)
    assert_allclose(model.confusion_, confusion)
    assert_allclose(model.posterior_, posterior, atol=1e-12)
    assert_allclose(model.objective_, objective)


@pytest.mark.usefixtures("either_loop")
def test_equals_the_plain_loops(crowd):
    model = DawidSkene(smoothing=0.5, max_iter=3, tol=0.0).fit(crowd.annotations)
    same(model, slow_fit(crowd.annotations, 0.5, 3))


def test_equals_the_plain_loops_with_weights_and_gold(crowd):
    rng = np.random.default_rng(0)
    few = crowd.annotations[:60]
    weight = rng.uniform(0.2, 3.0, few.n_annotations)
    votes = Annotations.from_codes(few.task, few.worker, few.label, weight=weight)
    gold = np.where(rng.random(60) < 0.3, crowd.truth[:60], -1)
    model = DawidSkene(smoothing=0.1, max_iter=4, tol=0.0).fit(votes, gold=gold)
    same(model, slow_fit(votes, 0.1, 4, gold=gold))


@pytest.mark.parametrize("prior", ["uniform", [0.2, 0.5, 0.3]], ids=["uniform", "given"])
def test_a_fixed_class_prior_stays_as_it_is(crowd, prior):
    fixed = np.full(3, 1 / 3) if prior == "uniform" else np.array(prior)
    model = DawidSkene(class_prior=prior, max_iter=3, tol=0.0).fit(crowd.annotations)
    same(model, slow_fit(crowd.annotations, 0.01, 3, prior=fixed))


def test_a_matrix_of_pseudo_counts_is_a_dirichlet_prior(crowd):
    counts = np.array([[4.0, 1.0, 0.5], [1.0, 4.0, 1.0], [0.2, 1.0, 4.0]])
    model = DawidSkene(smoothing=counts, class_prior="uniform", max_iter=2, tol=0.0)
    expected = slow_fit(crowd.annotations, 0.0, 2, pseudo=counts, prior=np.full(3, 1 / 3))
    same(model.fit(crowd.annotations), expected)


def test_pooling_averages_over_matrices_around_the_crowds(crowd):
    votes, z = crowd.annotations[:200], crowd.annotations[:200].shares()
    smoothing = np.where(np.eye(3, dtype=bool), 2.0, 0.5)
    for _ in range(3):
        counts = np.zeros((6, 3, 3))
        for i, w, label in zip(votes.task, votes.worker, votes.label, strict=True):
            counts[w, :, label] += z[i]
        pooled = counts.sum(axis=0) + smoothing
        counts += 5.0 * pooled / pooled.sum(axis=1, keepdims=True)
        table = digamma(counts) - digamma(counts.sum(axis=2, keepdims=True))
        prior = z.sum(axis=0) + 1.25
        joint = np.tile(np.log(prior / prior.sum()), (200, 1))
        for i, w, label in zip(votes.task, votes.worker, votes.label, strict=True):
            joint[i] += table[w, :, label]
        z = np.exp(joint) / np.exp(joint).sum(axis=1, keepdims=True)
    model = DawidSkene(smoothing=(2.0, 0.5), pooling=5.0, max_iter=3, tol=0.0).fit(votes)
    assert_allclose(model.posterior_, z)
    assert_allclose(model.counts_, counts)
    assert_allclose(model.confusion_, counts / counts.sum(axis=2, keepdims=True))


def test_pooling_raises_its_bound_but_for_little(crowd):
    objective = np.array(DawidSkene(pooling=3.0).fit(crowd.annotations).objective_)
    assert (np.diff(objective) > -1e-3 * np.abs(objective[:-1])).all()
    assert objective[-1] > objective[0]


def test_pooling_helps_thin_workers_when_classes_are_many():
    rng = np.random.default_rng(0)
    confusion = np.array([0.7 * np.eye(8) + 0.3 * rng.dirichlet(np.ones(8), 8) for _ in range(60)])
    crowd = confused_crowd(confusion, 200, 4, random_state=0)
    plain, pooled = (
        np.mean(DawidSkene(pooling=p).fit_predict(crowd.annotations) == crowd.truth)
        for p in (0.0, 10.0)
    )
    assert pooled > plain + 0.02


def test_history_counts_as_labels_seen_before(crowd):
    first, second = crowd.annotations[:400], crowd.annotations[400:]
    past = DawidSkene().fit(first).history_
    model = DawidSkene(history=past, max_iter=2, tol=0.0).fit(second)
    same(model, slow_fit(second, 0.01, 2, pseudo=past.counts))
    assert_allclose(model.history_.counts.sum(), crowd.annotations.n_annotations)


def test_history_finds_workers_and_classes_by_name():
    old = DawidSkene().fit({"t1": {"ann": "x", "bob": "y"}, "t2": {"ann": "y", "bob": "y"}})
    counts = old.history_.of(np.array(["bob", "new"], dtype=object), np.array(["w", "y", "x"]))
    assert_allclose(counts[0, 1:, 1:], old.history_.counts[1][::-1, ::-1])
    assert not counts[1].any()
    assert not counts[0, 0].any()


def test_recovers_the_crowd_it_was_drawn_from(crowd):
    model = DawidSkene().fit(crowd.annotations)
    assert_allclose(model.confusion_, crowd.confusion, atol=0.15)
    assert_allclose(model.skills_, np.einsum("wkk,k->w", model.confusion_, model.prior_))


def test_learns_from_a_liar_where_majority_vote_cannot(crowd):
    ours, theirs = (
        np.mean(m.fit_predict(crowd.annotations) == crowd.truth)
        for m in (DawidSkene(), MajorityVote())
    )
    assert ours > theirs + 0.03


def test_gold_labels_teach_about_workers(crowd):
    gold = {task: crowd.truth[task] for task in range(400)}
    fitted = DawidSkene().fit(crowd.annotations, gold=gold)
    plain = DawidSkene().fit(crowd.annotations)
    error = [np.abs(m.confusion_ - crowd.confusion).mean() for m in (fitted, plain)]
    assert error[0] < error[1]
    assert_array_equal(fitted.labels_[:400], crowd.truth[:400])


def test_says_when_it_runs_out_of_steps(crowd):
    with pytest.warns(ConvergenceWarning, match=r"max_iter=2 .* Raise max_iter"):
        DawidSkene(max_iter=2).fit(crowd.annotations)


@pytest.mark.parametrize("smoothing", [0.0, -1.0, "none"])
def test_refuses_a_smoothing_that_is_not_positive(smoothing):
    with pytest.raises(ValueError, match="'smoothing' parameter of DawidSkene"):
        DawidSkene(smoothing=smoothing).fit([[0, 1], [1, 1]])


@pytest.mark.parametrize(
    "params", [{"class_prior": [0.5, 0.3, 0.2]}, {"smoothing": [[1.0, 2.0]]}], ids=str
)
def test_refuses_shapes_that_do_not_fit(params):
    with pytest.raises(ParameterError, match="2 classes"):
        DawidSkene(**params).fit([[0, 1], [1, 1]])


# These rows of the reference were run until nothing moved, well past our default tol.
TO_THE_END = {"tol": 1e-9, "max_iter": 1000}


@pytest.mark.parametrize(
    ("name", "params", "accuracy"),
    [
        ("bluebirds", {"smoothing": 1e-10}, 0.8981),
        ("bluebirds", {}, 0.8981),
        ("bluebirds", {"smoothing": 1.0}, 0.8889),
        ("bluebirds", {"smoothing": 1e-10, "class_prior": "uniform", **TO_THE_END}, 0.8981),
        ("wordsim", {}, 0.9333),
        ("rte", {"smoothing": 1e-10}, 0.9275),
        ("rte", {}, 0.9275),
        ("rte", {"smoothing": 1.0}, 0.9300),
        ("mgc", {"smoothing": 1e-10}, 0.7671),
        ("mgc", {}, 0.7686),
        ("mgc", {"smoothing": 1.0, **TO_THE_END}, 0.5314),
        ("mgc", {"smoothing": 1e-10, "class_prior": "uniform", **TO_THE_END}, 0.7514),
    ],
    ids=str,
)
def test_reaches_the_reference_accuracy_on_real_crowds(real_crowd, name, params, accuracy):
    crowd = real_crowd(name)
    labels = DawidSkene(**params).fit_predict(crowd.annotations)[crowd.truth.index]
    assert np.mean(labels == crowd.truth) == pytest.approx(accuracy, abs=0.005)
