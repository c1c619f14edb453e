"""Language models as judges: what a panel is worth, and a share with an honest interval.

Nine judges of three families label 1,000 answers. Independent models take their agreement for
skill; the panel does not, and 60 gold labels give a number with an interval.
"""

import numpy as np

from crowdwise import Annotations
from crowdwise.aggregate import DawidSkene, JudgePanel
from crowdwise.evaluate import advise, assess_panel, log_loss, replaceable

rng = np.random.default_rng(3)
truth = (rng.random(1000) < 0.4).astype(int)
family = np.repeat([0, 1, 2], 3)
shared = rng.normal(size=(1000, 3))[:, family]
opinion = 1.6 * (truth[:, None] - 0.5) + shared + 0.7 * rng.normal(size=(1000, 9))
votes = Annotations.from_matrix((opinion > 0).astype(int))
votes = votes.with_workers({"worker": range(9), "family": family})

print("log loss of the truths, without gold (lower is better)")
for method in (DawidSkene(), JudgePanel()):
    posterior = method.fit(votes).posterior_
    print(f"  {type(method).__name__:<12}{float(log_loss(posterior, truth)):.2f}")

gold = {task: int(truth[task]) for task in rng.choice(1000, 60, replace=False).tolist()}
found = assess_panel(votes, gold, label=1)
number = found.dependence.effective_number
print(f"\n9 judges are worth {number.value:.1f} ({number.low:.1f} to {number.high:.1f})")
print(f"right: {found.accuracy.low:.2f} to {found.accuracy.high:.2f}")
print(f"{found.of}: {found.estimate.low:.2f} to {found.estimate.high:.2f}")
for step in advise(found):
    print(f"- {step}")
assert found.estimate.low < truth.mean() < found.estimate.high

people = np.where(rng.random((200, 4)) < 0.15, 1 - truth[:200, None], truth[:200, None])
labels = JudgePanel().fit(votes, gold).labels_.to_numpy()[:200]
verdict = replaceable(labels, people)
print(f"\nThe panel wins against {verdict.winning_rate:.0%} of four people.")
