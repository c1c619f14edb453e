"""Agreement: published examples, plain loops, and data at the edge."""

import time
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from crowdwise import Annotations
from crowdwise.errors import ParameterError
from crowdwise.evaluate import (
    agreement,
    fleiss_kappa,
    gwet_ac,
    krippendorff_alpha,
    observed_agreement,
)
from crowdwise.simulate import confused_crowd

NO_INTERVAL = {"n_resamples": 0}
N = np.nan
# Four coders, twelve units (Krippendorff 2011): units x coders after transposing.
FOUR_CODERS = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, N, N, N],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, N, 3],
        [N, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, N],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, N],
    ]
).T
# Thirty patients, six psychiatrists, five diagnoses (Fleiss 1971, table 1).
PSYCHIATRISTS = (
    "00060 03003 01401 00006 03030 20400 00402 20310 20040 00006 10050 11040 03300 10050 02031 "
    "00501 30012 51000 02040 10203 00006 01050 02013 20040 10041 05010 40002 02040 10500 00006"
)


def from_counts(rows):
    """Tasks with these numbers of labels, by workers 0, 1, 2 and so on."""
    triples = [
        (task, label)
        for task, row in enumerate(rows)
        for label, count in enumerate(row)
        for _ in range(int(count))
    ]
    task, label = np.array(triples).T
    worker = np.concatenate([np.arange(n) for n in np.bincount(task)])
    return Annotations.from_codes(task, worker, label)


def lopsided(seed=0, n_tasks=40, n_workers=6, n_classes=4):
    """Unequal classes and workers, missing labels, tasks with one label or none."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(n_classes, n_tasks, p=np.arange(1.0, n_classes + 1) / 10)
    labels = np.where(rng.random((n_tasks, n_workers)) < 0.6, truth[:, None], 0)
    slips = rng.random((n_tasks, n_workers)) < 0.2
    labels[slips] = rng.integers(0, n_classes, slips.sum())
    labels[rng.random((n_tasks, n_workers)) < np.linspace(0.1, 0.7, n_workers)] = -1
    labels[0], labels[1], labels[1, 2] = -1, -1, 3
    return labels


def plain_observed(labels, weight=np.equal):
    shares = []
    for row in labels:
        given = [label for label in row if label >= 0]
        if len(given) > 1:
            shares.append(np.mean([float(weight(a, b)) for a, b in combinations(given, 2)]))
    return np.mean(shares)


def plain_class_shares(labels, n_classes):
    rows = [[row.tolist().count(k) for k in range(n_classes)] for row in labels]
    return np.mean([np.array(row) / sum(row) for row in rows if sum(row)], axis=0)


def plain_alpha(labels, distance):
    """Krippendorff's coincidences, one pair of values at a time."""
    within, values = 0.0, []
    for row in labels:
        given = [label for label in row if label >= 0]
        if len(given) < 2:
            continue
        values += given
        apart = sum(
            distance(a, b) for i, a in enumerate(given) for j, b in enumerate(given) if i != j
        )
        within += apart / (len(given) - 1)
    between = sum(
        distance(a, b) for i, a in enumerate(values) for j, b in enumerate(values) if i != j
    )
    return 1 - (len(values) - 1) * within / between


def plain_ordinal(labels):
    pairable = [x for row in labels if (row >= 0).sum() > 1 for x in row if x >= 0]

    def distance(a, b):
        low, high = sorted((a, b))
        between = sum(pairable.count(g) for g in range(low, high + 1))
        return (between - (pairable.count(low) + pairable.count(high)) / 2) ** 2

    return distance


