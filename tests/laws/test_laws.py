"""Every public aggregator obeys every law; a new method is picked up by itself."""

from functools import cache

import numpy as np
import pytest

from crowdwise import aggregate
from crowdwise.inference.engines import blocks
from crowdwise.laws import AGGREGATOR_LAWS
from crowdwise.simulate import confused_crowd

FEW = {"n_restarts": 2, "n_bags": 12}  # laws do not depend on how many there are
METHODS = [getattr(aggregate, name) for name in aggregate.__all__]
pytestmark = pytest.mark.usefixtures("few_draws")
CASES = [
    pytest.param(method, n_classes, id=f"{method.__name__}-{n_classes} classes")
    for n_classes in (2, 3)
    for method in METHODS
    if n_classes == 2 or not method.traits.binary_only
]


@cache
def crowd(n_classes):
    # Lopsided on purpose: a symmetric matrix would hide swapped truth and label axes.
    rng = np.random.default_rng(1)
    confusion = rng.dirichlet(np.ones(n_classes), (8, n_classes)) * 0.4 + 0.6 * np.eye(n_classes)
    prior = np.arange(1.0, n_classes + 1) / np.arange(1.0, n_classes + 1).sum()
    return confused_crowd(confusion, 60, 4, prior=prior, random_state=1).annotations


@pytest.mark.parametrize("law", AGGREGATOR_LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize(("method", "n_classes"), CASES)
def test_aggregator_obeys(method, n_classes, law, monkeypatch):
    monkeypatch.setattr(blocks, "CELLS_PER_BLOCK", 30)  # several, as in crowds of millions
    model = method()
    few = {name: n for name, n in FEW.items() if name in model.get_params(deep=False)}
    law(model.set_params(**few), crowd(n_classes))
