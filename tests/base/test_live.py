"""Labels that arrive one after another lead where a fit to all of them leads."""

import copy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

import crowdwise
from crowdwise import Annotations
from crowdwise.aggregate import IBCC, DawidSkene, HardDawidSkene, MajorityVote, OneCoin, Wawa
from crowdwise.base import LiveUpdates
from crowdwise.errors import FormatError, ParameterError
from crowdwise.inference import expected_log
from crowdwise.inference.growing_arrays import Growing, number_repeats
from crowdwise.simulate import confused_crowd

METHODS = [
    DawidSkene(), DawidSkene(pooling=3, smoothing=(1, 0.25)), HardDawidSkene(), IBCC(),
    MajorityVote(), OneCoin(class_prior="estimate"), Wawa(),
]  # fmt: skip
TIGHT = {"tol": 1e-12, "max_iter": 2000}


@pytest.fixture(scope="module")
def rows():
    """Labels of a lopsided crowd in random order, a worker and a class late among them."""
    careful, sloppy = [[0.9, 0.07, 0.03], [0.1, 0.85, 0.05], [0.02, 0.08, 0.9]], np.full((3, 3), 1)
    confusion = np.array([careful] * 5 + [0.6 * np.array(careful) + 0.4 * sloppy / 3] * 3)
    crowd = confused_crowd(confusion, n_tasks=120, per_task=4, random_state=3)
    frame = crowd.annotations.to_frame().sample(frac=1, random_state=0, ignore_index=True)
    late = (frame["worker"] == frame["worker"].max()) | (frame["label"] == frame["label"].max())
    return pd.concat([frame[~late], frame[late]], ignore_index=True)


def tight(method):
    return clone(method).set_params(**TIGHT) if "tol" in method.get_params() else clone(method)


def feed(model, rows, step, **options):
    for start in range(0, len(rows), step):
        model.update(rows[start : start + step], **options)
    return model


def assert_same(live, fitted, atol=1e-3):
    expected = fitted.probas_
    assert_allclose(live.probas_.loc[expected.index, expected.columns], expected, atol=atol)


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_updates_end_where_a_fit_does(method, rows):
    live = feed(tight(method), rows, 40)
    fitted = tight(method).fit(rows)
    assert_same(live, fitted)
    if hasattr(fitted, "skills_"):
        assert_allclose(live.skills_[fitted.skills_.index], fitted.skills_, atol=1e-3)


@pytest.mark.parametrize("method", [IBCC(), MajorityVote(), Wawa()], ids=str)
def test_no_new_beginning_is_needed_where_there_is_one_end(method, rows, monkeypatch):
    live = tight(method).update(rows[:300])
    monkeypatch.setattr(type(live), "_updates", LiveUpdates(growth=1e9))
    feed(live, rows[300:], 20)
    assert_same(live, tight(method).fit(rows))


@pytest.mark.parametrize("method", [IBCC(), HardDawidSkene()], ids=str)
def test_passing_a_thousand_labels_is_a_fit(method, rows, monkeypatch):
    """Also where methods stop before their end, or have several."""
    monkeypatch.setattr("crowdwise.inference.live.EVERY", 100)
    monkeypatch.setattr(type(method), "_updates", LiveUpdates(growth=1e9))
    live = clone(method)
    for start in range(0, len(rows), 30):
        live.update(rows[start : start + 30])
        if start + 30 in (120, 210, 300, 420):  # the first call beyond another hundred
            assert_same(live, clone(method).fit(rows[: start + 30]), atol=1e-9)


def test_a_fit_made_beside_is_taken_over_later(rows):
    """New tasks, workers and a class come while it is made."""
    live = DawidSkene().update(rows[:300], wait=False)
    live.update(rows[300:330], wait=False)
    beside = live._live.pending
    assert live._live.begun == 300
    assert copy.deepcopy(live)._live.pending is None
    beside.result(timeout=30)
    live.update(rows[330:], wait=False)
    assert live._live.begun == 330
    shares = live.counts_.sum(axis=(1, 2)) - 9 * live.smoothing
    assert_allclose(shares, rows["worker"].value_counts()[live.workers_])
    assert_allclose(live._live.truths, live.posterior_.sum(axis=0))
    live.update(rows[:1])
    assert_same(live, DawidSkene().fit(pd.concat([rows, rows[:1]])), atol=1e-9)


def test_a_fit_made_before_a_class_came_gives_it_to_no_task(rows):
    live = DawidSkene().update(rows[:300], wait=False)
    live.update(rows[300:330], wait=False)
    live._live.pending.result(timeout=30)
    live.update(pd.DataFrame({"task": ["new"], "worker": [0], "label": [7]}), wait=False)
    assert live._live.begun == 330
    assert live.probas_.drop(index="new")[7].sum() < 0.02


def test_a_single_label_moves_its_task_and_its_worker(rows):
    live = IBCC().update(rows[:-1])
    before, skills = live.posterior_.copy(), live.skills_.copy()
    task, worker, _ = rows.iloc[-1]
    live.update([tuple(rows.iloc[-1])])
    row = live.tasks_.tolist().index(task)
    assert np.abs(live.posterior_[row] - before[row]).max() > 1e-4
    assert live.skills_[worker] != skills[worker]


def test_gold_is_kept_and_taught(rows):
    gold = {rows["task"][0]: 1, rows["task"][5]: 0}
    tight_ibcc = IBCC(**TIGHT)
    live = clone(tight_ibcc).update(rows[:200], gold).update(rows[200:])
    assert_same(live, clone(tight_ibcc).fit(rows, gold))
    assert live.probas_.loc[rows["task"][0], 1] == 1.0