class TestPublished:
    @pytest.mark.parametrize(
        ("level", "expected"),
        [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849), ("ratio", 0.797)],
    )
    def test_krippendorffs_four_coders(self, level, expected):
        found = krippendorff_alpha(FOUR_CODERS, level=level, **NO_INTERVAL)
        assert_allclose(found.value, expected, atol=5e-4)
        assert found.n_tasks == 11

    def test_gwets_four_raters(self):
        # The same data in Gwet's Handbook of Inter-Rater Reliability.
        assert_allclose(gwet_ac(FOUR_CODERS, **NO_INTERVAL).value, 0.77544, atol=5e-6)
        assert_allclose(fleiss_kappa(FOUR_CODERS, **NO_INTERVAL).value, 0.76117, atol=5e-6)

    def test_fleiss_psychiatrists(self):
        found = fleiss_kappa(from_counts(PSYCHIATRISTS.split()))
        assert_allclose(found.value, 0.430, atol=5e-4)
        assert found.low < 0.430 < found.high

    def test_gwets_paradox(self):
        # Gwet (2002): 118 of 125 agree, kappa is below zero, AC1 is not misled.
        rows = [[0, 0]] * 118 + [[0, 1]] * 5 + [[1, 0]] * 2
        assert_allclose(gwet_ac(rows, **NO_INTERVAL).value, 0.9408, atol=5e-5)
        table = agreement(rows)
        assert_allclose(table.loc["Cohen's kappa", "value"], -0.0234, atol=5e-5)
        assert "See also Gwet's coefficient" in table.loc["Fleiss' kappa", "reading"]
        assert "97% of the labels are 0" in table.loc["Fleiss' kappa", "reading"]


class TestPlainLoops:
    @pytest.mark.parametrize("seed", range(3))
    def test_observed(self, seed):
        labels = lopsided(seed)
        found = observed_agreement(labels, **NO_INTERVAL)
        assert_allclose(found.value, plain_observed(labels))
        assert found.n_tasks == sum((row >= 0).sum() > 1 for row in labels)

    @pytest.mark.parametrize("seed", range(3))
    @pytest.mark.parametrize("power", [0, 1, 2])
    def test_fleiss_and_gwet(self, seed, power):
        labels, n_classes = lopsided(seed), 4

        def weight(a, b):
            return float(a == b) if power == 0 else 1 - (abs(a - b) / (n_classes - 1)) ** power

        kernel = np.array([[weight(a, b) for b in range(n_classes)] for a in range(n_classes)])
        observed = plain_observed(labels, weight)
        shares = plain_class_shares(labels, n_classes)
        chance = shares @ kernel @ shares
        name = ["identity", "linear", "quadratic"][power]
        found = fleiss_kappa(labels, weights=name, **NO_INTERVAL).value
        assert_allclose(found, (observed - chance) / (1 - chance))
        assert_allclose(fleiss_kappa(labels, weights=kernel, **NO_INTERVAL).value, found)
        chance = kernel.sum() / (n_classes * (n_classes - 1)) * np.sum(shares * (1 - shares))
        found = gwet_ac(labels, weights=name, **NO_INTERVAL).value
        assert_allclose(found, (observed - chance) / (1 - chance))

    @pytest.mark.parametrize("seed", range(3))
    def test_alpha(self, seed):
        labels = lopsided(seed)
        distances = {
            "nominal": lambda a, b: float(a != b),
            "ordinal": plain_ordinal(labels),
            "interval": lambda a, b: float(a - b) ** 2,
            "ratio": lambda a, b: ((a - b) / (a + b)) ** 2 if a + b else 0.0,
        }
        for level, distance in distances.items():
            found = krippendorff_alpha(labels, level=level, **NO_INTERVAL).value
            assert_allclose(found, plain_alpha(labels, distance))

    def test_numbers_as_text_are_ordered_as_numbers(self):
        labels = pd.DataFrame(lopsided()).replace({-1: None, 3: 10})
        as_text = labels.map(lambda x: None if x is None else str(x))
        for level in ("ordinal", "interval"):
            one, other = (
                krippendorff_alpha(Annotations.from_matrix(table), level=level, **NO_INTERVAL)
                for table in (labels, as_text)
            )
            assert_allclose(one.value, other.value)

    def test_blocks_of_tasks_change_nothing(self, monkeypatch):
        labels = lopsided()
        before = krippendorff_alpha(labels, level="interval", **NO_INTERVAL).value
        monkeypatch.setattr("crowdwise.evaluate.label_counts.CELLS_AT_ONCE", 12)
        found = krippendorff_alpha(labels, level="interval", **NO_INTERVAL).value
        assert_allclose(found, before)


