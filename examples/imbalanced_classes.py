"""A rare class: which methods find it, and at what cost."""

import numpy as np

from crowdwise.aggregate import DawidSkene, HardDawidSkene, MajorityVote
from crowdwise.evaluate import balanced_accuracy, class_recall, rebalance
from crowdwise.learn import ICED
from crowdwise.simulate import label_by_crowd

rng = np.random.default_rng(0)
truth = (np.arange(660) < 60).astype(int)  # one task in eleven
X = rng.normal(size=(660, 8)) + 1.2 * truth[:, None]
right = rng.uniform(0.5, 0.85, (7, 2))[:, :, None]
confusion = np.where(np.eye(2, dtype=bool), right, 1 - right)
votes = label_by_crowd(truth, confusion, per_task=5, random_state=0)

found = {}
for method in (MajorityVote(), HardDawidSkene(), DawidSkene()):
    found[type(method).__name__] = method.fit(votes).posterior_
found["DawidSkene, rebalanced"] = rebalance(method.posterior_, method.prior_)
found["ICED, as published"] = (
    ICED.recipe("paper", rounds=10, random_state=0).fit(X, votes).posterior_
)
model = ICED.recipe("network", rounds=10, random_state=0).fit(X, votes)
found["ICED, network prior"] = model.posterior_

print(f"{'method':<24} {'accuracy':>9} {'balanced':>9} {'rare recall':>12}")
for name, posterior in found.items():
    accuracy = (posterior.argmax(axis=1) == truth).mean()
    balanced, rare = balanced_accuracy(posterior, truth), class_recall(posterior, truth)[1]
    print(f"{name:<24} {accuracy:>9.3f} {balanced:>9.3f} {rare:>12.3f}")
print(f"\nNew tasks of the rare class in the first round: {model.n_new_[0, 1]}")