def test_weights_and_distributions_count(rows):
    votes = Annotations.from_frame(
        rows.assign(weight=np.arange(len(rows)) % 3 + 0.5), weight="weight"
    )
    one, two = (votes.filter(np.arange(votes.n_annotations) % 2 == part) for part in (0, 1))
    assert_same(IBCC(**TIGHT).update(one).update(two), IBCC(**TIGHT).fit(votes))
    soft = Annotations.from_codes(
        [0, 0, 1], [0, 1, 1], [0, 1, 0], soft=[[0.6, 0.4], [0.1, 0.9], [1, 0]]
    )
    for voting in ("soft", "hard"):
        vote = MajorityVote(voting=voting)
        assert_allclose(clone(vote).update(soft).posterior_, vote.fit(soft).posterior_)


def test_a_saved_model_goes_on(rows, tmp_path):
    whole = feed(DawidSkene(), rows, 30)
    half = feed(DawidSkene(), rows[:240], 30)
    half.save(tmp_path / "half.cw")
    again = feed(crowdwise.load(tmp_path / "half.cw"), rows[240:], 30)
    assert_same(again, whole, atol=1e-9)


@pytest.mark.parametrize("column", ["task", "worker", "label"])
def test_a_ledger_that_does_not_fit_is_refused(rows, column):
    ledger = DawidSkene().update(rows)._live.close()
    for broken in (np.full(len(rows), 10_000), getattr(ledger, column)[1:]):
        with pytest.raises(FormatError, match="ledger"):
            replace(ledger, **{column: broken})


def slow_forgetting(rows, memory, n_steps=300):
    """IBCC in which a label counts by its age among its worker's, as loops."""
    votes = Annotations.from_frame(rows)
    later = rows.groupby("worker").cumcount(ascending=False).to_numpy()
    roles = {"task": votes.tasks, "worker": votes.workers, "label": votes.classes}
    codes = [pd.Index(names).get_indexer(rows[role]) for role, names in roles.items()]
    posterior, k = votes.shares(), votes.n_classes
    for _ in range(n_steps):
        counts = np.tile(np.where(np.eye(k, dtype=bool), 4.0, 1.0), (votes.n_workers, 1, 1))
        for task, worker, label, age in zip(*codes, later, strict=True):
            counts[worker, :, label] += np.exp(-age / memory) * posterior[task]
        table, joint = expected_log(counts), np.zeros_like(posterior)
        joint += expected_log(posterior.sum(axis=0) + 1.0)
        for task, worker, label in zip(*codes, strict=True):
            joint[task] += table[worker, :, label]
        posterior = np.exp(joint - joint.max(axis=1, keepdims=True))
        posterior /= posterior.sum(axis=1, keepdims=True)
    return pd.DataFrame(posterior, votes.tasks, votes.classes)


def test_forgetting_equals_the_plain_loops(rows):
    memory = 100  # no label is twice as old: every task is judged again
    live = feed(IBCC(), rows.assign(time=range(len(rows))), 40, memory=memory)
    assert rows["worker"].value_counts().max() < 2 * memory
    expected = slow_forgetting(rows, memory)
    assert_allclose(live.probas_.loc[expected.index, expected.columns], expected, atol=1e-3)


def test_a_worker_who_turns_bad_is_noticed_and_old_tasks_keep_their_labels():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 600)
    parts = []
    for worker in range(5):
        wrong = rng.random(600) < (0.1 if worker else np.where(np.arange(600) < 300, 0.02, 0.9))
        parts.append(pd.DataFrame({"task": range(600), "worker": worker, "label": truth ^ wrong}))
    rows = pd.concat(parts).sort_values("task", ignore_index=True)
    steady, forgetful = IBCC().update(rows), feed(IBCC(), rows, 100, memory=40)
    assert steady.skills_[0] > 0.4
    assert forgetful.skills_[0] < 0.25
    assert (forgetful.labels_.loc[:99].to_numpy() == truth[:100]).mean() > 0.97


def test_what_cannot_be_updated_says_so(rows):
    with pytest.raises(ParameterError, match=r"was trained by fit, which stores no labels"):
        IBCC().fit(rows).update(rows)
    with pytest.raises(ParameterError, match=r"Wawa\(max_iter=2\) cannot be updated"):
        Wawa(max_iter=2).update(rows[:300]).update(rows[300:])
    live = IBCC().update(rows[:50], memory=9)
    with pytest.raises(ParameterError, match="started with 9"):
        live.update(rows[50:60], memory=8)
    with pytest.raises(ParameterError, match="memory=0"):
        IBCC().update(rows, memory=0)


def test_partial_fit_is_update(rows):
    assert_allclose(IBCC().partial_fit(rows).posterior_, IBCC().update(rows).posterior_)


def test_effort_per_label_is_bounded(rows, monkeypatch):
    live = IBCC().update(rows)
    monkeypatch.setattr("crowdwise.base.live.WORK", 1)
    monkeypatch.setattr("crowdwise.inference.live.BLOCK", 20)
    before = live._live.cursor
    live.update([("another task", 0, 1)])
    assert live._live.cursor - before <= 20
    assert live._live.still < len(live.tasks_)


def test_growing_arrays_widen_their_type():
    column = Growing(np.arange(3))
    column.append(np.array(["a", 7], dtype=object))
    assert column.view.tolist() == [0, 1, 2, "a", 7]


def test_repeats_are_numbered():
    before, times = number_repeats(np.array([5, 2, 5, 5, 2]))
    assert before.tolist() == [-1, -1, 0, 2, 1]
    assert times.tolist() == [0, 0, 1, 2, 1]
