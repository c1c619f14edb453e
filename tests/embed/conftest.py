"""A lopsided crowd that embedders learn from, and short training."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sklearn.datasets import make_classification

from crowdwise.learn import Training
from crowdwise.simulate import label_by_crowd

BRIEF = Training(learning_rate=1e-2, batch_size=128, epochs=4, device="cpu")


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """On data as small as this, threads only wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def crowd_of(n_classes, n_tasks=160, seed=0):
    weights = np.arange(n_classes, 0, -1) / np.arange(n_classes + 1).sum()
    X, truth = make_classification(
        n_tasks + 100,
        10,
        n_informative=6,
        n_classes=n_classes,
        n_clusters_per_class=1,
        class_sep=1.5,
        weights=weights.tolist(),
        random_state=seed,
    )
    rng = np.random.default_rng(seed)
    skill = rng.uniform(0.5, 0.95, 6)[:, None, None]
    confusion = skill * np.eye(n_classes) + (1 - skill) * rng.dirichlet(
        np.full(n_classes, 0.7), (6, n_classes)
    )
    votes = label_by_crowd(truth, confusion, 4, random_state=1)
    return SimpleNamespace(
        X=X[:n_tasks],
        votes=votes[:n_tasks],
        truth=truth[:n_tasks],
        new_X=X[n_tasks:],
        new_truth=truth[n_tasks:],
        brief=BRIEF,
    )


@pytest.fixture(scope="session")
def crowd():
    """Two classes."""
    return crowd_of(2)


@pytest.fixture(scope="session")
def crowd3():
    """Three classes."""
    return crowd_of(3)
