"""What methods believe, how they compare, and what more labels would do."""

import math

import numpy as np
import pandas as pd
import pytest

from crowdwise.aggregate import DawidSkene, MajorityVote
from crowdwise.annotations import Annotations
from crowdwise.errors import ParameterError
from crowdwise.evaluate.held_out_labels import choose_held_out, fit_to_rest, score_held_out
from crowdwise.report.facts import curve as curve_module
from crowdwise.report.facts.classes import class_facts, mistakes_of
from crowdwise.report.facts.curve import curve_facts, forecast, try_fewer_labels
from crowdwise.report.facts.limits import sample_tasks
from crowdwise.report.facts.methods import HIDDEN, fit_methods, held_out_facts, method_facts
from crowdwise.simulate import confused_crowd, one_coin_confusion


class TestMethods:
    def test_shares_and_confidence_are_means_over_labeled_tasks(self, crowd):
        data, truth = crowd
        fits, main = fit_methods(data, "DawidSkene", ("MajorityVote", "DawidSkene"), 0)
        found, note = method_facts(data, fits, main, truth, 0)
        assert [one.name for one in found] == ["MajorityVote", "DawidSkene"]
        assert [one.main for one in found] == [False, True]
        labeled = data.redundancy > 0
        vote = MajorityVote().fit(data).posterior_[labeled]
        assert found[0].shares == pytest.approx(vote.mean(axis=0))
        assert found[0].confidence == pytest.approx(vote.max(axis=1).mean())
        assert found[1].same == 1
        assert note == ""
        best = DawidSkene().fit(data)
        known = truth[best.labels_.index]
        assert found[1].scores["accuracy"].value == pytest.approx((best.labels_ == known).mean())
        assert set(found[1].scores) >= {"balanced accuracy", "minority recall", "macro F1"}

    def test_the_main_method_is_there_even_if_it_is_not_listed(self, crowd):
        fits, main = fit_methods(crowd[0], DawidSkene(max_iter=3, tol=0), ("MajorityVote",), 0)
        assert [fit.name for fit in fits] == ["MajorityVote", "DawidSkene"]
        assert main.model.n_iter_ == 3
        assert not main.converged or main.model.tol == 0

    def test_a_method_that_refuses_the_data_is_left_out(self, crowd):
        fits, _ = fit_methods(crowd[0], "DawidSkene", ("KOS", "MajorityVote"), 0)
        assert [fit.name for fit in fits] == ["MajorityVote", "DawidSkene"]

    def test_a_method_that_is_none_is_refused(self, crowd):
        with pytest.raises(ParameterError, match="no method 'Nonsense'"):
            fit_methods(crowd[0], "Nonsense", (), 0)
        with pytest.raises(ParameterError, match="max_iter"):
            fit_methods(crowd[0], DawidSkene(max_iter=-1), (), 0)


class TestHeldOut:
    def test_probabilities_are_geometric_means_of_hidden_labels(self, crowd):
        data, _ = crowd
        models = {"MajorityVote": MajorityVote(), "DawidSkene": DawidSkene()}
        found, _ = held_out_facts(data, models, 0)
        hidden = choose_held_out(data.nonempty(), HIDDEN, 0)
        typical = {}
        for name, model in models.items():
            posterior = fit_to_rest(model, data.nonempty(), None, hidden)
            logs = score_held_out(posterior, data.nonempty(), hidden)
            typical[name] = math.prod(math.exp(one) for one in logs) ** (1 / len(logs))
            assert found[name].probability.value == pytest.approx(typical[name])
            assert found[name].probability.low < typical[name] < found[name].probability.high
        best = max(typical, key=typical.get)
        assert found[best].behind == 0
        other = min(typical, key=typical.get)
        assert found[other].behind == pytest.approx(typical[best] - typical[other])

    def test_too_few_labels_say_nothing(self):
        data = Annotations.from_codes([0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 1])
        assert held_out_facts(data, {"MajorityVote": MajorityVote()}, 0) == ({}, "")

    def test_large_data_are_sampled_whole_tasks_at_a_time(self, crowd):
        data, _ = crowd
        part, note = sample_tasks(data, 200, 0)
        assert abs(part.n_annotations - 200) < 20
        whole = dict(zip(data.tasks.tolist(), data.redundancy.tolist(), strict=True))
        assert all(
            whole[task] == n for task, n in zip(part.tasks, part.redundancy.tolist(), strict=True)
        )
        assert (
            note == f"From {part.n_tasks:,} of {data.nonempty().n_tasks:,} tasks, drawn at random."
        )
        assert sample_tasks(data, 10**6, 0)[1] == ""


