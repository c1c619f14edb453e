"""One label per task is enough for a good classifier if tasks have features.

A thousand handwritten digits, each labeled once by one of six workers of different accuracy.
Aggregation cannot help with a single label. A learner uses the similarity of images, and learns
both the digits and the reliability of workers; workers get a larger learning rate, or they
would be trusted for too long. The figures show the training curve, and the learned confusion
matrices next to those counted with the truth.

python examples/features_help.py FOLDER
"""

import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from crowdwise.aggregate import MajorityVote
from crowdwise.learn import MLP, SpeeLFC, Training, TwoStage
from crowdwise.plot import plot_confusions, plot_training
from crowdwise.simulate import label_by_crowd, one_coin_confusion

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "demo")
folder.mkdir(exist_ok=True)

X, digit = load_digits(return_X_y=True)
order = np.random.default_rng(0).permutation(len(X))
X, truth = X[order] / 16, digit[order] % 5  # five classes, two digits each
workers = one_coin_confusion([0.95, 0.9, 0.7, 0.5, 0.3, 0.2], 5)
votes = label_by_crowd(truth, workers, per_task=1, random_state=0)
train, test = slice(0, 1000), slice(1000, None)

plain = TwoStage(MajorityVote(), LogisticRegression(max_iter=2000)).fit(X[train], votes[train])
rates = {"truth": 3e-3, "noise": 5e-2}
training = Training(learning_rate=rates, batch_size=128, epochs=30)
ours = SpeeLFC(truth=MLP((64,), dropout=0.3), scale=False, training=training, random_state=0)
ours.fit(X[train], votes[train])

labels = votes[train].shares().argmax(axis=1)
print(f"correct labels:                  {(labels == truth[train]).mean():.3f}")
print(f"majority, then classifier:       {plain.score(X[test], truth[test]):.3f}")
print(f"classifier and workers together: {ours.score(X[test], truth[test]):.3f}")
print(ours.worker_accuracy_.round(2).to_dict())
assert ours.score(X[test], truth[test]) > plain.score(X[test], truth[test])

known = dict(enumerate(truth))
plot_training(ours).figure.savefig(folder / "training.png", dpi=110, bbox_inches="tight")
matrices = plot_confusions(ours, votes[train], known)[0, 0].figure
matrices.savefig(folder / "confusion_matrices.png", dpi=110, bbox_inches="tight")
print(f"The figures are in {folder}.")
