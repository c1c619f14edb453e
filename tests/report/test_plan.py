"""The section on progress: what a planner says of the labels."""

from dataclasses import replace

import numpy as np

from crowdwise.aggregate import IBCC
from crowdwise.plan import Planner
from crowdwise.report.facts import gather
from crowdwise.report.facts.plan import plan_facts
from crowdwise.report.page import to_html


def test_the_facts_are_those_of_the_planner(crowd):
    data, truth = crowd
    posterior = np.asarray(IBCC().fit(data).posterior_)
    facts = plan_facts(data, posterior, None, 0)
    planner = Planner(IBCC(), evenly=0.0).look(data)
    promise = planner.done()
    assert (facts.n_done, facts.checked) == (len(promise.tasks), False)
    np.testing.assert_allclose(facts.low, promise.low)
    assert [task.name for task in facts.contested][:3] == planner.spend(3)["task"].tolist()
    first = facts.contested[0]
    row = data.tasks.tolist().index(first.name)
    assert (first.n_labels, first.confidence) == (data.redundancy[row], posterior[row].max())
    assert facts.forecast[-1].n_labels == data.n_annotations
    assert facts.forecast[-1].accuracy > facts.forecast[0].accuracy
    assert plan_facts(data, posterior, truth.iloc[:-1], 0).checked
    assert plan_facts(data, posterior, truth, 0) == facts  # nothing is left to plan with them


def test_the_page_says_what_is_done_and_what_comes_next(crowd):
    data, _ = crowd
    facts = gather(data, methods=())
    page = to_html(facts)
    assert "Progress toward 95% right" in page
    assert facts.plan.contested[0].name in page
    assert "is based on the labels alone" in page
    assert "There are too few tasks to check it" in page
    plan = replace(facts.plan, n_done=99, checked=True, expected=0.97, low=0.951)
    shown = replace(facts, plan=plan)
    assert "at least 95%. Known truths confirm this" in to_html(shown)
    missed = replace(facts, plan=replace(facts.plan, checked=True, expected=np.nan, low=np.nan))
    assert "do not show that 95% of the labels of any others are right" in to_html(missed)
    assert "confirm" not in to_html(missed).split("Progress toward")[1][:800]
    many = replace(facts, plan=replace(facts.plan, n_needed=105))
    assert "The truths of 105 tasks drawn at random can check it" in to_html(many)
    assert plan_facts(data.filter(data.worker == 0), facts.workers.accuracy, None, 0) is None