class TestClasses:
    def test_shares_and_confusion_match_plain_loops(self, crowd, posterior):
        data, truth = crowd
        found = class_facts(data, posterior, truth)
        given, confusion = np.zeros(3), np.zeros((3, 3))
        for task, label in zip(data.task, data.label, strict=True):
            given[label] += 1 / data.n_annotations
            confusion[:, label] += posterior[task]
        assert found.given == pytest.approx(given)
        assert found.confusion == pytest.approx(confusion)
        expected = [(truth == name).mean() for name in data.classes]
        assert found.true == pytest.approx(expected)
        assert found.inferred == pytest.approx(posterior[data.redundancy > 0].mean(axis=0))

    def test_the_worst_mistake_comes_first(self):
        confusion = np.array([[60.0, 30.0, 10.0], [5.0, 45.0, 0.0], [0.2, 0.1, 0.0]])
        found = mistakes_of(confusion, ["a", "b", "c"])
        assert [(one.truth, one.label) for one in found] == [("a", "b"), ("a", "c"), ("b", "a")]
        assert found[0].share == 0.3  # a class with less than one label says nothing


@pytest.fixture(scope="module")
def coins():
    """Workers who are right 7 times of 10, two classes: what to expect can be computed."""
    confusion = one_coin_confusion([0.7] * 9, 2)
    return confused_crowd(confusion, 1500, 5, prior=[0.5, 0.5], random_state=0)


class TestCurve:
    def test_the_forecast_is_the_binomial_one(self, coins):
        posterior = np.eye(2)[coins.truth]
        found = forecast(coins.annotations, posterior, [1, 3, 5], 0).mean(axis=1)
        expected = []
        for n in (1, 3, 5):
            chances = [math.comb(n, k) * 0.7**k * 0.3 ** (n - k) for k in range(n + 1)]
            expected.append(sum(chances[(n + 1) // 2 :]))
        assert found == pytest.approx(expected, abs=0.025)

    def test_busy_workers_weigh_more_in_the_forecast(self):
        rng = np.random.RandomState(4)
        truth = rng.randint(0, 2, 400)
        task = np.concatenate([np.arange(400), np.repeat(np.arange(40), 3)])
        worker = np.concatenate([np.arange(400) % 10, 10 + np.arange(120) % 30])
        luck = np.where(worker < 10, 0.95, 0.5)  # ten good ones do ten times as much each
        label = np.where(rng.random_sample(520) < luck, truth[task], 1 - truth[task])
        data = Annotations.from_codes(task, worker, label)
        found = forecast(data, np.eye(2)[truth], [1], 0)
        busy = 400 / 520 * 0.95 + 120 / 520 * 0.5
        by_head = 10 / 40 * 0.95 + 30 / 40 * 0.5
        assert found.mean() == pytest.approx(busy, abs=0.06)
        assert found.mean() > by_head + 0.15

    def test_fewer_labels_are_measured_on_the_data_themselves(self, coins):
        data = coins.annotations
        truth = pd.Series(coins.truth, index=data.tasks)
        model = MajorityVote()
        whole = model.fit(data).posterior_
        # Another seed than the crowd's own: with the same one, the draws are not independent.
        kept, right = try_fewer_labels(data, MajorityVote(), whole, 1, truth, 7)
        assert right == pytest.approx(0.7, abs=0.03)
        assert 0.7 < kept < 0.85
        assert try_fewer_labels(data, MajorityVote(), whole, 5, truth, 0)[0] == 1
        assert np.isnan(try_fewer_labels(data, MajorityVote(), whole, 1, None, 0)[1])

    def test_points_go_from_one_label_to_twice_as_many(self, coins):
        found = curve_facts(coins.annotations, DawidSkene().fit(coins.annotations), None, 0)
        assert found.now == 5
        assert [point.n_labels for point in found.points] == [1, 2, 3, 4, 5, 6, 8, 10]
        for point in found.points:
            assert point.low <= point.forecast <= point.high
            assert np.isfinite(point.kept) == (point.n_labels < 5)
            assert np.isnan(point.measured)
        forecasts = [point.forecast for point in found.points]
        assert forecasts[-1] > forecasts[4] > forecasts[0]

    def test_truths_outside_the_sample_do_no_harm(self, crowd, monkeypatch):
        data, truth = crowd
        monkeypatch.setattr(curve_module, "MOST_ANNOTATIONS", 60)
        part, _ = sample_tasks(data, 60, 0)
        outside = truth[~truth.index.isin(part.tasks)].iloc[:3]
        found = curve_facts(data, DawidSkene().fit(data), outside, 0)
        assert found.note.startswith("From ")
        assert all(np.isnan(point.measured) for point in found.points)

    def test_one_class_or_one_worker_has_no_curve(self):
        one = Annotations.from_codes([0, 1], [0, 1], [0, 0])
        assert curve_facts(one, MajorityVote().fit(one), None, 0) is None
        alone = Annotations.from_codes([0, 1], [0, 0], [0, 1])
        assert curve_facts(alone, MajorityVote().fit(alone), None, 0) is None
