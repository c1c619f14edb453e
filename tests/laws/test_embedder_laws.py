"""Every public embedder obeys every law; a new method is picked up by itself."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from crowdwise import embed
from crowdwise.laws import EMBEDDER_LAWS
from crowdwise.simulate import label_by_crowd

EMBEDDERS = [getattr(embed, name) for name in embed.EMBEDDERS]


@pytest.fixture(scope="module")
def crowd():
    # Lopsided on purpose, with a class that few tasks have.
    rng = np.random.default_rng(2)
    truth = rng.choice(3, size=24, p=[0.5, 0.3, 0.2])
    X = rng.normal(size=(24, 4)) + np.eye(3, 4)[truth] * 2.0
    confusion = rng.dirichlet(np.ones(3), (5, 3)) * 0.4 + 0.6 * np.eye(3)
    return X, label_by_crowd(truth, confusion, 3, random_state=1)


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """On data as small as this, threads only wait for each other."""
    with threadpool_limits(1):
        yield


@pytest.mark.parametrize("law", EMBEDDER_LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("embedder", EMBEDDERS, ids=lambda embedder: embedder.__name__)
def test_embedder_obeys(embedder, law, crowd):
    law(embedder(), *crowd)


def test_a_third_partys_embedder_need_not_be_savable(crowd):
    foreign = type("Foreign", (embed.RLL,), {"__module__": "elsewhere"})
    law = next(law for law in EMBEDDER_LAWS if law.__name__ == "a_saved_model_transforms_the_same")
    law(foreign(), *crowd)
