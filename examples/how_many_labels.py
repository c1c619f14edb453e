"""How many labels per task are enough? It depends on the aggregator.

Twenty-five workers of very different accuracy give eight hundred tasks seven labels each. We
keep one to seven of them, and measure the accuracy and the confidence of each method.

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
accuracy = {name: [] for name in methods}
confidence = {name: [] for name in methods}
for number in numbers:
    votes = crowd.annotations.subsample(number, random_state=0)
    for name, method in methods.items():
        model = method.fit(votes)
        accuracy[name].append(float((model.labels_ == crowd.truth).mean()))
        confidence[name].append(float(model.posterior_.max(axis=1).mean()))

print("labels per task " + "".join(f"{number:>7}" for number in numbers))
for name, shares in accuracy.items():
    print(f"{name:>15} " + "".join(f"{share:>7.3f}" for share in shares))
assert accuracy["IBCC"][-1] > accuracy["majority vote"][-1]

figure = Figure(figsize=(8, 4), layout="constrained")
axes = figure.subplots(1, 2, sharey=True)
for name in methods:
    axes[0].plot(numbers, accuracy[name], marker="o", label=name)
    axes[1].plot(confidence[name], accuracy[name], marker="o", label=name)
axes[1].plot([0.3, 1], [0.3, 1], color="gray", linewidth=1, linestyle=":")
axes[0].set(xlabel="labels per task", ylabel="accuracy", title="Accuracy by number of labels")
axes[1].set(xlabel="mean confidence", title="Confidence and accuracy")
axes[0].legend()
figure.savefig(folder / "labels_per_task.png", dpi=110)
print(f"The figure is in {folder}.")
