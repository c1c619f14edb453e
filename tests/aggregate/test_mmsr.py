"""MMSR against plain loops, recovery, and real crowds."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from crowdwise import Annotations
from crowdwise.aggregate.majority_vote import MajorityVote
from crowdwise.aggregate.mmsr import MMSR, pairs_of, rank_one, signs
from crowdwise.simulate import confused_crowd, one_coin_confusion


def slow_pairs(annotations):
    """Tasks in common and agreement of each pair of workers, one pair of labels at a time."""
    n = annotations.n_workers
    common, agreed = np.zeros((n, n)), np.zeros((n, n))
    weight = np.ones(annotations.n_annotations)
    weight = weight if annotations.weight is None else annotations.weight.astype(float)
    for task in range(annotations.n_tasks):
        rows = range(annotations.indptr[task], annotations.indptr[task + 1])
        for one in rows:
            for other in rows:
                a, b = annotations.worker[one], annotations.worker[other]
                if a != b:
                    common[a, b] += weight[one] * weight[other]
                    if annotations.label[one] == annotations.label[other]:
                        agreed[a, b] += weight[one] * weight[other]
    k = annotations.n_classes
    with np.errstate(invalid="ignore"):
        return common, np.nan_to_num((k * agreed / common - 1) / (k - 1))


def slow_side(claims, current, n_trimmed):
    below = sorted(c for c in claims if c < current)[n_trimmed:]
    above = sorted(c for c in claims if c > current)
    kept = below + [c for c in claims if c == current]
    kept += above[: max(len(above) - n_trimmed, 0)]
    return sum(kept) / len(kept) if kept else current


def slow_sizes(common, agreement, n_trimmed, n_rounds, least):
    n = len(common)
    left, right = [1.0] * n, [1.0] * n
    for _ in range(n_rounds):
        for held, free in ((left, right), (right, left)):
            for j in range(n):
                mates = [m for m in range(n) if common[j, m] > 0]
                claims = [abs(agreement[j, m]) / held[m] for m in mates]
                free[j] = max(slow_side(claims, free[j], n_trimmed), least)
    return np.sqrt(np.array(left) * np.array(right))


def slow_accuracy(annotations, sign, n_trimmed, n_rounds):
    common, agreement = slow_pairs(annotations)
    margin = 1 / np.sqrt(annotations.n_tasks + 1)
    k = annotations.n_classes
    skill = sign * slow_sizes(common, agreement, n_trimmed, n_rounds, margin)
    skill = np.minimum(np.maximum(skill, margin - 1 / (k - 1)), 1 - margin)
    return 1 / k + skill * (k - 1) / k


SIGN = np.array([1, 1, 1, 1, 1, 1, -1])  # the liar is the last one


@pytest.mark.parametrize("n_trimmed", [0, 1, 2])
def test_equals_the_plain_loops(voters, n_trimmed):
    model = MMSR(n_trimmed=n_trimmed, max_iter=4, tol=0.0).fit(voters.annotations)
    accuracy = slow_accuracy(voters.annotations, SIGN, n_trimmed, 4)
    assert_allclose(model.skills_, accuracy)
    assert_allclose(model.confusion_, one_coin_confusion(accuracy, 3))
    assert_allclose(model.weights_, np.log(2 * accuracy / (1 - accuracy)))
    assert model.n_iter_ == 4


def test_pairs_equal_the_plain_loops_with_weights(weighted_voters):
    common, agreement = slow_pairs(weighted_voters)
    pairs = pairs_of(weighted_voters)
    assert_allclose(pairs.common.toarray(), common)
    assert_allclose(pairs.agreement.toarray(), agreement, atol=1e-12)
    assert_array_equal(pairs.degree, (common > 0).sum(axis=1))


def test_the_posterior_is_a_weighted_vote(voters):
    votes = voters.annotations
    model = MMSR().fit(votes)
    score = np.zeros((votes.n_tasks, 3))
    for task, worker, label in zip(votes.task, votes.worker, votes.label, strict=True):
        score[task, label] += model.weights_[worker]
    expected = np.exp(score) / np.exp(score).sum(axis=1, keepdims=True)
    assert_allclose(model.posterior_, expected)


def test_by_itself_it_trims_what_the_least_connected_worker_can_spare(voters):
    auto, two = (MMSR(n_trimmed=n).fit(voters.annotations) for n in ("auto", 2))
    assert pairs_of(voters.annotations).degree.min() == 6  # 6 // 2 - 1 = 2
    assert_array_equal(auto.skills_, two.skills_)


def test_a_pair_that_agrees_by_chance_still_counts():
    # Two workers agree on one of two tasks: 0 after correction, and still a pair.
    labels = [[0, 0, 0], [1, 0, 1], [1, -1, 1], [0, -1, 0]]
    pairs = pairs_of(Annotations.from_matrix(labels))
    assert pairs.agreement.toarray()[0, 1] == 0
    assert_array_equal(pairs.degree, [2, 2, 2])


@pytest.fixture(scope="module")
def coins():
    accuracy = np.linspace(0.45, 0.9, 12)
    accuracy[0] = 0.1  # of three classes: more often wrong than chance
    return confused_crowd(one_coin_confusion(accuracy, 3), 4000, 6, random_state=0), accuracy


@pytest.mark.parametrize("n_trimmed", [0, "auto"])
def test_recovers_the_crowd_it_was_drawn_from(coins, n_trimmed):
    crowd, accuracy = coins
    model = MMSR(n_trimmed=n_trimmed).fit(crowd.annotations)
    assert_allclose(model.skills_, accuracy, atol=0.04)
    assert np.sign(model.weights_).tolist() == [-1] + [1] * 11


def test_trimming_resists_a_few_who_copy_each_other(coins):
    crowd, accuracy = coins
    labels = crowd.annotations.to_matrix(missing=-1).to_numpy(dtype=int)
    copied = np.random.default_rng(0).integers(0, 3, len(labels))
    gang = np.tile(copied[:, None], (1, 4))
    found = {n: MMSR(n_trimmed=n).fit(np.hstack([labels, gang])).skills_[1:12] for n in (0, "auto")}
    error = {n: np.abs(skills - accuracy[1:]).max() for n, skills in found.items()}
    assert error["auto"] < 0.05
    assert error[0] > 0.08


def test_islands_of_workers_are_judged_by_themselves():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 200)
    right = rng.random((200, 8)) < [0.9, 0.9, 0.9, 0.1, 0.9, 0.9, 0.9, 0.1]
    labels = np.where(right, truth[:, None], 1 - truth[:, None])
    labels[:100, 4:] = labels[100:, :4] = -1
    assert_array_equal(signs(pairs_of(Annotations.from_matrix(labels))), [1, 1, 1, -1] * 2)
    assert np.mean(MMSR().fit(labels).labels_ == truth) > 0.95


def test_signs_agree_along_every_pair_of_a_star():
    # One worker meets three others: the first agrees, the others always differ.
    labels = np.full((30, 4), -1)
    labels[:, 0] = np.arange(30) % 2
    for other in (1, 2, 3):
        rows = slice(10 * other - 10, 10 * other)
        labels[rows, other] = labels[rows, 0] if other == 1 else 1 - labels[rows, 0]
    assert_array_equal(signs(pairs_of(Annotations.from_matrix(labels))), [1, 1, -1, -1])


def test_nobody_is_taken_for_perfect():
    model = MMSR().fit([[0, 0, 0], [1, 1, 1], [0, 0, 0]])
    assert_allclose(model.skills_, np.full(3, 0.5 + 0.5 * (1 - 1 / np.sqrt(4))))


def test_a_worker_who_meets_nobody_counts_as_the_average(voters):
    table = voters.annotations.to_frame()
    table.loc[len(table)] = [300, 7, 0]
    pairs = pairs_of(Annotations.from_frame(table))
    size, _ = rank_one(pairs, 1, 0.05, 1000, 1e-6)
    assert pairs.degree[7] == 0
    assert size[7] == pytest.approx(size[:7].mean())
    assert MMSR().fit(table).labels_[300] == 0


def test_where_nobody_meets_all_count_the_same():
    model = MMSR().fit([[0, -1], [-1, 1]])
    assert model.labels_.tolist() == [0, 1]
    assert model.skills_[0] == model.skills_[1]


def test_a_single_class_is_always_right():
    assert MMSR().fit([[5, 5], [5, 5]]).weights_.tolist() == [np.inf, np.inf]


def test_an_annotation_without_weight_is_no_meeting():
    labels, weight = [0, 0, 1, 1, 0, 1], [1.0, 1.0, 0.0, 1.0, 1.0, 1.0]
    votes = Annotations.from_codes([0, 0, 0, 1, 1, 2], [0, 1, 2, 0, 1, 2], labels, weight=weight)
    assert_array_equal(pairs_of(votes).degree, [1, 1, 0])


def test_weighs_workers_where_majority_vote_cannot(coins):
    crowd, _ = coins
    ours, theirs = (m.fit(crowd.annotations).labels_ for m in (MMSR(), MajorityVote()))
    assert np.mean(ours == crowd.truth) > np.mean(theirs == crowd.truth) + 0.05


def test_says_so_when_it_runs_out_of_rounds(voters):
    with pytest.warns(ConvergenceWarning, match=r"MMSR stopped after max_iter=1 .* Raise"):
        MMSR(max_iter=1).fit(voters.annotations)


@pytest.mark.parametrize("parameters", [{"n_trimmed": -1}, {"n_trimmed": "all"}, {"max_iter": 0}])
def test_refuses_other_values(parameters):
    with pytest.raises(ValueError, match=f"'{next(iter(parameters))}' parameter of MMSR"):
        MMSR(**parameters).fit([[0, 1], [1, 1]])


# No published numbers for these; the same as an independent dense draft of the algorithm.
@pytest.mark.parametrize(
    ("name", "target"), [("bluebirds", 0.7130), ("wordsim", 0.9), ("rte", 0.9275), ("mgc", 0.7943)]
)
def test_real_crowds(real_accuracy, name, target):
    assert real_accuracy(MMSR(), name) == pytest.approx(target, abs=0.005)
