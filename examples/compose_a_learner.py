"""Compose a learner of a truth model, a noise model and an objective, and compare the choices.

python examples/compose_a_learner.py
"""

from sklearn.base import clone
from sklearn.datasets import make_classification

from crowdwise.learn import (
    EM,
    MLP,
    CrowdClassifier,
    PerAnnotation,
    PerTask,
    SkillByEase,
    Training,
    WorkerConfusion,
)
from crowdwise.simulate import label_by_crowd, one_coin_confusion

X, truth = make_classification(600, 10, n_informative=5, n_classes=3, random_state=0)
confusion = one_coin_confusion([0.9, 0.8, 0.7, 0.6, 0.5, 0.4], n_classes=3)
votes = label_by_crowd(truth, confusion, per_task=3, random_state=0)
base = CrowdClassifier(truth=MLP((32,)), training=Training(epochs=100), random_state=0)

print(f"{'noise':18} {'objective':15} {'log-likelihood':>14} {'accuracy':>9}")
for noise in (WorkerConfusion(), SkillByEase()):
    for objective in (PerAnnotation(), PerTask(), EM(rounds=3, epochs=30, marginal=None)):
        model = clone(base).set_params(noise=noise, objective=objective)
        model.fit(X[:400], votes[:400])
        likelihood = model.log_likelihood(X[400:], votes[400:])  # of held-out tasks: no truth
        accuracy = model.score(X[400:], truth[400:])
        names = f"{type(noise).__name__:18} {type(objective).__name__:15}"
        print(f"{names} {likelihood:14.3f} {accuracy:9.3f}")
