"""Worker quality: who is flagged, who is not, and the numbers behind it."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from crowdwise import Annotations, memory
from crowdwise.aggregate import DawidSkene, MajorityVote
from crowdwise.errors import AnnotationError
from crowdwise.evaluate import wilson, worker_quality, workers
from crowdwise.evaluate.leave_one_out import LeaveOneOut
from crowdwise.evaluate.worker_skill import independence_p_value, measure_signal, measure_skill
from crowdwise.simulate import confused_crowd

pytestmark = pytest.mark.usefixtures("quick_default")
ALARMS = ("answers as if at random", "always the same label", "often contradicts the rest")


def crowd_with(bad, *, n_classes=3, n_workers=30, n_tasks=1500, per_task=5, seed=0, prior=None):
    """A crowd of decent workers, the first of whom have these confusion matrices instead."""
    rng = np.random.default_rng(seed)
    skill = rng.uniform(0.65, 0.95, (n_workers, 1, 1))
    errors = rng.dirichlet(np.ones(n_classes), (n_workers, n_classes))
    confusion = (1 - skill) * errors + skill * np.eye(n_classes)
    confusion[: len(bad)] = np.array(bad).reshape(-1, n_classes, n_classes)
    return confused_crowd(confusion, n_tasks, per_task, prior=prior, random_state=seed)


def test_flags_each_kind_of_bad_worker():
    even, skewed = np.full((3, 3), 1 / 3), np.tile([0.6, 0.3, 0.1], (3, 1))
    always, shifted = np.tile([0.0, 1.0, 0.0], (3, 1)), np.roll(np.eye(3), 1, axis=1)
    liar = 0.8 * shifted + 0.2 / 3
    crowd = crowd_with([even, skewed, always, liar], prior=[0.5, 0.3, 0.2])
    table = worker_quality(crowd.annotations)
    assert table["flag"].tolist()[:4] == [
        "answers as if at random",
        "answers as if at random",
        "always the same label",
        "often contradicts the rest",
    ]
    assert not table["flag"][4:].isin(ALARMS).any()


@pytest.mark.parametrize("prior", [[0.5, 0.5], [0.9, 0.1], [0.97, 0.03]])
def test_hardly_ever_alarms_at_decent_workers_and_finds_spammers(prior):
    even, always, liar = np.full((2, 2), 0.5), [[1.0, 0.0], [1.0, 0.0]], [[0.1, 0.9], [0.8, 0.2]]
    found, false_alarms = [], []
    for seed in range(6):
        crowd = crowd_with([even, always, liar], n_classes=2, prior=prior, seed=seed)
        alarm = worker_quality(crowd.annotations)["flag"].isin(ALARMS).to_numpy()
        found.append(alarm[:3])
        false_alarms.append(alarm[3:])
    assert np.mean(false_alarms) < 0.01
    assert np.mean(found) > 0.9


def test_few_labels_are_not_judged():
    crowd = crowd_with([np.full((3, 3), 1 / 3)], n_tasks=30, n_workers=30)
    table = worker_quality(crowd.annotations)
    few = table["n_shared"] < 10
    assert few.any()
    assert (table["flag"][few] == "too few labels to say").all()
    stricter = worker_quality(crowd.annotations, min_labels=1000)["flag"]
    assert (stricter == "too few labels to say").all()


def test_with_one_class_nobody_contradicts_anybody():
    table = worker_quality([["yes"] * 3] * 40)
    assert table["flag"].tolist() == ["too few labels to say"] * 3


def test_thresholds_are_parameters():
    crowd = crowd_with([np.tile([0.9, 0.07, 0.03], (3, 1))])

    def flag(**thresholds):
        return worker_quality(crowd.annotations, **thresholds)["flag"].iloc[0]

    assert flag() == "answers as if at random"
    assert flag(same_share=0.8) == "always the same label"
    assert flag(same_share=0.8, min_misses=10_000) == "answers as if at random"
    assert flag(max_skill=-0.9) == "too few labels to say"
    assert flag(significance=0.999999) == "often contradicts the rest"


def test_a_liar_is_found_whatever_the_test_says():
    crowd = crowd_with([[[0.1, 0.9], [0.8, 0.2]]], n_classes=2)
    flags = worker_quality(crowd.annotations, significance=1e-300)["flag"]
    assert flags.iloc[0] == "often contradicts the rest"


def test_a_worker_who_finds_most_of_a_rare_class_is_not_always_the_same():
    truth = np.zeros(1500, dtype=int)
    truth[:30] = 1
    cautious = truth.copy()
    cautious[:8] = 0  # misses 8 of 30, so 98.5% of the labels are 0
    labels = np.column_stack([truth] * 3 + [cautious])
    table = worker_quality(Annotations.from_matrix(labels, missing=None))
    assert table["flag"].tolist() == [""] * 4


def test_a_worker_who_is_always_right_to_say_no_is_not_flagged():
    truth = np.zeros(300, dtype=int)
    truth[:3] = 1
    labels = np.column_stack([truth] * 3 + [np.zeros(300, dtype=int)])
    flags = worker_quality(Annotations.from_matrix(labels, missing=None))["flag"]
    assert not flags.isin(ALARMS).any()


def test_accuracy_is_expected_under_the_posterior():
    crowd = crowd_with([], n_tasks=200)
    data = crowd.annotations
    model = DawidSkene().fit(data)
    table = worker_quality(data, model)
    for worker in (0, 7):
        rows = np.flatnonzero(data.worker == worker)
        right = [model.posterior_[data.task[r], data.label[r]] for r in rows]
        assert_allclose(table["accuracy"].iloc[worker], np.mean(right))
        assert table["n_labels"].iloc[worker] == len(rows)


def test_accuracy_intervals_hold_the_truth():
    held = []
    for seed in range(5):
        crowd = crowd_with([], seed=seed, n_tasks=600)
        table = worker_quality(crowd.annotations)
        truth = np.einsum("wkk->w", crowd.confusion) / 3
        held += list((table["accuracy_low"] <= truth) & (truth <= table["accuracy_high"]))
    assert 0.88 <= np.mean(held) <= 0.99


def test_matrices_too_large_to_be_drawn_are_left_alone(monkeypatch):
    crowd = crowd_with([], n_tasks=300)
    expected = worker_quality(crowd.annotations)
    monkeypatch.setattr(workers, "MOST_CELLS", 30 * 3**2 - 1)
    monkeypatch.setattr(workers, "draw_crowds", None)
    monkeypatch.setattr(workers, "DawidSkene", None)
    table = worker_quality(crowd.annotations)
    assert_allclose(table["accuracy"], expected["accuracy"])
    assert (table["accuracy_low"] < table["accuracy"]).all()
    assert (table["accuracy_high"] > table["accuracy"]).all()
    assert_allclose(table["skill"], expected["skill"], atol=0.1)
    monkeypatch.setattr(memory, "available_memory", lambda: 24 * 30 * 3**2 - 1)
    with pytest.raises(AnnotationError, match=r"6\.48 kB of memory: (.|\n)*merge rare classes"):
        worker_quality(crowd.annotations)


def test_doubt_about_the_truth_widens_the_interval():
    labels, truth = [[0, 0], [1, 1]] * 20, dict(enumerate([0, 1] * 20))
    widths = [
        table["accuracy_high"] - table["accuracy_low"]
        for table in (worker_quality(labels, gold=truth), worker_quality(labels))
    ]
    assert (widths[1] > 1.5 * widths[0]).all()


def test_agreement_with_others_equals_plain_loops():
    data = crowd_with([], n_tasks=60, n_workers=8).annotations.subsample(3, random_state=0)
    grid = data.to_snorkel()
    table = worker_quality(data)
    for worker in range(8):
        shares = []
        for row in grid:
            others = [row[w] for w in range(8) if w != worker and row[w] >= 0]
            if row[worker] >= 0 and others:
                shares.append(np.mean([label == row[worker] for label in others]))
        assert_allclose(table["agreement"].iloc[worker], np.mean(shares))
        assert_allclose(
            table[["agreement_low", "agreement_high"]].iloc[worker],
            wilson(sum(shares), len(shares)),
        )


def slow_left_out(data, posterior, worker, task):
    """P(truth) of a task from the labels of everyone but one worker, as a product."""
    n_classes = data.n_classes
    rows = list(zip(data.task, data.worker, data.label, strict=True))
    counts = np.zeros((data.n_workers, n_classes, n_classes))
    for i, w, label in rows:
        counts[w, :, label] += posterior[i]
    crowd = counts.sum(axis=0) + 1 / n_classes
    confusion = counts + crowd / crowd.sum(axis=1, keepdims=True)
    confusion /= confusion.sum(axis=2, keepdims=True)
    joint = posterior.sum(axis=0) + 1 / n_classes
    for i, w, label in rows:
        if i == task and w != worker:
            joint = joint * confusion[w, :, label]
    return joint / joint.sum()


def test_left_out_truth_equals_plain_loops(monkeypatch):
    monkeypatch.setattr("crowdwise.evaluate.leave_one_out.ROWS_AT_ONCE", 40)
    crowd = crowd_with([], n_tasks=40, n_workers=7, prior=[0.6, 0.3, 0.1])
    data, posterior = crowd.annotations, crowd.annotations.shares()
    gold = np.full(data.n_tasks, -1)
    gold[3] = 2
    blocks = list(LeaveOneOut.of(data, posterior, gold).blocks())
    assert len(blocks) > 2
    found = np.concatenate([block.truth for block in blocks])
    plurality = np.concatenate([block.plurality for block in blocks])
    votes = data.votes()
    for row in (0, 11, 50, 199):
        task, worker = data.task[row], data.worker[row]
        assert task != 3
        assert_allclose(found[row], slow_left_out(data, posterior, worker, task))
        others = votes[task] - np.eye(3)[data.label[row]]
        assert plurality[row] == others.argmax()
    assert_allclose(found[data.task == 3], [[0, 0, 1]] * 5)
    assert (plurality[data.task == 3] == 2).all()


def test_skill_equals_plain_loops():
    crowd = crowd_with([], n_tasks=50, n_workers=6, prior=[0.6, 0.3, 0.1])
    data, posterior = crowd.annotations, crowd.annotations.shares()
    others = LeaveOneOut.of(data, posterior, None)
    truth = np.concatenate([block.truth for block in others.blocks()])
    found = measure_skill(others, np.ones(data.n_annotations, dtype=bool))
    for worker in range(6):
        rows = np.flatnonzero(data.worker == worker)
        q = truth[rows] - truth[rows].mean(axis=0)
        y = np.eye(3)[data.label[rows]]
        y -= y.mean(axis=0)
        follows, possible = (q * y).sum(axis=1), (q * q).sum(axis=1)
        value = follows.sum() / possible.sum()
        assert_allclose(found.value[worker], value)
        n = len(rows)
        sandwich = n / (n - 1) * np.sum((follows - value * possible) ** 2)
        shuffled = np.sum((q @ y.T) ** 2) / n
        coin = possible.sum() / 2
        assert shuffled <= coin
        expected = np.sqrt(max(sandwich, coin)) / possible.sum()
        assert_allclose(found.error[worker], expected)
        assert_allclose(found.match[worker], truth[rows, data.label[rows]].sum())
        top = np.bincount(data.label[rows]).argmax()
        grid, votes = data.to_snorkel(), data.votes()
        missed = [
            i
            for i in data.task[rows]
            if grid[i, worker] == top and (votes[i] - np.eye(3)[top]).argmax() != top
        ]
        assert found.misses[worker] == len(missed)


@pytest.mark.parametrize("n", [4, 12])
def test_skill_of_few_labels_has_the_error_of_a_sample(n):
    truth = np.tile([0, 0, 1, 1], n // 4)
    unrelated = np.tile([0, 1, 0, 1], n // 4)
    labels = Annotations.from_matrix(np.column_stack([unrelated, truth, truth]))
    table = worker_quality(labels, gold=truth, confidence=0.5).iloc[0]
    # q and y are half a label up or down, so q . y is 1/2 or -1/2 and q . q is 1/2: the squares
    # add up to n / 4, n / (n - 1) makes them a sample's, and the skill of the truth is n / 2.
    error = np.sqrt(n / 4 * n / (n - 1)) / (n / 2)
    assert_allclose(table["skill"], 0, atol=1e-12)
    assert_allclose(table["skill_high"], stats.norm.ppf(0.75) * error)
    assert_allclose(table["skill_low"], -table["skill_high"])


def test_skill_is_zero_for_noise_and_one_for_the_truth():
    even = np.full((3, 3), 1 / 3)
    crowd = crowd_with([even, np.eye(3), 0.5 * np.eye(3) + 0.5 / 3], n_tasks=6000)
    skill = worker_quality(crowd.annotations)["skill"]
    assert_allclose(skill.iloc[:3], [0, 1, 0.5], atol=0.06)


class TestIndependence:
    def table(self, rng, n=40):
        truth = rng.choice(3, n, p=[0.6, 0.3, 0.1])
        return truth, rng.choice(4, n, p=[0.5, 0.3, 0.15, 0.05])

    def test_is_a_fair_test_even_on_thin_tables(self):
        rng = np.random.default_rng(0)
        truth, label = zip(*(self.table(rng, n=25) for _ in range(3000)), strict=True)
        worker = np.repeat(np.arange(3000), 25)
        p = independence_p_value(
            worker, np.concatenate(truth), np.concatenate(label), np.full(3000, 25)
        )
        for level in (0.01, 0.05, 0.2):
            assert_allclose(np.mean(p <= level), level, rtol=0.35)

    def test_equals_shuffling(self):
        rng = np.random.default_rng(1)
        truth, label = self.table(rng)
        label[:12] = truth[:12]

        def chi_square(a, b):
            seen = np.bincount(4 * a + b, minlength=12).reshape(3, 4)
            return stats.chi2_contingency(seen, correction=False)[0]

        shuffled = [chi_square(truth, rng.permutation(label)) for _ in range(1500)]
        expected = np.mean(np.array(shuffled) >= chi_square(truth, label))
        zeros = np.zeros(40, dtype=int)
        found = independence_p_value(zeros, truth, label, np.array([40]))
        assert 0.005 < expected < 0.5
        assert_allclose(found, expected, rtol=0.25)

    def test_says_nothing_when_all_labels_or_all_truths_are_alike(self):
        zeros, mixed = np.zeros(20, dtype=int), np.tile([0, 1], 10)
        for truth, label in ((zeros, mixed), (mixed, zeros)):
            assert np.isnan(independence_p_value(zeros, truth, label, np.array([20]))).all()


def test_signal_equals_the_papers_sum():
    crowd = crowd_with([np.full((3, 3), 1 / 3), np.eye(3)], n_tasks=400)
    data, posterior = crowd.annotations, crowd.annotations.shares()
    found = measure_signal(data, posterior)
    for worker in (0, 1, 5):
        counts = np.zeros((3, 3))
        for row in np.flatnonzero(data.worker == worker):
            counts[:, data.label[row]] += posterior[data.task[row]]
        confusion = counts + counts.sum(axis=0) / counts.sum()
        confusion /= confusion.sum(axis=1, keepdims=True)
        pairs = [(0, 1), (0, 2), (1, 2)]
        expected = sum(np.sum((confusion[a] - confusion[b]) ** 2) for a, b in pairs) / 6
        assert_allclose(found[worker], expected)


def test_signal_runs_from_spammer_to_perfect():
    crowd = crowd_with([np.full((3, 3), 1 / 3), np.eye(3)], n_tasks=3000)
    truth = pd.DataFrame(np.eye(3)[crowd.truth])
    table = worker_quality(crowd.annotations, truth)
    assert table["signal"].iloc[0] < 0.02
    assert table["signal"].iloc[1] > 0.98


def test_gold_gives_accuracy_of_its_own():
    crowd = crowd_with([], n_tasks=100)
    data = crowd.annotations
    gold = {task: int(crowd.truth[task]) for task in range(0, 100, 2)}
    table = worker_quality(data, gold=gold)
    asked = (data.worker == 4) & (data.task % 2 == 0)
    right = (data.label == crowd.truth[data.task]) & asked
    assert table["n_gold"].iloc[4] == asked.sum()
    assert_allclose(table["gold_accuracy"].iloc[4], right.sum() / asked.sum())
    expected = wilson(right.sum(), asked.sum())
    assert_allclose(table[["gold_low", "gold_high"]].iloc[4], expected)
    assert "n_gold" not in worker_quality(data)


def test_gold_alone_can_unmask_a_crowd_of_liars():
    flip = np.array([[0.1, 0.9], [0.9, 0.1]])
    confusion = np.array([flip] * 4 + [np.eye(2)] * 2)
    crowd = confused_crowd(confusion, 300, 6, random_state=0)
    gold = dict(enumerate(crowd.truth))
    flags = worker_quality(crowd.annotations, gold=gold)["flag"].tolist()
    assert flags == ["often contradicts the rest"] * 4 + ["", ""]


def test_model_may_be_fitted_unfitted_or_a_frame():
    data = crowd_with([], n_tasks=100).annotations
    model = MajorityVote().fit(data)
    tables = [worker_quality(data, m) for m in (model, MajorityVote(), model.probas_)]
    shuffled = model.probas_.iloc[::-1, ::-1]
    for table in (*tables[1:], worker_quality(data, shuffled)):
        pd.testing.assert_frame_equal(table, tables[0])
    with pytest.raises(AnnotationError, match="fitted to the same annotations"):
        worker_quality(data, model.probas_.iloc[:50])


def test_repeats_count_once():
    data = crowd_with([], n_tasks=80).annotations
    frame = data.to_frame()
    again = pd.concat([frame.iloc[:30].assign(label=0), frame])
    pd.testing.assert_frame_equal(worker_quality(again), worker_quality(frame))


@pytest.mark.parametrize(
    "labels",
    [
        [[0]],
        [[0], [1], [0]],
        [[2, 2, 2]] * 20,
        [[0, -1, -1], [-1, 1, -1], [-1, -1, 0]],
        [[0, 1]],
    ],
    ids=["one label", "one worker", "one class", "no overlap", "one task"],
)
def test_odd_crowds_give_a_table_without_alarms(labels):
    table = worker_quality(labels)
    assert len(table) == len(labels[0])
    assert not table["flag"].isin(ALARMS).any()


def test_a_worker_without_labels_has_a_row():
    data = Annotations.from_matrix(
        [[0, 0, -1], [1, 1, -1]] * 10, missing=-1, workers=["a", "b", "c"]
    )
    table = worker_quality(data)
    assert table.loc["c", "n_labels"] == 0
    assert np.isnan(table.loc["c", "accuracy"])
    assert table.loc["c", "flag"] == "too few labels to say"


def test_no_annotations_at_all():
    data = Annotations.from_matrix([[0, 1]]).filter([False, False])
    assert (worker_quality(data)["flag"] == "too few labels to say").all()


@pytest.mark.parametrize("name", ["bluebirds", "rte", "sentiment_tweets"])
def test_flagged_workers_of_real_crowds_are_bad(real_crowd, name):
    crowd = real_crowd(name)
    table = worker_quality(crowd.annotations)
    frame = crowd.annotations.to_frame()
    right = frame["label"] == frame["task"].map(crowd.truth)
    true = right.groupby(frame["worker"]).mean()[table.index]
    alarmed = table["flag"].isin(ALARMS)
    assert alarmed.sum() >= 4
    assert (true[alarmed] <= 0.6).all()
    assert true[table["flag"] == ""].mean() > 0.7
