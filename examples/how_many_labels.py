"""How many labels per task are enough? It depends on who adds them up.

Twenty-five workers of very different quality give eight hundred tasks seven labels each. We keep
one, two, … seven of them, and see how many truths each method finds, and how sure it says it is.

python examples/how_many_labels.py FOLDER
"""

import sys
from pathlib import Path

from matplotlib.figure import Figure

from crowdwise.aggregate import IBCC, DawidSkene, MajorityVote
from crowdwise.simulate import simulate_crowd

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "demo")
folder.mkdir(exist_ok=True)

crowd = simulate_crowd(800, 25, 3, 7, accuracy=(0.4, 0.95), random_state=2)
methods = {"majority vote": MajorityVote(), "Dawid-Skene": DawidSkene(max_iter=500), "IBCC": IBCC()}
numbers = range(1, 8)
found = {name: [] for name in methods}
said = {name: [] for name in methods}
for number in numbers:
    votes = crowd.annotations.subsample(number, random_state=0)
    for name, method in methods.items():
        model = method.fit(votes)
        found[name].append(float((model.labels_ == crowd.truth).mean()))
        said[name].append(float(model.posterior_.max(axis=1).mean()))

print("labels per task " + "".join(f"{number:>7}" for number in numbers))
for name, shares in found.items():
    print(f"{name:>15} " + "".join(f"{share:>7.3f}" for share in shares))
assert found["IBCC"][-1] > found["majority vote"][-1]

figure = Figure(figsize=(8, 4), layout="constrained")
axes = figure.subplots(1, 2, sharey=True)
for name in methods:
    axes[0].plot(numbers, found[name], marker="o", label=name)
    axes[1].plot(said[name], found[name], marker="o", label=name)
axes[1].plot([0.3, 1], [0.3, 1], color="grey", linewidth=1, linestyle=":")
axes[0].set(xlabel="labels per task", ylabel="share of truths found", title="What labels buy")
axes[1].set(xlabel="mean confidence", title="Is it as sure as it should be?")
axes[0].legend()
figure.savefig(folder / "labels_per_task.png", dpi=110)
print(f"figure is in {folder}")
