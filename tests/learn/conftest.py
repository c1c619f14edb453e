"""What the tests of learners share: a lopsided crowd for plain loops, and one to learn from."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy.special import softmax
from sklearn.datasets import make_classification
from torch import nn

from crowdwise import Annotations
from crowdwise.learn.parts import CrowdNet
from crowdwise.nets.batches import as_data
from crowdwise.nets.features import as_features
from crowdwise.nets.loop import loss_of
from crowdwise.simulate import label_by_crowd

N_TASKS, N_WORKERS, N_CLASSES, N_IN = 14, 5, 3, 4


def votes(*, soft=False, weighted=False, seed=0):
    """Unequal workers and labels, repeated pairs, two tasks without labels."""
    rng = np.random.default_rng(seed)
    n = 40
    return Annotations.from_codes(
        rng.integers(0, N_TASKS - 2, n),
        rng.choice(N_WORKERS, n, p=[0.5, 0.2, 0.15, 0.1, 0.05]),
        rng.choice(N_CLASSES, n, p=[0.6, 0.3, 0.1]),
        tasks=np.arange(N_TASKS),
        workers=np.arange(N_WORKERS),
        classes=np.arange(N_CLASSES),
        weight=rng.uniform(0.3, 2.0, n) if weighted else None,
        soft=rng.dirichlet(np.ones(N_CLASSES), n) if soft else None,
    )


def data_of(annotations, gold=None):
    X = np.random.default_rng(1).normal(size=(N_TASKS, N_IN))
    return as_data(as_features(X, annotations.tasks), annotations, gold, torch.device("cpu"))


def jiggled(module, seed=0):
    """The module in double precision, every parameter moved off its symmetric start."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return module.double()


def net_of(noise, seed=0):
    """A linear truth model and the given noise model, both jiggled."""
    torch.manual_seed(seed)
    return jiggled(CrowdNet(nn.Identity(), nn.Linear(N_IN, N_CLASSES), noise), seed)


def numbers(tensor):
    return tensor.detach().double().numpy()


def truth_of(net, x):
    return softmax(numbers(net.truth.weight) @ x + numbers(net.truth.bias))


def double(batch):
    soft = batch.label.ndim > 1
    label = batch.label.double() if soft else batch.label
    return type(batch)(
        batch.x.double(), batch.task, batch.at, batch.worker, label, batch.weight.double()
    )


def rows_of(annotations):
    """One annotation at a time: task, worker, label as a distribution, weight."""
    for row in range(annotations.n_annotations):
        share = np.eye(N_CLASSES)[annotations.label[row]]
        if annotations.soft is not None:
            share = annotations.soft[row].astype(float)
        weight = 1.0 if annotations.weight is None else float(annotations.weight[row])
        yield int(annotations.task[row]), int(annotations.worker[row]), share, weight


def gradients_are_right(objective, batch, step=loss_of):
    """Compare with finite differences, over every parameter."""
    names, values = zip(*objective.named_parameters(), strict=True)

    def loss(*parameters):
        state = dict(zip(names, parameters, strict=True))
        return torch.func.functional_call(objective, state, (step, batch))

    return torch.autograd.gradcheck(loss, values, eps=1e-6, atol=1e-6)


@pytest.fixture(scope="session")
def lopsided():
    """The functions above, and the crowd's sizes."""
    return SimpleNamespace(
        n_tasks=N_TASKS,
        n_workers=N_WORKERS,
        n_classes=N_CLASSES,
        n_in=N_IN,
        votes=votes,
        data_of=data_of,
        jiggled=jiggled,
        net_of=net_of,
        numbers=numbers,
        truth_of=truth_of,
        double=double,
        rows_of=rows_of,
        gradients_are_right=gradients_are_right,
    )


@pytest.fixture(scope="session")
def crowd():
    """400 tasks to learn from and 200 to check with; 12 workers, good and bad, all biased."""
    X, truth = make_classification(
        600,
        10,
        n_informative=6,
        n_classes=3,
        n_clusters_per_class=1,
        class_sep=1.5,
        weights=[0.5, 0.3, 0.2],
        random_state=0,
    )
    rng = np.random.default_rng(0)
    skill = rng.uniform(0.3, 0.95, 12)[:, None, None]
    confusion = skill * np.eye(3) + (1 - skill) * rng.dirichlet(np.full(3, 0.7), (12, 3))
    annotations = label_by_crowd(truth, confusion, 4, random_state=1)
    return SimpleNamespace(
        X=X[:400],
        votes=annotations[:400],
        truth=truth[:400],
        new_X=X[400:],
        new_votes=annotations[400:],
        new_truth=truth[400:],
        confusion=confusion,
    )
