"""A representation from few labels that disagree: RLL, then any classifier.

Is a handwritten digit odd? Five workers of different accuracy label four hundred images. A
classifier learns from their labels on the pixels, on RLL's representation, and on one whose
classes and confidences come from a model of the workers. Truth is used only once, for the
evaluation at the end; the figure shows the tasks before and after.
"""

from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline

from crowdwise.aggregate import DawidSkene
from crowdwise.embed import RLL, Bayesian, CrowdLabels, EveryClass, RandomGroups
from crowdwise.learn import Training
from crowdwise.simulate import label_by_crowd, one_coin_confusion

N_LABELED = 400
SETTINGS = {
    "groups": RandomGroups(anchors=EveryClass()),
    "groups_per_epoch": 10_000,
    "training": Training(learning_rate=3e-3, batch_size=256, epochs=4),
    "random_state": 0,
}


def main() -> dict[str, float]:
    X, digit = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    X, truth = X[order], digit[order] % 2
    skills = [0.95, 0.9, 0.65, 0.6, 0.55]
    votes = label_by_crowd(truth, one_coin_confusion(skills, 2), per_task=5, random_state=0)

    weighted = RLL(aggregator=DawidSkene(), confidence=Bayesian(evidence="posterior"), **SETTINGS)
    models = {
        "pixels": CrowdLabels(),
        "RLL": make_pipeline(RLL(**SETTINGS), CrowdLabels()),
        "RLL, workers weighted": make_pipeline(weighted, CrowdLabels(aggregator=DawidSkene())),
    }
    found = {}
    for name, model in models.items():
        model.fit(X[:N_LABELED], votes[:N_LABELED])
        found[name] = model.score(X[N_LABELED:], truth[N_LABELED:])
        print(f"{name:>22}: {found[name]:.3f} of {len(X) - N_LABELED:,} new images are correct")
    assert found["RLL, workers weighted"] > found["pixels"]
    draw(weighted, X[:N_LABELED], truth[:N_LABELED])
    return found


def draw(embedder: RLL, X: np.ndarray, truth: np.ndarray) -> None:
    try:
        from crowdwise.plot import plot_embedding_map
    except ImportError:
        return
    file = Path("embedding.png")
    plot_embedding_map(embedder, X, truth)[0].figure.savefig(file)
    print(f"The figure is in {file}.")


if __name__ == "__main__":
    main()
