"""KOS against plain loops, the sign it settles on, and real crowds."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from crowdwise import Annotations
from crowdwise.aggregate import KOS, MajorityVote
from crowdwise.aggregate.kos import edges_of
from crowdwise.errors import AnnotationError
from crowdwise.simulate import confused_crowd, one_coin_confusion

LOPSIDED = [[[0.9, 0.1], [0.3, 0.7]], [[0.6, 0.4], [0.05, 0.95]], [[0.2, 0.8], [0.7, 0.3]]]


@pytest.fixture(scope="module")
def crowd():
    confusion = np.array(LOPSIDED * 4)
    activity = np.arange(1, 13)
    return confused_crowd(confusion, 120, 6, prior=[0.6, 0.4], activity=activity, random_state=0)


def slow_messages(signs, first, n_rounds):
    """``signs`` and messages by (task, worker); each sum leaves one out by looking."""
    to_task = dict(zip(sorted(signs), first, strict=True))
    for _ in range(n_rounds):
        to_worker = {
            (i, j): sum(signs[i, k] * to_task[i, k] for (t, k) in signs if t == i and k != j)
            for (i, j) in signs
        }
        to_task = {
            (i, j): sum(signs[t, j] * to_worker[t, j] for (t, k) in signs if k == j and t != i)
            for (i, j) in signs
        }
        largest = max(abs(value) for value in to_task.values())
        to_task = {edge: value / largest for edge, value in to_task.items()}
        to_worker = {edge: value / largest for edge, value in to_worker.items()}
    total = {}
    for (i, j), sign in signs.items():
        total[j] = total.get(j, 0.0) + sign * to_worker[i, j]
    return to_task, total


def signs_of(annotations, center):
    signs, own = {}, {}
    for row, edge in enumerate(zip(annotations.task, annotations.worker, strict=True)):
        weight = 1.0 if annotations.weight is None else float(annotations.weight[row])
        own.setdefault(edge, []).append((weight, 2 * int(annotations.label[row]) - 1))
    mean = np.zeros(annotations.n_workers)
    for j in range(annotations.n_workers if center else 0):
        said = [pair for (_, k), pairs in own.items() if k == j for pair in pairs]
        mean[j] = sum(w * s for w, s in said) / sum(w for w, _ in said)
    for (i, j), pairs in own.items():
        signs[i, j] = sum(w * (s - mean[j]) for w, s in pairs)
    return signs, mean


@pytest.mark.parametrize("weighted", [False, True], ids=["rows", "weights"])
@pytest.mark.parametrize("center", [False, True], ids=["plain", "centered"])
def test_equals_the_plain_loops(crowd, center, weighted):
    votes = crowd.annotations[:40]
    weight = np.random.default_rng(0).uniform(0.2, 3, votes.n_annotations) if weighted else None
    votes = Annotations.from_codes(votes.task, votes.worker, votes.label, weight=weight)
    model = KOS(center=center, max_iter=3, random_state=5).fit(votes)
    signs, mean = signs_of(votes, center)
    first = np.random.RandomState(5).normal(1, 1, len(signs))
    _, total = slow_messages(signs, first, 3)
    assert_allclose(model.leaning_, mean, atol=1e-12)
    assert_allclose(model.weights_, [total[j] for j in range(12)])
    voice = np.zeros((40, 2))
    for (i, j), sign in signs.items():
        voice[i, int(sign * total[j] > 0)] += abs(sign * total[j])
    assert_allclose(model.posterior_, voice / voice.sum(axis=1, keepdims=True))
    assert_allclose(model.skills_, model.weights_)


def test_decides_as_the_messages_do(crowd):
    """The paper leaves a task's own labels out; by the last round that changes nothing."""
    votes = crowd.annotations[:40]
    signs, _ = signs_of(votes, center=False)
    first = np.random.RandomState(5).normal(1, 1, len(signs))
    to_task, _ = slow_messages(signs, first, 10)
    score = np.zeros(40)
    for (i, j), sign in signs.items():
        score[i] += sign * to_task[i, j]
    assert_array_equal(KOS(random_state=5).fit_predict(votes), (score > 0).astype(int))


def test_repeats_and_weights_add_up():
    task, worker, label = [0, 0, 0, 1, 1], [0, 0, 1, 0, 1], [1, 1, 0, 0, 1]
    weight = [1.0, 2.0, 1.0, 0.5, 1.0]
    edges = edges_of(Annotations.from_codes(task, worker, label, weight=weight))
    assert_array_equal(edges.task, [0, 0, 1, 1])
    assert_array_equal(edges.worker, [0, 1, 0, 1])
    assert_allclose(edges.sign, [3.0, -1.0, -0.5, 1.0])
    assert_allclose(edges.mass, [3.0, 1.0, 0.5, 1.0])


