"""What words of sentence pairs tell: counted by hand, and in the order of the tasks."""

import math

import numpy as np
import pandas as pd
import pytest

from crowdbench.pairs import in_common, longest_run, pair_features, rarities, share, stem
from crowdbench.sets import LearningSet
from crowdbench.tables import _lia
from crowdwise.annotations import Annotations
from crowdwise.datasets.crowd import Crowd

PREMISE = ["Anna", "bought", "12", "green", "cars", "in", "Rome", "on", "Monday"]
HYPOTHESIS = ["Maria", "never", "buys", "13", "green", "car", "in", "Rome"]


def test_a_pair_counted_by_hand():
    rarity = dict.fromkeys(map(stem, (*PREMISE, *HYPOTHESIS)), 1.0) | {"rome": 3.0}
    rare, words, names, numbers, pairs, run, denied, length = in_common(PREMISE, HYPOTHESIS, rarity)
    assert words == 4 / 8  # green, car, in, Rome
    assert rare == 6 / 10
    assert names == 1.0  # Rome; the first word may only start the sentence
    assert numbers == 0.0
    assert pairs == 3 / 7  # green car, car in, in Rome
    assert run == 4 / 8
    assert denied == 1.0
    assert length == pytest.approx(math.log(9 / 10))


def test_denial_counts_only_where_it_is_in_one_sentence():
    rarity = dict.fromkeys(["it", "is", "not", "red"], 1.0)
    both = in_common(["It", "is", "not", "red"], ["It", "is", "not", "red"], rarity)
    one = in_common(["It", "is", "not", "red"], ["It", "is", "red"], rarity)
    assert (both[6], one[6]) == (0.0, 1.0)


def test_all_of_nothing_is_there():
    assert share([], ["a"]) == 1.0
    assert share(["a"], [], weights=[0.0]) == 1.0  # in every sentence: tells nothing


@pytest.mark.parametrize(
    ("first", "second", "length"),
    [("abcd", "xbcy", 2), ("abab", "babb", 3), ("", "a", 0), ("a", "", 0), ("ab", "ba", 1)],
)
def test_longest_run(first, second, length):
    assert longest_run(first, second) == length


def test_stems_and_rarity():
    assert [stem(w) for w in ("Walked", "walks", "walking", "his", "bed")] == [
        *["walk"] * 3,
        "his",
        "bed",
    ]
    found = rarities([["a", "a", "b"], ["a"], ["c"]])
    assert found == pytest.approx({"a": math.log(4 / 3), "b": math.log(2), "c": math.log(2)})


def test_every_pair_has_its_own_row_and_columns_are_standardized():
    premises = ["red cars stop", "red cars stop", "blue birds sing", "no fish"]
    hypotheses = ["cars fly", "birds sing", "birds sing", "no fish swims 3 times"]
    kinds = ["a", "b", "a", "b"]
    X = pair_features(premises, hypotheses, kinds)
    assert X.shape == (4, 8 + 2 + 2)
    np.testing.assert_allclose(X.mean(axis=0), 0.0, atol=1e-12)
    assert set(np.round(X.std(axis=0), 9)) <= {0.0, 1.0}
    said = [text.split() for text in (*premises, *hypotheses)]
    rarity = rarities([[stem(word) for word in words] for words in said])
    rare = [in_common(said[i], said[4 + i], rarity)[0] for i in range(4)]
    within_a = np.array([rare[0], 0.0, rare[2], 0.0])  # rare words in common, in kind a
    np.testing.assert_allclose(X[:, 10], (within_a - within_a.mean()) / within_a.std())
    order = [2, 0, 3, 1]
    again = pair_features(*([part[i] for i in order] for part in (premises, hypotheses, kinds)))
    np.testing.assert_allclose(again, X[order], atol=1e-12)


@pytest.fixture
def pairs(monkeypatch):
    """A set whose texts are in another order than its tasks."""
    items = pd.DataFrame(
        {
            "premise": ["a cat sits", "dogs run far", "it rains"],
            "hypothesis": ["a cat sits", "cats fly", "it pours"],
            "rte_task": ["IE", "QA", "IE"],
        },
        index=["t0", "t1", "t2"],
    )
    tasks = np.array(["t2", "t0", "t1"], dtype=object)
    votes = Annotations.from_codes([0, 1, 2], [0, 0, 0], [0, 1, 0], tasks=tasks)
    whole = Crowd(name="rte", annotations=votes, truth=None, X=None, items=items, info=None)
    monkeypatch.setattr(_lia, "crowd", lambda name: whole)
    return LearningSet("rte", np.zeros((3, 2)), votes, pd.Series([0, 1, 0], index=tasks))


def test_words_come_in_the_order_of_the_tasks(pairs):
    X = _lia.words_in_common(pairs)
    assert X[1, 1] == X[:, 1].max()  # t0 shares all its words
    assert X[2, 1] == X[:, 1].min()  # t1 shares none


def test_a_method_sees_the_features_that_it_is_meant_for(pairs):
    seen = _lia.features_for(_lia.lia("words in common", (1, 1), (None, 0)), pairs)
    np.testing.assert_array_equal(seen, _lia.words_in_common(pairs))
    assert _lia.features_for(_lia.lia("none", (1, 1), (None, 0)), pairs) is None
    assert _lia.features_for(_lia.lia("as they are", (1, 1), (None, 0)), pairs) is pairs.X


def test_weight_decay_is_that_of_its_row_and_the_rest_stays():
    decayed = _lia.lia("as they are", (5, 40), (None, 0), 0.003).training
    assert decayed.weight_decay == 0.003
    usual = _lia.learn.LIA.default_training
    assert decayed.get_params() == usual.get_params() | {"weight_decay": 0.003}
    assert usual.weight_decay == 0.0


@pytest.mark.parametrize("words", [True, False])
def test_what_true_labels_teach_depends_on_the_features(monkeypatch, words):
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=60)
    telling, noise = truth[:, None] + 0.1 * rng.normal(size=(60, 1)), rng.normal(size=(60, 1))
    votes = Annotations.from_codes(np.arange(60), np.zeros(60, dtype=int), truth)
    data = LearningSet("rte", noise, votes, pd.Series(truth, index=votes.tasks))
    monkeypatch.setattr(_lia, "words_in_common", lambda data: telling)
    found = _lia.TrueLabels(words=words).score(data)["accuracy"]
    assert (found > 0.9) == words
