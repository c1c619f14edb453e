"""The alternative annotator test: the same as plain loops, and right about who may replace."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import ttest_1samp, wilcoxon

from crowdwise.annotations import Annotations
from crowdwise.errors import CrowdwiseError
from crowdwise.evaluate import replaceable


def crowd(n_tasks=200, errors=(0.2, 0.25, 0.3, 0.35), model=0.2, seed=0):
    """Labels of people, lopsided classes, and those of a model; some are missing."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(3, n_tasks, p=[0.2, 0.3, 0.5])
    rates = np.array([*errors, model])
    wrong = rng.random((n_tasks, len(rates))) < rates
    labels = np.where(wrong, rng.integers(0, 3, wrong.shape), truth[:, None])
    labels[:, :-1][rng.random((n_tasks, len(errors))) < 0.2] = -1
    return labels[:, :-1], labels[:, -1]


def plain(labels, model, epsilon, closeness):
    """Advantages and p values of each person, by loops over people and tasks."""
    rows = []
    for person in range(labels.shape[1]):
        wins, losses = [], []
        for own, said in zip(labels, model, strict=True):
            others = [x for j, x in enumerate(own) if j != person and x >= 0]
            if own[person] < 0 or not others:
                continue
            ours, theirs = closeness(said, others), closeness(own[person], others)
            wins.append(ours >= theirs - 1e-9)
            losses.append(theirs >= ours - 1e-9)
        loss = np.array(losses, float) - np.array(wins, float)
        p = ttest_1samp(loss, epsilon, alternative="less").pvalue
        rows.append((len(wins), np.mean(wins), np.mean(losses), p))
    return np.array(rows)


def agree(said, others):
    return np.mean([said == other for other in others])


def near(said, others):
    return -np.sqrt(np.mean([(said - other) ** 2 for other in others]))


COLUMNS = ["n_tasks", "advantage", "person_advantage", "p_value"]


def test_labels_are_compared_as_by_plain_loops():
    labels, model = crowd()
    found = replaceable(model, labels, epsilon=0.1)
    expected = plain(labels, model, 0.1, agree)
    assert_allclose(found.people[COLUMNS].to_numpy(float), expected)
    assert found.advantage.value == pytest.approx(expected[:, 1].mean())
    assert found.advantage.low < found.advantage.value < found.advantage.high
    assert found.advantage.high - found.advantage.low < 0.2


def test_scores_are_compared_by_distance():
    rng = np.random.default_rng(1)
    score = rng.integers(2, 8, (120, 1)) + rng.integers(-2, 3, (120, 5))
    votes = Annotations.from_matrix(score[:, :4]).with_scores()
    found = replaceable(score[:, 4], votes)
    assert_allclose(
        found.people[COLUMNS].to_numpy(float), plain(score[:, :4], score[:, 4], 0.15, near)
    )
    with pytest.raises(CrowdwiseError, match="not numbers"):
        replaceable(["high"] * 120, votes)


@pytest.mark.parametrize(("error", "wins"), [(0.1, True), (0.3, True), (0.6, False)])
def test_a_model_as_good_as_people_replaces_them_and_a_worse_one_does_not(error, wins):
    labels, model = crowd(400, model=error, seed=2)
    found = replaceable(model, labels)
    assert found.replaceable == wins
    assert found.winning_rate == found.people["wins"].mean()


def test_epsilon_is_what_the_model_may_be_worse_by():
    labels, model = crowd(400, (0.2, 0.2, 0.2, 0.2), model=0.35, seed=3)
    rates = [replaceable(model, labels, epsilon=e).winning_rate for e in (0.0, 0.4)]
    assert rates == [0, 1]


def test_false_wins_are_few_under_any_dependence():
    """Wins need p values that stay below the level after Benjamini and Yekutieli's factor."""
    labels, model = crowd(400, (0.2, 0.21, 0.22, 0.23), model=0.2, seed=4)
    p = np.sort(replaceable(model, labels, epsilon=0.1).people["p_value"])
    level = p[-1] * (1 + 1 / 2 + 1 / 3 + 1 / 4)  # the largest of four
    found = [
        replaceable(model, labels, epsilon=0.1, false_discovery=q).winning_rate
        for q in (level * 1.001, level * 0.999)
    ]
    assert found[0] == 1 > found[1]


def test_few_tasks_use_ranks_and_people_with_fewer_are_left_out():
    labels, model = crowd(25, seed=5)
    with pytest.raises(CrowdwiseError, match="0 people can be compared"):
        replaceable(model, labels)
    found = replaceable(model, labels, min_tasks=10).people
    mine = labels[:, 0] >= 0
    loss = []
    for own, said in zip(labels[mine], model[mine], strict=True):
        others = [x for x in own[1:] if x >= 0]
        if others:
            theirs, ours = agree(own[0], others), agree(said, others)
            loss.append(float(theirs >= ours) - float(ours >= theirs))
    p = wilcoxon(np.array(loss) - 0.15, alternative="less").pvalue
    assert found["p_value"].iloc[0] == pytest.approx(p)
    labels, model = crowd(100, seed=6)
    labels[20:, 0] = -1
    found = replaceable(model, labels).people
    assert np.isnan(found["p_value"].iloc[0])
    assert not found["wins"].iloc[0]


def test_a_model_that_always_says_what_people_say_wins_without_a_test():
    labels = np.repeat(np.arange(60) % 2, 4).reshape(60, 4)
    assert replaceable(labels[:, 0], labels).winning_rate == 1
    assert replaceable(1 - labels[:, 0], labels).winning_rate == 0


def test_tasks_without_a_label_of_the_model_do_not_count():
    labels, model = crowd(seed=7)
    some = replaceable(dict(enumerate(model[:100].tolist())), labels)
    assert_allclose(
        some.people["n_tasks"], replaceable(model[:100], labels[:100]).people["n_tasks"]
    )
    assert "compares with people, not with the truth" in some.note


def test_settings_out_of_range_are_refused():
    labels, model = crowd()
    with pytest.raises(CrowdwiseError, match="out of range"):
        replaceable(model, labels, epsilon=1.5)