class TestIntervals:
    def test_equals_an_independent_bca(self):
        labels = lopsided(1, n_tasks=80)
        rows = np.flatnonzero((labels >= 0).sum(axis=1) > 1)
        counts = np.array([[(labels[i] == k).sum() for k in range(4)] for i in rows], dtype=float)
        size = counts.sum(axis=1)
        apart = (size**2 - (counts**2).sum(axis=1)) / (size - 1)

        def alpha(at):
            total = counts[at].sum(axis=0)
            n = total.sum()
            return 1 - (n - 1) * apart[at].sum() / (n**2 - (total**2).sum())

        slow = stats.bootstrap(
            (np.arange(len(rows)),),
            alpha,
            vectorized=False,
            n_resamples=3000,
            method="BCa",
            rng=np.random.default_rng(0),
        ).confidence_interval
        fast = krippendorff_alpha(labels, n_resamples=3000)
        assert_allclose([fast.low, fast.high], slow, atol=0.012)

    def test_shrinks_with_more_tasks(self):
        def width(n_tasks):
            crowd = confused_crowd(np.tile([[0.8, 0.2], [0.3, 0.7]], (6, 1, 1)), n_tasks, 3,
                                   random_state=0)  # fmt: skip
            found = krippendorff_alpha(crowd.annotations)
            return found.high - found.low

        # 20,000 tasks are resampled in groups; the width still goes with 1 / sqrt(n).
        assert_allclose(width(200) / width(20_000), 10, rtol=0.2)

    def test_holds_the_truth_about_as_often_as_it_says(self):
        confusion = np.array([[[0.9, 0.1], [0.3, 0.7]], [[0.8, 0.2], [0.1, 0.9]]] * 3)
        draw = {"per_task": 3, "prior": [0.8, 0.2]}
        many = confused_crowd(confusion, 200_000, random_state=1, **draw).annotations
        for measure in (krippendorff_alpha, fleiss_kappa, gwet_ac, observed_agreement):
            truth = measure(many, **NO_INTERVAL).value
            held = [
                found.low <= truth <= found.high
                for seed in range(120)
                for found in [
                    measure(
                        confused_crowd(confusion, 60, random_state=seed, **draw).annotations,
                        n_resamples=300,
                    )
                ]
            ]
            assert 0.88 <= np.mean(held) <= 0.995

    def test_one_seed_gives_one_interval(self):
        labels = lopsided()
        first, again, other = (fleiss_kappa(labels, random_state=seed) for seed in (1, 1, 2))
        assert first == again
        assert first.low != other.low
        assert first.value == other.value

    def test_higher_confidence_is_wider(self):
        narrow, wide = (fleiss_kappa(lopsided(), confidence=c) for c in (0.5, 0.99))
        assert wide.low < narrow.low < narrow.value < narrow.high < wide.high

    def test_none_when_not_asked_for(self):
        found = agreement(lopsided(), n_resamples=0)
        assert found["value"].notna().any()
        assert found[["low", "high"]].isna().all(axis=None)

    @pytest.mark.parametrize("bad", [{"confidence": 1.0}, {"n_resamples": -1}])
    def test_refuses_impossible_settings(self, bad):
        with pytest.raises(ParameterError, match="expected"):
            agreement(lopsided(), **bad)


