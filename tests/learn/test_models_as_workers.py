"""Classifiers as workers: their accuracy from unlabeled data, against hidden truth."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from crowdwise.aggregate import DawidSkene
from crowdwise.learn import EM, LIA, MLP, SpeeLFC, Training

EXAMPLE = Path(__file__).parents[2] / "examples" / "ensemble_of_models.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("ensemble_of_models", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def ensemble(example):
    """Five models of unequal quality, each trained on digits of its own."""
    X, truth = load_digits(return_X_y=True)
    order = np.random.default_rng(1).permutation(len(X))
    X, truth = X[order] / 16, truth[order]
    models = [
        LogisticRegression(),
        KNeighborsClassifier(3),
        GaussianNB(var_smoothing=0.1),
        DecisionTreeClassifier(max_depth=6, random_state=0),
        DecisionTreeClassifier(max_depth=3, random_state=1),
    ]
    predictions = {}
    for number, model in enumerate(models):
        mine = slice(100 * number, 100 * number + 100)
        proba = model.fit(X[mine], truth[mine]).predict_proba(X[500:1300])
        predictions[f"model {number}"] = proba
    return X[500:1300], truth[500:1300], predictions, example.as_votes(predictions)


def test_probabilities_become_soft_labels(ensemble):
    _, _, predictions, votes = ensemble
    assert votes.workers.tolist() == list(predictions)
    assert votes.n_annotations == 800 * 5
    row = np.flatnonzero((votes.task == 17) & (votes.worker == 2))
    assert_allclose(votes.soft[row[0]], predictions["model 2"][17], rtol=1e-6)


@pytest.mark.parametrize("kind", ["DawidSkene", "SpeeLFC", "LIA"])
def test_accuracy_is_found_without_truth(ensemble, example, kind):
    X, truth, predictions, votes = ensemble
    if kind == "DawidSkene":
        posterior = DawidSkene().fit(votes).predict_proba(votes).to_numpy()
    else:
        training = Training(optimizer="amsgrad", learning_rate=3e-3, batch_size=200, epochs=15)
        network = MLP((32,))
        model = (
            SpeeLFC(truth=network, training=training, random_state=0)
            if kind == "SpeeLFC"
            else LIA(
                truth=network,
                difficulty=MLP((4,)),
                objective=EM(3, 8, marginal_epochs=8),
                training=training,
                random_state=0,
            )
        )
        posterior = model.fit(X, votes).posterior_
    best = {name: proba.argmax(axis=1) for name, proba in predictions.items()}
    found = example.estimated_accuracy(best, posterior)
    hidden = {name: (label == truth).mean() for name, label in best.items()}
    errors = np.array([found[name] - hidden[name] for name in best])
    assert np.abs(errors).max() < 0.08
    assert np.corrcoef(list(found.values()), list(hidden.values()))[0, 1] > 0.95
    assert (posterior.argmax(axis=1) == truth).mean() > max(hidden.values()) - 0.02
