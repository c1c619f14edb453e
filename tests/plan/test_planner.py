"""What to label next, by whom, and what is done."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.special import entr
from sklearn.base import clone

from crowdwise import Annotations
from crowdwise.aggregate import IBCC, BayesBag, DawidSkene, OneCoin
from crowdwise.errors import AnnotationError, ParameterError
from crowdwise.plan import (
    AccuracyGain,
    FewestLabels,
    InformationGain,
    LeastConfident,
    Outlook,
    Planner,
    Policy,
    PredictedSkills,
    RandomTasks,
    Skills,
)
from crowdwise.plan.assign import Pairings, value_pairs
from crowdwise.simulate import confused_crowd, one_coin_confusion, replay


@pytest.fixture(scope="module")
def crowd():
    """Five good workers, three poor ones; four labels a task of three classes."""
    return confused_crowd(
        one_coin_confusion([0.9] * 5 + [0.45] * 3, 3), n_tasks=150, per_task=4, random_state=0
    )


@pytest.fixture
def outlook():
    posterior = np.array([[0.6, 0.3, 0.1], [0.9, 0.05, 0.05], [1 / 3, 1 / 3, 1 / 3]])
    return Outlook(
        Annotations.from_matrix([[0, 1, 2, 0], [0, 0, -1, -1], [1, 2, -1, -1]]), posterior
    )


def test_gains_equal_the_plain_loops(outlook):
    accuracy, information = AccuracyGain().gain(outlook), InformationGain().gain(outlook)
    for task, now in enumerate(outlook.posterior):
        right, doubt = 0.0, 0.0
        for label in range(3):
            joint = now * outlook.crowd[:, label]
            after = joint / joint.sum()
            right += joint.sum() * after.max()
            doubt += joint.sum() * entr(after).sum()
        new = 1 / (1 + 0.1 * (outlook.n_labels[task] - 1)) ** 2
        assert_allclose(accuracy[task], new * (right - now.max()), atol=1e-12)
        assert_allclose(information[task], new * (entr(now).sum() - doubt), atol=1e-12)


def test_plain_policies_order_tasks(outlook):
    assert FewestLabels().gain(outlook).argmin() == 0
    assert LeastConfident().gain(outlook).argsort().tolist() == [1, 0, 2]
    draws = [RandomTasks(seed).gain(outlook) for seed in (0, 0, 1)]
    assert_allclose(draws[0], draws[1])
    assert not np.allclose(draws[0], draws[2])


def test_a_worker_who_knows_more_brings_more(outlook):
    confusion = one_coin_confusion([0.9, 0.5, 1 / 3], 3)
    for policy in (AccuracyGain(), InformationGain()):
        by = np.stack([policy.gain_by(outlook.posterior, one[None]) for one in confusion], axis=1)
        assert (by[:, 0] > by[:, 1]).all()
        assert_allclose(by[:, 2], 0, atol=1e-12)


def test_a_label_brings_less_the_more_there_are():
    """Labels of a task share errors: a doubt that many labels leave will hardly go away."""
    matrix = np.full((2, 12), -1)
    matrix[0, :10], matrix[1, :2] = [0, 1] * 5, [0, 1]
    outlook = Outlook(Annotations.from_matrix(matrix), np.full((2, 2), 0.5))

    class Alike(Skills):
        def of(self, outlook, workers):
            return lambda _, row: (outlook.confusion(workers)[row], np.ones(len(row)))

    for policy in (InformationGain(), AccuracyGain()):
        many, few = policy.gain(outlook)
        assert_allclose(many / few, (1.1 / 1.9) ** 2)
        pairs = Pairings(np.array([0, 1]), np.array([0, 0]))
        many, few = value_pairs(outlook, policy, Alike(), pairs, np.array([10]))
        assert_allclose(many / few, (1.1 / 1.9) ** 2)


def test_workers_who_are_hardly_known_are_tried():
    """Their skill is drawn from what is possible, by the labels alone."""
    crowd = confused_crowd(one_coin_confusion([0.7] * 6, 2), 200, 4, random_state=0)
    rows, asked = crowd.annotations.to_frame(), set()
    workers = [*range(6), *(f"new {i}" for i in range(6))]
    for n in range(790, 800):
        plan = Planner(IBCC(), target=1.0).next(rows[:n], 2, available=workers)
        asked |= {str(worker)[:3] for worker in plan["worker"]}
        again = Planner(IBCC(), target=1.0).next(rows[:n], 2, available=workers)
        pd.testing.assert_frame_equal(plan, again)
    assert "new" in asked


def test_every_task_gets_two_labels_first():
    votes = Annotations.from_matrix([[0, 0, 1], [0, -1, -1], [1, 0, 1], [1, 1, 1]])
    for min_labels, task in ((2, 1), (1, 2)):
        planner = Planner(IBCC(), policy=RandomTasks(2), min_labels=min_labels, target=1.0)
        assert planner.next(votes, 1)["task"].tolist() == [task]


def test_the_plan_keeps_to_budget_tasks_and_workers(crowd):
    votes = crowd.annotations
    costs = {worker: 1.0 + worker for worker in range(8)}
    planner = Planner(IBCC(), cost=costs, target=1.0)
    plan = planner.next(votes, 40, available=[0, 1, 6])
    assert plan["cost"].sum() <= 40
    assert plan["task"].is_unique
    assert plan["cost"].tolist() == [costs[worker] for worker in plan["worker"]]
    taken = set(zip(votes.task, votes.worker, strict=True))
    assert not taken & set(zip(plan["task"], plan["worker"], strict=True))
    some = planner.next(votes, 9, tasks=[3, 5])
    assert set(some["task"]) == {3, 5}


def test_the_default_asks_where_two_models_of_independent_workers_would(crowd):
    """Its own posterior is tempered: what one label has said cannot be taken out of it."""
    votes, workers = crowd.annotations, list(range(8))
    planner = Planner(target=1.0)
    plan = planner.next(votes, 30, available=workers)
    models = (BayesBag.default_base, OneCoin(smoothing=(4, 1), max_iter=40, tol=1e-4))
    mean = sum(clone(model).fit(votes).posterior_ for model in models) / 2
    assert_allclose(planner.outlook_.independent, mean)
    pd.testing.assert_frame_equal(
        plan, Planner(target=1.0).take(votes, mean).spend(30, available=workers)
    )
    assert not np.allclose(planner.outlook_.posterior, mean, atol=0.01)


def test_good_workers_are_asked_first_and_nobody_for_everything(crowd):
    plan = Planner(IBCC(), target=1.0).next(crowd.annotations, 60, available=range(8))
    times = plan["worker"].value_counts().reindex(range(8), fill_value=0)
    assert times.max() <= 15
    assert times[:5].sum() > 50


def test_only_pairs_that_are_offered_are_asked_for(crowd):
    votes = crowd.annotations
    pairs = pd.DataFrame({"task": [0, 0, 1, 2, "none"], "worker": [7, 0, 6, 5, 1]})
    plan = Planner(IBCC(), target=1.0).next(votes, 2, available=pairs)
    assert len(plan) == 2
    assert set(map(tuple, plan[["task", "worker"]].to_numpy())) < {(0, 7), (0, 0), (1, 6), (2, 5)}
    everything = Planner(IBCC(), target=1.0).next(votes, 9, available=pairs)
    assert (0, 0) in set(map(tuple, everything[["task", "worker"]].to_numpy()))  # the better one
    assert sorted(everything["task"]) == [0, 1, 2]


def test_a_cheap_judge_is_asked_before_people(crowd):
    costs = {0: 1.0, 1: 1.0, "judge": 0.05}
    plan = Planner(IBCC(), cost=costs, target=1.0).next(crowd.annotations, 2, available=costs)
    assert (plan["worker"] == "judge").sum() > 15
    assert plan["cost"].sum() <= 2


def test_a_learner_may_say_who_is_good_at_what(crowd):
    class Told:
        """Worker 6 knows all about even tasks, the others nothing."""

        workers_ = np.arange(8)
        response_ = True

        def predict_worker_accuracy(self, X, workers):
            return np.where((np.asarray(workers) == 6) & (X % 2 == 0), 0.99, 1 / 3)

        def predict_response(self, X, workers):
            return np.ones((len(X), len(workers))) * self.answers(np.asarray(workers))

        def answers(self, workers):
            return np.ones(len(workers))

    X = np.arange(150)[:, None]
    planner = Planner(IBCC(), target=1.0, skills=PredictedSkills(Told(), X))
    plan = planner.next(crowd.annotations, 10, available=[5, 6, "new"])
    chosen = plan[plan["worker"] == 6]
    assert len(chosen)
    assert (chosen["task"] % 2 == 0).all()
    assert not (plan["worker"] == 5).any()
    Told.answers = lambda _, workers: (workers != 6).astype(float)
    plan = planner.next(crowd.annotations, 10, available=[5, 6, "new"])
    assert not (plan["worker"] == 6).any()
    with pytest.raises(AnnotationError, match="X has 149 rows, but there are 150 tasks"):
        planner.set_params(skills=PredictedSkills(Told(), X[1:])).next(
            crowd.annotations, 5, available=[5]
        )


def test_large_plans_compare_some_of_the_pairs(crowd, monkeypatch):
    monkeypatch.setattr("crowdwise.plan.assign.MOST_PAIRS", 500)
    plan = Planner(IBCC(), target=1.0).next(crowd.annotations, 100, available=range(8, 60))
    assert len(plan) == 100
    assert plan["task"].is_unique
    assert plan["worker"].value_counts().max() <= 4


def test_unknown_workers_count_as_the_crowd(crowd):
    plan = Planner(IBCC(), target=1.0).next(crowd.annotations, 5, available=["new"])
    assert plan["worker"].tolist() == ["new"] * 5


def test_a_part_of_the_budget_goes_to_the_fewest_labels():
    class Most(Policy):
        """The tasks with most labels."""

        def gain(self, outlook):
            return outlook.n_labels.astype(float)

    matrix = np.full((40, 5), -1)
    matrix[:, :2], matrix[:10] = 0, [0, 1, 0, 1, 0]  # five labels of ten tasks, two of the others
    votes = Annotations.from_matrix(matrix)
    for available in (None, [f"new {i}" for i in range(5)]):
        for evenly, many in ((0.0, 10), (0.5, 5), (1.0, 0)):
            planner = Planner(IBCC(), policy=Most(), target=1.0, evenly=evenly)
            plan = planner.next(votes, 10, available=available)
            assert (len(plan), plan["task"].nunique()) == (10, 10)
            assert (plan["task"] < 10).sum() == many


def test_checks_go_to_known_tasks(crowd):
    gold = pd.Series(crowd.truth).iloc[:10]
    planner = Planner(IBCC(), target=1.0, checks=0.3)
    plan = planner.next(crowd.annotations, 20, gold=gold)
    assert plan["task"].isin(gold.index).sum() == 6
    assert len(planner.next(crowd.annotations, 20)) == 20


def test_labels_alone_lead_to_expect_and_promise_nothing(crowd):
    planner = Planner(target=0.9).look(crowd.annotations)
    promise = planner.done()
    labels = pd.Series(planner.outlook_.posterior.argmax(axis=1))[promise.tasks.index]
    truth = pd.Series(crowd.truth)[promise.tasks.index]
    assert len(promise.tasks) > 40
    assert promise.accuracy >= 0.9
    assert np.isnan([promise.low, promise.high]).all()
    assert not promise.checked
    assert (labels.to_numpy() == truth.to_numpy()).mean() >= 0.9
    left = planner.next(crowd.annotations, 1000)["task"]
    assert not set(left) & set(promise.tasks.index)


def test_single_labels_promise_nothing(crowd):
    votes = crowd.annotations.subsample(1, random_state=0)
    assert len(Planner(DawidSkene()).look(votes).done().tasks) == 0


def test_known_truths_show_where_the_crowd_is_wrong():
    """All workers err on the same half of the tasks: only gold can tell."""
    truth = np.zeros(200, dtype=int)
    label = np.where(np.arange(200) % 2 == 0, truth, 1)
    votes = Annotations.from_matrix(np.tile(label[:, None], (1, 5)))
    blind, told = Planner(IBCC(), target=0.9), Planner(IBCC(), target=0.9)
    assert len(blind.look(votes).done().tasks) == 200
    promise = told.look(votes, gold=dict.fromkeys(range(50), 0)).done()
    assert promise.tasks.index.tolist() == list(range(50))  # those that are known
    assert promise.checked
    assert np.isnan(promise.low)


def test_known_truths_back_a_promise(crowd):
    gold = pd.Series(crowd.truth).iloc[:60]
    promise = Planner(target=0.85).look(crowd.annotations, gold=gold).done()
    assert promise.n_gold >= 29
    assert 0.85 <= promise.low <= promise.accuracy <= promise.high <= 1
    assert set(gold.index) <= set(promise.tasks.index)
    assert (promise.tasks[gold.index] == 1.0).all()


def test_more_labels_are_forecast_to_help(crowd):
    planner = Planner(IBCC()).look(crowd.annotations.subsample(2, random_state=0))
    future = planner.forecast(300)
    assert future["cost"].iloc[[0, -1]].tolist() == [0, 300]
    assert future["accuracy"].iloc[-1] > future["accuracy"].iloc[0] + 0.05
    assert (future["low"] <= future["accuracy"]).all()
    assert_allclose(planner.forecast(300), future)


def test_a_large_budget_is_forecast_in_full():
    votes = confused_crowd(one_coin_confusion([0.7] * 8, 2), 100, 4, random_state=1).annotations
    planner = Planner(IBCC()).look(votes)
    many, few = planner.forecast(5_000), planner.forecast(500)
    assert many["cost"].iloc[-1] == 5_000
    first, same, most = (table["accuracy"] for table in (few.iloc[0], few.iloc[-1], many.iloc[-1]))
    assert first + 0.03 < same < 0.98
    assert most > 0.97
    assert abs(many["accuracy"].iloc[1] - same) < 0.05  # also by 500 labels
    with pytest.raises(ParameterError, match=r"2,000,000 labels of 100 tasks"):
        planner.forecast(2e6)


def test_nobody_is_asked_for_a_label_again(crowd):
    votes = crowd.annotations
    pairs = pd.DataFrame(
        [(task, worker) for task in votes.tasks for worker in votes.workers],
        columns=["task", "worker"],
    )
    plan = Planner(IBCC(), target=1.0).next(votes, 150, available=pairs)
    assert len(plan) == votes.n_tasks
    before = set(zip(votes.tasks[votes.task], votes.workers[votes.worker], strict=True))
    assert not before & set(zip(plan["task"], plan["worker"], strict=True))


def test_free_labels_are_asked_for_once_per_task(crowd):
    plan = Planner(IBCC(), cost=0.0, target=1.0).next(crowd.annotations, 10)
    assert len(plan) == plan["task"].nunique() == crowd.annotations.n_tasks
    assert (plan["cost"] == 0).all()


@pytest.mark.parametrize("budget", [-1, np.nan, np.inf, "10", None])
def test_what_is_not_an_amount_is_refused(crowd, budget):
    planner = Planner(IBCC()).look(crowd.annotations)
    for spend in (planner.spend, planner.forecast):
        with pytest.raises(ParameterError, match=r"budget is .*\n.*finite number of 0 or more"):
            spend(budget)


@pytest.mark.parametrize("price", [-1, np.nan, np.inf, "1", None])
def test_what_is_not_a_price_is_refused(crowd, price):
    planner = Planner(IBCC(), cost={0: price, 1: 1.0}).look(crowd.annotations)
    for available in (None, [0, 1]):
        with pytest.raises(ParameterError, match="cost of a label by 0 is"):
            planner.spend(5, available=available)
    with pytest.raises(ParameterError, match="names no worker"):
        planner.set_params(cost={}).spend(5)


def test_what_is_not_a_list_of_workers_is_refused(crowd):
    planner = Planner(IBCC()).look(crowd.annotations)
    for available in ("abc", 5, [None], [[0, 1]]):
        with pytest.raises((AnnotationError, ParameterError), match="list of names"):
            planner.spend(5, available=available)
    with pytest.raises(ParameterError, match="no column 'worker'"):
        planner.spend(5, available=pd.DataFrame({"task": [0]}))
    twice, once = (planner.spend(5, available=names) for names in ([0, 0], [0]))
    pd.testing.assert_frame_equal(twice, once)


def test_what_cannot_be_planned_is_refused(crowd):
    with pytest.raises(ParameterError, match="no tasks, or no classes"):
        Planner().look({})
    for bad in (np.ones((3, 3)), np.full((150, 3), np.nan)):
        with pytest.raises(ParameterError, match=r"finite numbers in the shape \(150, 3\)"):
            Planner().take(crowd.annotations, bad)
    skills = PredictedSkills(IBCC(), np.arange(150)[:, None])
    with pytest.raises(ParameterError, match="IBCC does not predict who is good at what"):
        Planner(IBCC(), skills=skills).next(crowd.annotations, 5, available=[0])


def test_what_is_missing_is_reported(crowd):
    with pytest.raises(ParameterError, match="has not seen any labels"):
        Planner().done()
    with pytest.raises(ParameterError, match="no cost for the worker 3"):
        Planner(IBCC(), cost={1: 2.0}).next(crowd.annotations, 5, available=[1, 3])
    with pytest.raises(ValueError, match="'target' parameter of Planner"):
        Planner(target=2.0).look(crowd.annotations)


def test_replay_buys_every_label_once(crowd):
    course = replay(crowd.annotations, crowd.truth, Planner(IBCC(), target=1.0), batch=0.5)
    assert course["labels"].iloc[[0, -1]].tolist() == [150, 600]
    whole = IBCC().fit(crowd.annotations)
    right = whole.label_codes_ == np.asarray(crowd.truth)
    assert_allclose(course["accuracy"].iloc[-1], right.mean())


def test_replay_gives_the_labels_that_were_asked_for(crowd):
    """A planner that only ever asks workers who are good ends with their labels."""

    class GoodOnes(Planner):
        def next(self, annotations, budget, *, available, **others):
            good = available[available["worker"] < 5]
            return super().next(annotations, budget, available=good, **others)

    planner = GoodOnes(IBCC(), target=1.0)
    replay(crowd.annotations, crowd.truth, planner, batch=0.5)
    seen, votes = planner.outlook_.votes, crowd.annotations
    by = np.bincount(votes.workers[votes.worker].astype(int), minlength=8)
    got = np.bincount(seen.workers[seen.worker].astype(int), minlength=8)
    assert (got[:5] == by[:5]).all()
    assert got[5:].sum() < 0.6 * by[5:].sum()  # the first labels of tasks


def test_replay_stops_when_all_is_done(crowd):
    easy = Planner(IBCC(), target=0.6)
    course = replay(crowd.annotations, crowd.truth, easy, batch=0.5, stop=True)
    assert course["labels"].iloc[-1] < 600
    assert course["done"].iloc[-1] == 150


def test_choosing_tasks_beats_labeling_all_alike(crowd):
    """The same number of labels, better spent."""
    chosen, alike = (
        replay(crowd.annotations, crowd.truth, Planner(IBCC(), policy=policy, target=1.0))
        for policy in (InformationGain(), FewestLabels())
    )
    grid = np.arange(330, 500, 15)
    at = [np.interp(grid, course["labels"], course["accuracy"]) for course in (chosen, alike)]
    assert at[0].mean() > at[1].mean() + 0.005


def test_a_pilot_has_all_its_labels_from_the_start(crowd):
    pilot, others = crowd.annotations.tasks[:40], dict(enumerate(crowd.truth.tolist()))
    others = {task: others[task] for task in range(40, 150)}
    planner = Planner(IBCC(), target=1.0)
    course = replay(crowd.annotations, others, planner, batch=0.5, labeled=pilot)
    assert course["labels"].iloc[[0, -1]].tolist() == [4 * 40 + 110, 600]
    whole = IBCC().fit(crowd.annotations)
    right = whole.label_codes_[40:] == np.asarray(crowd.truth)[40:]
    assert_allclose(course["accuracy"].iloc[-1], right.mean())
