"""Every public aggregator obeys every law; a new method is picked up by itself."""

import numpy as np
import pytest

from crowdwise import aggregate
from crowdwise.inference.engines import blocks
from crowdwise.laws import AGGREGATOR_LAWS
from crowdwise.simulate import confused_crowd

FEW = {"n_restarts": 2, "n_bags": 40}  # laws do not depend on how many there are
METHODS = [getattr(aggregate, name) for name in aggregate.__all__]


@pytest.fixture(scope="module", params=[2, 3], ids=["two classes", "three classes"])
def annotations(request):
    # Lopsided on purpose: a symmetric matrix would hide swapped truth and label axes.
    n_classes = request.param
    rng = np.random.default_rng(1)
    confusion = rng.dirichlet(np.ones(n_classes), (8, n_classes)) * 0.4 + 0.6 * np.eye(n_classes)
    prior = np.arange(1.0, n_classes + 1) / np.arange(1.0, n_classes + 1).sum()
    return confused_crowd(confusion, 60, 4, prior=prior, random_state=1).annotations


@pytest.mark.parametrize("law", AGGREGATOR_LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.__name__)
def test_aggregator_obeys(method, law, annotations, monkeypatch):
    if method.traits.binary_only and annotations.n_classes > 2:
        pytest.skip("works with two classes only")
    monkeypatch.setattr(blocks, "CELLS_PER_BLOCK", 30)  # several, as in crowds of millions
    model = method()
    few = {name: n for name, n in FEW.items() if name in model.get_params(deep=False)}
    law(model.set_params(**few), annotations)