def test_a_yes_and_a_no_cancel_out():
    edges = edges_of(Annotations.from_codes([0, 0], [0, 0], [1, 0]))
    assert_allclose((edges.sign, edges.mass), ([0.0], [2.0]))


def test_distributions_count_in_part():
    soft = [[0.7, 0.3], [0.0, 1.0]]
    edges = edges_of(Annotations.from_codes([0, 1], [0, 0], [0, 1], soft=soft))
    assert_allclose(edges.sign, [-0.4, 1.0], rtol=1e-6)
    assert_allclose(edges.mass, [1.0, 1.0])


def test_every_part_of_the_crowd_is_mostly_right():
    """A hundred crowds of two that share nothing: luck would turn some of them around."""
    part = np.repeat(np.arange(100), 4)
    task, worker = np.tile([0, 0, 1, 1], 100), np.tile([0, 1, 0, 1], 100)
    votes = Annotations.from_codes(
        task + 2 * part, worker + 2 * part, np.zeros(400, dtype=int), classes=[0, 1]
    )
    assert (KOS(random_state=0).fit_predict(votes) == 0).all()


def test_where_no_message_comes_all_labels_count_the_same():
    model = KOS(random_state=0).fit([[0, 0, 1, -1], [-1, -1, -1, 1]])
    assert_allclose(model.posterior_, [[2 / 3, 1 / 3], [0, 1]])


def test_finds_spammers_on_a_random_graph():
    accuracy = np.where(np.arange(200) % 2, 0.95, 0.5)
    crowd = confused_crowd(one_coin_confusion(accuracy, 2), 600, 5, random_state=0)
    model = KOS(random_state=0).fit(crowd.annotations)
    majority = MajorityVote().fit_predict(crowd.annotations)
    assert np.mean(model.labels_ == crowd.truth) > np.mean(majority == crowd.truth) + 0.03
    assert model.skills_[1::2].mean() > 5 * abs(model.skills_[::2].mean())


def test_one_seed_gives_one_result(crowd):
    models = [KOS(max_iter=1, random_state=seed).fit(crowd.annotations) for seed in (0, 0, 1)]
    assert_array_equal(models[0].weights_, models[1].weights_)
    assert not np.allclose(models[0].weights_, models[2].weights_)


def test_refuses_three_classes():
    with pytest.raises(AnnotationError, match="KOS works with two classes; these labels have 3"):
        KOS().fit(np.array([[0, 1, 2]]))


@pytest.mark.parametrize("params", [{"center": 2}, {"max_iter": 0}], ids=str)
def test_refuses_parameters_that_make_no_sense(params):
    with pytest.raises(ValueError, match=f"'{next(iter(params))}' parameter of KOS"):
        KOS(**params).fit([[0, 1], [1, 1]])


@pytest.mark.parametrize(
    ("name", "accuracy"), [("bluebirds", 0.7222), ("wordsim", 0.9), ("rte", 0.50)]
)
def test_reaches_the_reference_accuracy_on_real_crowds(real_accuracy, name, accuracy):
    assert real_accuracy(KOS(random_state=0), name) == pytest.approx(accuracy, abs=0.005)


@pytest.mark.parametrize("center", [False, True], ids=["plain", "centered"])
def test_is_a_singular_vector_where_all_workers_label_all_tasks(real_crowd, center):
    """On a full table rounds are power iteration: plain finds .72 of bluebirds, centered .89."""
    crowd = real_crowd("bluebirds")
    votes = crowd.annotations
    table = np.zeros(votes.shape)
    table[votes.task, votes.worker] = 2 * votes.label - 1
    table -= table.mean(axis=0) if center else 0.0
    left, _, right = np.linalg.svd(table)
    expected = left[:, 0] * np.sign(right[0].sum()) > 0
    labels = KOS(center=center, random_state=0).fit_predict(votes)
    assert_array_equal(labels == votes.classes[1], expected)
    accuracy = np.mean(labels[crowd.truth.index] == crowd.truth)
    assert accuracy == pytest.approx(0.8889 if center else 0.7222, abs=1e-4)


@pytest.mark.parametrize("name", ["rte", "temp", "medical_treats"])
def test_centering_helps_where_workers_lean(real_accuracy, name):
    plain, centered = (real_accuracy(KOS(center=c, random_state=0), name) for c in (False, True))
    assert centered > plain + 0.03
