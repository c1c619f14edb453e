"""Active overlap in a labeling tool: more labels for the tasks that are uncertain.

`crowdwise connect label-studio overlap` does this with a project of Label Studio, and `serve`,
its ML backend, after every annotation. Here a simulated crowd answers.
"""

import numpy as np
import pandas as pd

from crowdwise.aggregate import IBCC
from crowdwise.annotations import Annotations
from crowdwise.connect import Overlap
from crowdwise.plan import Planner
from crowdwise.simulate import OneCoinWorker, simulate_crowd

people = 12 * [OneCoinWorker((0.65, 0.95))]
crowd = simulate_crowd(300, n_classes=3, per_task=8, workers=people, random_state=0)
rows = crowd.annotations.to_frame().sample(frac=1, random_state=0)
rows["turn"] = rows.groupby("task").cumcount()  # who would be next to label each task
truth = np.asarray(crowd.truth)


def accuracy(labels):
    """The share of tasks whose label is right."""
    votes = Annotations.from_frame(labels[["task", "worker", "label"]], tasks=range(300))
    return float((IBCC().fit(votes).labels_.to_numpy() == truth).mean())


overlap = Overlap(Planner(IBCC(), target=0.95), max_labels=8, ahead=60)
given = rows[rows["turn"] < 2]
print(f"{len(given):>5} labels, two for each task: {accuracy(given):.1%} right")
for _ in range(12):
    wanted, _ = overlap.plan(Annotations.from_frame(given[["task", "worker", "label"]]))
    count = given.groupby("task").size()
    is_next = rows["turn"] == rows["task"].map(count)
    more = rows[is_next & rows["task"].map(wanted).fillna(False)]
    if not len(more):
        break
    given = pd.concat([given, more])
print(f"{len(given):>5} labels, more where in doubt: {accuracy(given):.1%} right")
for each in (3, 4, 5):
    equal = rows[rows["turn"] < each]
    print(f"{len(equal):>5} labels, {each} for each task: {accuracy(equal):.1%} right")
