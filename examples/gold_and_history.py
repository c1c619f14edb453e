"""Known truths and worker history in Dawid-Skene.

A first batch has gold labels for a fifth of its tasks. What it shows about the workers carries
over to a second batch by the same workers, which is too small to learn it from.
"""

from crowdwise.aggregate import DawidSkene
from crowdwise.simulate import simulate_crowd

crowd = simulate_crowd(1200, 25, 3, 3, accuracy=(0.3, 0.9), random_state=1)
first, second = crowd.annotations[:1000], crowd.annotations[1000:]
gold = {task: crowd.truth[task] for task in range(0, 1000, 5)}

learned = DawidSkene(max_iter=500).fit(first, gold=gold)
alone = DawidSkene(max_iter=500).fit(second)
informed = DawidSkene(max_iter=500, history=learned.history_).fit(second)

for name, model in (("second batch alone", alone), ("with the workers' history", informed)):
    print(f"{name:<28}{(model.labels_ == crowd.truth[1000:]).mean():.3f} correct")
assert (informed.labels_ == crowd.truth[1000:]).mean() > (
    alone.labels_ == crowd.truth[1000:]
).mean()
