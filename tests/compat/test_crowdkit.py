"""crowd-kit's names: arguments, tables and refusals."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from crowdwise import aggregate
from crowdwise.compat import crowdkit
from crowdwise.errors import AnnotationError, ParameterError

ROWS = [
    ("t1", "p1", 0), ("t1", "p2", 0), ("t1", "p3", 1),
    ("t2", "p1", 1), ("t2", "p2", 0), ("t2", "p3", 1),
    ("t3", "p1", 1), ("t3", "p3", 0), ("t4", "p2", 1), ("t4", "p1", 1),
]  # fmt: skip
DATA = pd.DataFrame(ROWS, columns=["task", "worker", "label"])
PLAIN = [name for name in crowdkit.__all__ if name != "GoldMajorityVote"]


@pytest.mark.parametrize("name", PLAIN)
def test_labels_are_a_series_by_task(name):
    model = getattr(crowdkit, name)()
    labels = model.fit_predict(DATA)
    assert labels.name == "agg_label"
    assert labels.index.name == "task"
    assert set(labels.index) == {"t1", "t2", "t3", "t4"}
    assert labels.equals(model.labels_)
    assert clone(model).get_params() == model.get_params()


@pytest.mark.parametrize("name", [name for name in PLAIN if name not in ("KOS", "MMSR")])
def test_probabilities_are_a_frame_task_by_label(name):
    probas = getattr(crowdkit, name)().fit_predict_proba(DATA)
    assert probas.index.name == "task"
    assert sorted(probas.columns) == [0, 1]
    assert probas.sum(axis=1).to_numpy() == pytest.approx(np.ones(4))


class TestMajorityVote:
    def test_weighs_by_skill(self):
        skills = pd.Series({"p1": 0.2, "p2": 0.9, "p3": 0.1})
        model = crowdkit.MajorityVote().fit(DATA, skills)
        assert model.labels_["t2"] == 0
        assert model.probas_.loc["t2", 0] == pytest.approx(0.9 / 1.2)

    def test_missing_skills(self):
        skills = pd.Series({"p1": 0.2, "p2": 0.9})
        with pytest.raises(AnnotationError, match="1 of 3 workers have no skill"):
            crowdkit.MajorityVote().fit(DATA, skills)
        ignoring = crowdkit.MajorityVote(on_missing_skill="ignore").fit(DATA, skills)
        assert ignoring.probas_.loc["t1", 1] == 0
        lonely = pd.Series({"p2": 0.9})  # leaves the third task bare
        with pytest.raises(AnnotationError, match="no skill"):
            crowdkit.MajorityVote(on_missing_skill="ignore").fit(DATA, lonely)
        given = crowdkit.MajorityVote(on_missing_skill="value", default_skill=5.0)
        assert given.fit(DATA, skills).labels_["t1"] == 1
        with pytest.raises(ParameterError, match="on_missing_skill='what'"):
            crowdkit.MajorityVote(on_missing_skill="what").fit(DATA, skills)

    def test_skills_are_agreement_and_repeats_count_once(self):
        repeated = pd.concat([DATA, DATA[:1], DATA[:1]])
        model = crowdkit.MajorityVote().fit(repeated)
        agrees = [model.labels_[task] == label for task, worker, label in ROWS if worker == "p1"]
        assert model.skills_["p1"] == np.mean(agrees)
        assert model.skills_.name == "skill"


def test_zero_based_skill_in_loops():
    model = crowdkit.ZeroBasedSkill(n_iter=7, lr_init=0.6, lr_steps_to_reduce=2, eps=0.1)
    model.fit(DATA)
    skill, rate = dict.fromkeys(["p1", "p2", "p3"], 0.5 + 0.1), 0.6
    for step in range(1, 8):
        rate *= 0.5 if step % 2 == 0 else 1.0
        votes = {}
        for task, worker, label in ROWS:
            votes.setdefault(task, [0.0, 0.0])[label] += skill[worker]
        for worker, old in list(skill.items()):
            own = [np.argmax(votes[task]) == label for task, w, label in ROWS if w == worker]
            skill[worker] = old + rate * (np.mean(own) - old)
    assert model.skills_.to_dict() == pytest.approx(skill)


def test_gold_decides_the_weights():
    gold = pd.Series({"t1": 0, "t2": 1})
    model = crowdkit.GoldMajorityVote()
    labels = model.fit_predict(DATA, gold)
    assert model.skills_.to_dict() == {"p1": 1.0, "p2": 0.5, "p3": 0.5}
    assert labels["t3"] == 1
    with pytest.raises(AnnotationError, match="no skill"):
        model.predict(DATA.assign(worker="unknown"))


class TestDawidSkene:
    def test_errors_are_indexed_by_worker_and_label(self):
        model = crowdkit.DawidSkene(n_iter=5).fit(DATA)
        assert model.errors_.index.names == ["worker", "label"]
        assert len(model.errors_) == 6
        sums = model.errors_.groupby("worker").sum()
        assert sums.to_numpy() == pytest.approx(np.ones((3, 2)))
        assert model.priors_.sum() == pytest.approx(1)
        assert model.priors_.name == "prior"
        assert len(model.loss_history_) <= 5

    def test_learns_from_truths(self):
        model = crowdkit.DawidSkene()
        assert model.fit_predict(DATA, true_labels=pd.Series({"t1": 1}))["t1"] == 1

    def test_counts_of_the_past_are_kept(self):
        index = pd.MultiIndex.from_product([["p3"], [0, 1]], names=["worker", "label"])
        liar = pd.DataFrame([[1, 99], [99, 1]], index=index, columns=[0, 1])
        model = crowdkit.DawidSkene(initial_error_strategy="addition")
        labels = model.fit_predict(DATA, initial_error=liar)
        assert model.errors_.loc[("p3", 1), 0] > 0.5  # says 1 where the truth is 0
        assert labels["t1"] == 0
        with pytest.raises(ParameterError, match="assign"):
            crowdkit.DawidSkene(initial_error_strategy="assign").fit(DATA, initial_error=liar)

    def test_history_has_the_axes_of_ours(self):
        index = pd.MultiIndex.from_product([["p2"], [0, 1]], names=["worker", "label"])
        past = pd.DataFrame([[30, 4], [10, 6]], index=index, columns=[0, 1])  # label x truth
        model = crowdkit.DawidSkene(initial_error_strategy="addition", tol=0, n_iter=3)
        found = model.fit(DATA, initial_error=past).probas_
        counts = np.zeros((3, 2, 2))
        counts[1] = [[30, 10], [4, 6]]  # truth x label
        history = aggregate.dawid_skene.WorkerHistory(
            np.array(["p1", "p2", "p3"], dtype=object), np.array([0, 1]), counts
        )
        ours = aggregate.DawidSkene(smoothing=1e-10, history=history, tol=0, max_iter=3)
        assert found.to_numpy() == pytest.approx(ours.fit(DATA).probas_.loc[found.index].to_numpy())

    def test_tasks_come_in_order_of_appearance(self):
        assert list(crowdkit.DawidSkene().fit_predict(DATA[::-1]).index)[:2] == ["t4", "t3"]


def test_priors_of_glad():
    model = crowdkit.GLAD(labels_priors=pd.Series({1: 0.9, 0: 0.1}), alphas_priors_mean=2.0)
    model.fit(DATA)
    assert model.priors_.to_dict() == pytest.approx({0: 0.1, 1: 0.9})
    assert model.alphas_.name == "alpha"
    assert model.betas_.index.name == "task"
    uneven = pd.Series({"p1": 1.0, "p2": 2.0})
    with pytest.raises(ParameterError, match="alphas_priors_mean"):
        crowdkit.GLAD(alphas_priors_mean=uneven).fit(DATA)


def test_mace_has_spammers():
    model = crowdkit.MACE(n_restarts=2, method="em").fit(DATA)
    assert model.spamming_.sum(axis=1) == pytest.approx(np.ones(3))
    assert model.spamming_[:, 1] == pytest.approx(
        aggregate.MACE(inference="em", n_restarts=2, max_iter=50, random_state=0)
        .fit(DATA).skills_.to_numpy()
    )  # fmt: skip
    assert model.thetas_.shape == (3, 2)


def test_mmsr_scores_are_sums():
    model = crowdkit.MMSR()
    scores = model.fit_predict_score(DATA)
    assert scores.loc["t1", 0] == pytest.approx(model.skills_["p1"] + model.skills_["p2"])


def test_mmsr_stops_without_a_warning():
    rough, fine = crowdkit.MMSR(n_iter=1).fit(DATA), crowdkit.MMSR().fit(DATA)
    assert not rough.skills_.equals(fine.skills_)


def test_no_data_is_no_error():
    model = crowdkit.DawidSkene().fit(DATA[:0])
    assert len(model.labels_) == 0
    assert model.probas_.empty


def test_other_columns_are_refused():
    with pytest.raises(AnnotationError, match="no column for the worker"):
        crowdkit.MajorityVote().fit(DATA.rename(columns={"worker": "performer"}))