class TestEdges:
    @pytest.mark.parametrize(
        ("labels", "why"),
        [
            ([[0], [1], [0]], "only one worker"),
            ([[0, -1], [-1, 1]], "no two workers share a task"),
            ([[2, 2], [2, 2], [2, -1]], "Every label is 2"),
        ],
    )
    def test_says_why_there_is_no_number(self, labels, why):
        table = agreement(labels)
        undefined = table.loc[["Fleiss' kappa", "Cohen's kappa", "Krippendorff's alpha"]]
        assert undefined["value"].isna().all()
        assert undefined["reading"].str.startswith("Not defined.").all()
        assert why in undefined.loc["Fleiss' kappa", "reading"]

    def test_no_annotations_at_all(self):
        table = agreement(Annotations.from_matrix([[0, 1]]).filter([False, False]))
        assert table["value"].isna().all()
        assert "no annotations" in table.loc["observed agreement", "reading"]

    def test_one_class_is_perfect_observed_agreement(self):
        found = observed_agreement([[1, 1], [1, 1]])
        assert (found.value, found.low, found.high) == (1, 1, 1)
        declared = Annotations.from_matrix([[1, 1], [1, 1]], classes=[0, 1])
        assert gwet_ac(declared).value == 1

    def test_perfect_agreement_on_two_classes_is_one_and_explained(self):
        table = agreement([[0, 0], [1, 1]] * 6)
        assert_allclose(table["value"], 1)
        assert "cannot say how far off" in table.loc["Fleiss' kappa", "reading"]

    def test_less_than_chance_is_negative_and_explained(self):
        table = agreement([[0, 1], [1, 0]] * 10)
        assert (table.loc[table.index != "observed agreement", "value"] < 0).all()
        assert "less than by chance" in table.loc["Krippendorff's alpha", "reading"]

    def test_a_worker_counts_once_per_task(self):
        once = pd.DataFrame({"task": [1, 1, 2, 2, 3, 3], "worker": list("abab" "ab"),
                             "label": [0, 0, 1, 0, 1, 1]})  # fmt: skip
        first = once.iloc[[0]].assign(label=1)
        twice = pd.concat([first, once])
        assert_allclose(agreement(twice)["value"], agreement(once)["value"])

    def test_weights_count_only_when_zero(self):
        plain = Annotations.from_frame(Annotations.from_matrix(lopsided()).to_frame())
        frame = plain.to_frame()
        weight = np.where(np.arange(len(frame)) % 5 == 0, 0.0, 2.5)
        weighted = Annotations.from_frame(frame.assign(weight=weight), weight="weight")
        kept = Annotations.from_frame(frame[weight > 0])
        assert_allclose(agreement(weighted)["value"], agreement(kept)["value"])

    def test_names_and_order_leave_no_trace(self):
        frame = Annotations.from_matrix(lopsided()).to_frame()
        renamed = frame.assign(
            task=[f"t{9 - i % 10}{i}" for i in frame["task"]],
            worker=[f"w{9 - i}" for i in frame["worker"]],
            label=[f"c{9 - i}" for i in frame["label"]],
        ).sample(frac=1, random_state=0)
        before, after = (agreement(table, n_resamples=0)["value"] for table in (frame, renamed))
        assert_allclose(after, before)

    def test_classes_that_are_no_numbers(self):
        labels = pd.DataFrame([["mid", "high"], ["low", "low"], ["mid", "mid"]] * 5)
        with pytest.raises(ParameterError, match="level='ordinal'"):
            krippendorff_alpha(labels, level="interval")
        right = Annotations.from_matrix(labels, classes=["low", "mid", "high"])
        assert krippendorff_alpha(right, level="ordinal").value != pytest.approx(
            krippendorff_alpha(labels, level="ordinal").value
        )
        reading = agreement(right, level="ordinal").loc["Krippendorff's alpha", "reading"]
        assert "Order taken: low < mid < high." in reading

    @pytest.mark.parametrize(
        ("measure", "bad"),
        [
            (krippendorff_alpha, {"level": "cardinal"}),
            (fleiss_kappa, {"weights": "cubic"}),
            (gwet_ac, {"weights": np.ones((2, 2))}),
            (gwet_ac, {"weights": np.zeros((4, 4))}),
        ],
    )
    def test_refuses_unknown_weights_and_levels(self, measure, bad):
        with pytest.raises(ParameterError, match="expected"):
            measure(lopsided(), **bad)


def test_the_table_has_a_level():
    labels = lopsided()
    table = agreement(labels, level="interval")
    assert "Gwet's AC2 (quadratic weights)" in table.index
    alpha = krippendorff_alpha(labels, level="interval")
    row = table.loc["Krippendorff's alpha"]
    assert (row["value"], row["low"], row["high"]) == (alpha.value, alpha.low, alpha.high)
    weighted = fleiss_kappa(labels, weights="quadratic").value
    assert_allclose(table.loc["Fleiss' kappa (quadratic weights)", "value"], weighted)


def test_many_tasks_take_little_time():
    rng = np.random.default_rng(0)
    task = np.repeat(np.arange(200_000), 3)
    label = rng.integers(0, 3, len(task))
    data = Annotations.from_codes(task, np.tile([0, 1, 2], 200_000), label)
    start = time.process_time()
    found = krippendorff_alpha(data)
    assert time.process_time() - start < 3
    assert found.low < 0 < found.high


def test_real_crowd(real_crowd):
    # From the packages krippendorff 0.9.0 and irrCAC 0.4.4.
    table = agreement(real_crowd("bluebirds").annotations)["value"]
    assert_allclose(table["Krippendorff's alpha"], 0.1255006, atol=5e-8)
    assert_allclose(table["Fleiss' kappa"], 0.12529, atol=5e-6)
    assert_allclose(table["Gwet's AC1"], 0.22184, atol=5e-6)
