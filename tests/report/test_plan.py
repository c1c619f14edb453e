"""The section on progress: what a planner says of the labels."""

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
    assert plan_facts(data.filter(data.worker == 0), facts.workers.accuracy, None, 0) is None
