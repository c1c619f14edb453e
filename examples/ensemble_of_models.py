"""Workers can be models: combine classifiers, and estimate their accuracy without truth.

Six classifiers, each trained on its own few labeled digits, predict 1,200 unlabeled ones. Their
probabilities are the soft labels of six workers. An aggregator combines them from their labels
only; a learner also uses the images. Both estimate the accuracy of each classifier, which we
compare with the truth that neither has seen.
"""

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from crowdwise import Annotations
from crowdwise.aggregate import DawidSkene
from crowdwise.learn import MLP, SpeeLFC, Training

MODELS = {
    "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(C=0.1)),
    "3 neighbors": KNeighborsClassifier(3),
    "random forest": RandomForestClassifier(50, random_state=0),
    "naive Bayes": GaussianNB(var_smoothing=0.05),
    "decision tree": DecisionTreeClassifier(max_depth=8, random_state=0),
    "small forest": RandomForestClassifier(5, max_depth=4, random_state=1),
}
PER_MODEL, N_UNLABELED = 90, 1200
TOLERANCE = 0.08  # naive Bayes is overconfident, so its accuracy is overestimated


def main() -> pd.DataFrame:
    X, truth = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    X, truth = X[order], truth[order]
    pool, hidden = X[-N_UNLABELED:], truth[-N_UNLABELED:]

    predictions = {}
    for number, (name, model) in enumerate(MODELS.items()):
        mine = slice(number * PER_MODEL, (number + 1) * PER_MODEL)
        predictions[name] = model.fit(X[mine], truth[mine]).predict_proba(pool)
    votes = as_votes(predictions)
    print(f"Models as workers: {votes}\n")

    training = Training(learning_rate=1e-3, batch_size=128, epochs=15)
    aggregator = DawidSkene().fit(votes)
    learner = SpeeLFC(truth=MLP((64,)), training=training, random_state=0).fit(pool, votes)
    posteriors = {
        "aggregator": aggregator.predict_proba(votes).to_numpy(),
        "learner": learner.posterior_,
    }

    best = {name: proba.argmax(axis=1) for name, proba in predictions.items()}
    table = pd.DataFrame(
        {name: estimated_accuracy(best, proba) for name, proba in posteriors.items()}
    )
    table["hidden truth"] = {name: (label == hidden).mean() for name, label in best.items()}
    print("How often is each model right? Two estimates without truth, and the truth:\n")
    print(table.round(3).to_string(), "\n")
    for name, proba in posteriors.items():
        right = (proba.argmax(axis=1) == hidden).mean()
        print(f"All six combined by the {name}: accuracy {right:.3f}")

    errors = table[["aggregator", "learner"]].sub(table["hidden truth"], axis=0).abs()
    print(f"\nThe estimates are off by {errors.to_numpy().mean():.3f} on average")
    assert errors.to_numpy().max() < TOLERANCE, errors
    assert errors.to_numpy().mean() < TOLERANCE / 3, errors
    return table


def as_votes(predictions: dict[str, np.ndarray]) -> Annotations:
    """Each model's probabilities as soft labels of a worker."""
    names, probas = list(predictions), np.concatenate(list(predictions.values()))
    n_tasks = len(probas) // len(names)
    return Annotations.from_codes(
        np.tile(np.arange(n_tasks), len(names)),
        np.repeat(np.arange(len(names)), n_tasks),
        probas.argmax(axis=1),
        workers=names,
        classes=np.arange(probas.shape[1]),
        soft=probas,
    )


def estimated_accuracy(best: dict[str, np.ndarray], posterior: np.ndarray) -> dict[str, float]:
    """How likely each model's best guess is the truth, on average over tasks."""
    rows = np.arange(len(posterior))
    return {name: float(posterior[rows, label].mean()) for name, label in best.items()}


if __name__ == "__main__":
    main()
