"""Spammers in a crowd: how to find them without truth, and what they cost.

Twelve workers label five hundred tasks of four classes. Three answer at random and one always
gives the same label. The figures show each worker's estimated confusion matrix next to the true
one, a map of the workers, and the calibration of the model's confidence.

python examples/spammers.py FOLDER
"""

import sys
from pathlib import Path

from crowdwise.aggregate import DawidSkene, MajorityVote
from crowdwise.evaluate import worker_quality
from crowdwise.plot import plot_calibration, plot_confusions, plot_worker_map
from crowdwise.simulate import OneCoinWorker, Spammer, simulate_crowd

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "demo")
folder.mkdir(exist_ok=True)

workers = 8 * [OneCoinWorker((0.6, 0.95))] + 3 * [Spammer("random")] + [Spammer("one label")]
crowd = simulate_crowd(500, n_classes=4, per_task=5, workers=workers, random_state=0)
votes, truth = crowd.annotations, dict(enumerate(crowd.truth))

# Who answers without looking? The labels alone show it.
quality = worker_quality(votes)
for worker, row in quality.iterrows():
    flag = row["flag"] or "no flag"
    print(f"worker {worker:>2}  skill {row['skill']:5.2f}  {flag}  (is: {crowd.kinds[worker]})")
flagged = quality.index[quality["flag"] != ""]
assert {crowd.kinds[worker] for worker in flagged} <= {"spammer"}

# What do they cost? Majority vote counts them; Dawid-Skene does not.
models = {"majority vote": MajorityVote().fit(votes), "Dawid-Skene": DawidSkene().fit(votes)}
for name, model in models.items():
    print(f"{name:>13}: {(model.labels_ == crowd.truth).mean():.3f} correct")
assert (models["Dawid-Skene"].labels_ == crowd.truth).mean() > 0.9

figures = {
    "confusion matrices": plot_confusions(models["Dawid-Skene"], votes, truth)[0, 0],
    "map of workers": plot_worker_map(models["Dawid-Skene"]),
    "calibration": plot_calibration(models["Dawid-Skene"], truth),
}
for name, axes in figures.items():
    axes.figure.savefig(folder / f"{name.replace(' ', '_')}.png", dpi=110, bbox_inches="tight")
print(f"The figures are in {folder}.")
